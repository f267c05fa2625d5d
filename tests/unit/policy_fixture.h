// Shared by the policy tests: presets, a sampled workload with Zipf popularity, a directory and a closed-form window
// time.
#pragma once
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "base/rng.h"
#include "moe/model_load.h"
#include "package/load.h"
#include "policy/placement.h"
#include "policy/policies.h"
#include "residency/residency.h"

namespace policy_test {

using namespace sojourn;

inline Package table1() {
  auto p = load_package("hcrmap-table1", {std::string(SOJOURN_SOURCE_DIR) + "/packages"});
  if (!p) FAIL(p.error().diagnostics.text());
  return *p;
}

inline ModelShape shape(const std::string& name) {
  auto m = load_model(name, {std::string(SOJOURN_SOURCE_DIR) + "/models"});
  if (!m) FAIL(m.error().diagnostics.text());
  return *m;
}

/// Windows of routed groups, every layer with its own Zipf order; sources are token i -> chiplet i mod |C|.
struct Traffic {
  int layers, experts, top_k, tokens, chiplets;
  std::vector<std::vector<double>> cdf;  ///< [layer] cumulative popularity
  Rng rng;
  Traffic(int l, int e, int k, int t, int c, double skew, std::uint64_t seed)
      : layers(l), experts(e), top_k(k), tokens(t), chiplets(c), rng(seed, "traffic") {
    for (int i = 0; i < l; ++i) {
      std::vector<double> w;
      for (int j = 0; j < e; ++j) w.push_back(std::pow(j + 1.0, -skew));
      rng.shuffle(w);
      for (size_t j = 1; j < w.size(); ++j) w[j] += w[j - 1];
      cdf.push_back(w);
    }
  }
  int draw(int layer) {
    const auto& c = cdf[static_cast<size_t>(layer)];
    return static_cast<int>(std::lower_bound(c.begin(), c.end(), rng.uniform() * c.back()) - c.begin());
  }
  /// choice[layer][token * top_k + i]
  std::vector<std::vector<int>> window() {
    std::vector<std::vector<int>> out(static_cast<size_t>(layers));
    for (int l = 0; l < layers; ++l)
      for (int t = 0; t < tokens; ++t) {
        auto& v = out[static_cast<size_t>(l)];
        const size_t base = v.size();
        while (v.size() < base + static_cast<size_t>(top_k)) {
          const int e = draw(l);
          if (std::find(v.begin() + static_cast<long>(base), v.end(), e) == v.end()) v.push_back(e);
        }
      }
    return out;
  }
  std::vector<TokenGroup> groups(const std::vector<int>& choice) const {
    std::vector<int> n(static_cast<size_t>(chiplets * experts), 0);
    for (size_t i = 0; i < choice.size(); ++i)
      ++n[(i / static_cast<size_t>(top_k)) % static_cast<size_t>(chiplets) * static_cast<size_t>(experts) +
          static_cast<size_t>(choice[i])];
    std::vector<TokenGroup> out;
    for (int s = 0; s < chiplets; ++s)
      for (int e = 0; e < experts; ++e)
        if (int t = n[static_cast<size_t>(s * experts + e)]) out.push_back({e, s, t});
    return out;
  }
};

inline Profile profile_of(Traffic& t, int windows) {
  Profile p;
  p.layers = t.layers, p.experts = t.experts, p.chiplets = t.chiplets, p.windows = windows;
  const size_t le = static_cast<size_t>(t.layers * t.experts);
  p.demand.assign(le, 0), p.active.assign(le, 0), p.source.assign(le * static_cast<size_t>(t.chiplets), 0);
  p.next.assign(le * static_cast<size_t>(t.experts), 1.0);  // Laplace
  for (int w = 0; w < windows; ++w) {
    const auto choice = t.window();
    for (int l = 0; l < t.layers; ++l) {
      std::vector<int> seen(static_cast<size_t>(t.experts), 0);
      for (const TokenGroup& g : t.groups(choice[static_cast<size_t>(l)])) {
        const size_t i = static_cast<size_t>(l * t.experts + g.expert);
        p.demand[i] += static_cast<double>(g.tokens) / windows;
        p.source[i * static_cast<size_t>(t.chiplets) + static_cast<size_t>(g.source)] +=
            static_cast<double>(g.tokens) / windows;
        if (!seen[static_cast<size_t>(g.expert)]++) p.active[i] += 1.0 / windows;
      }
      if (l + 1 < t.layers)
        for (int k = 0; k < t.tokens; ++k)
          for (int i = 0; i < t.top_k; ++i)
            for (int j = 0; j < t.top_k; ++j)
              p.next[static_cast<size_t>(l * t.experts + choice[l][k * t.top_k + i]) * t.experts +
                     static_cast<size_t>(choice[l + 1][k * t.top_k + j])] += 1;
    }
  }
  for (size_t i = 0; i < le; ++i) {
    double sum = 0;
    for (int j = 0; j < t.experts; ++j) sum += p.next[i * static_cast<size_t>(t.experts) + static_cast<size_t>(j)];
    for (int j = 0; j < t.experts; ++j)
      p.next[i * static_cast<size_t>(t.experts) + static_cast<size_t>(j)] *= t.top_k / sum;
  }
  return p;
}

inline std::unique_ptr<Policy> make(const std::string& name, const std::map<std::string, Value>& with = {}) {
  PolicyRegistry registry("policy");
  register_all_policies(registry);
  const auto* entry = registry.find(name);
  REQUIRE(entry != nullptr);
  ParamSet set;
  for (const Param& p : entry->info.params) set.set(p.name, p.default_value);
  for (const auto& [key, value] : with) set.set(key, value);
  return entry->factory(set);
}

/// One package of one model with a placed policy.
struct World {
  Package package;
  ModelShape model;
  Traffic traffic;
  Profile profile;
  PlacementTask task;
  std::unique_ptr<Residency> directory;
  std::vector<PlacedReplica> placed;
  Pressure pressure;

  World(Package p, ModelShape m, int layers, int tokens, double skew = 0.6, std::uint64_t seed = 1, int windows = 6)
      : package(std::move(p)),
        model(std::move(m)),
        traffic(layers, model.experts, model.top_k, tokens, package.compute_count, skew, seed),
        profile(profile_of(traffic, windows)) {
    task.package = &package, task.model = &model, task.profile = &profile, task.tokens = tokens, task.seed = seed;
    for (const BankSet& s : package.bank_sets) task.usable.push_back(s.usable);
  }
  World(const World&) = delete;
  void place(Policy& policy, double copies = 1.3) {
    task.limits = policy.limits(ResidencyLimits{});
    task.limits.budget =
        static_cast<Bytes>(policy.budget_factor(copies) * profile.layers * profile.experts) * model.expert_bytes();
    placed.clear();
    policy.place(task, placed);
    directory = std::make_unique<Residency>(package, profile.layers, profile.experts, model.expert_bytes(),
                                            std::vector<Bytes>{});
    for (const PlacedReplica& r : placed) REQUIRE(directory->place(r.layer, r.expert, r.at, r.slice));
  }
  PolicyView view(int window = 1) const {
    PolicyView v;
    v.package = &package, v.model = &model, v.directory = directory.get(), v.limits = &task.limits;
    v.pressure = &pressure, v.profile = &profile, v.window = window, v.tokens = traffic.tokens;
    v.layers = profile.layers, v.experts = profile.experts, v.chiplets = profile.chiplets;
    v.ewma = profile.demand, v.last = profile.demand, v.source = profile.source;
    return v;
  }
};

/// Closed-form time of one layer as executed: whole tiles, one stream per replica used.
struct Measured {
  double compute = 0, bank = 0, link = 0, hop_bytes = 0;
  int used = 0;
  std::vector<double> chiplet, set;
  [[nodiscard]] double time() const { return std::max({compute, bank, link}); }
};
inline Measured measure(const World& w, const std::vector<TokenGroup>& groups, const std::vector<Assignment>& x) {
  const CostModel cost(w.package, w.model);
  LayerLoad load(cost);
  Measured m;
  std::map<int, int> tokens;
  for (const Assignment& a : x) {
    tokens[a.replica] += a.tokens;
    const int s = groups[static_cast<size_t>(a.group)].source, c = w.directory->replica(a.replica).at.chiplet;
    for (int u : w.package.route_chiplets(s, c)) load.link[u] += a.tokens * cost.token_bytes();
    for (int u : w.package.route_chiplets(c, s)) load.link[u] += a.tokens * cost.token_bytes();
    m.hop_bytes += a.tokens * cost.token_bytes() * (cost.hops(s, c) + cost.hops(c, s));
  }
  for (const auto& [id, n] : tokens) {
    const Location at = w.directory->replica(id).at;
    const double part = w.directory->replica(id).slice.count / static_cast<double>(kSlices);
    load.compute[at.chiplet] += part * cost.tiles(n) * cost.tile() * cost.token_s(at.chiplet);
    load.bank[at.bank_set] += part * cost.stream_s(at.bank_set);
    for (int u : cost.set_route(at.bank_set, at.chiplet)) load.link[u] += part * cost.expert_bytes();
  }
  m.compute = load.max_compute(), m.bank = load.max_bank(), m.link = load.max_link(cost);
  m.used = static_cast<int>(tokens.size());
  m.chiplet = load.compute, m.set = load.bank;
  return m;
}

/// Sum of layer times over fresh windows.
inline double run(World& w, Policy& policy, int windows, Measured* last = nullptr) {
  double sum = 0;
  std::vector<Assignment> x;
  for (int i = 0; i < windows; ++i) {
    const auto choice = w.traffic.window();
    for (int l = 0; l < w.profile.layers; ++l) {
      const auto groups = w.traffic.groups(choice[static_cast<size_t>(l)]);
      x.clear();
      policy.assign(w.view(i + 1), {l, groups}, x);
      const Measured m = measure(w, groups, x);
      sum += m.time();
      if (last != nullptr) *last = m;
    }
  }
  return sum;
}

}  // namespace policy_test
