// A DeepSeek-V3-like desk for the benchmarks: a package, sampled routing of 2048 tokens x 8 of 256 experts, and a
// policy with its layout, directory and view, without a simulator. Zipf popularity (skew 0.8), an order of its own in
// every layer.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "moe/model_load.h"
#include "package/load.h"
#include "policy/policies.h"
#include "residency/residency.h"

namespace bench {

using namespace sojourn;

inline const std::string kRoot = SOJOURN_SOURCE_DIR;

template <class T>
const T& need(const Result<T>& r) {
  if (r) return *r;
  std::fprintf(stderr, "%s\n", r.error().diagnostics.text().c_str());
  std::exit(2);
}
inline const Package& package() {
  static const auto p = load_package("hcrmap-table1", {kRoot + "/packages"});
  return need(p);
}
/// The same with 16 times the bytes in every bank, so that all 58 MoE layers of DeepSeek-V3 fit one package.
inline const Package& large_package() {
  static const Package p = [] {
    Package out = package();
    for (Bank& b : out.banks) b.capacity *= 16;
    for (BankSet& s : out.bank_sets) {
      s.usable = 0;
      for (int i = 0; i < s.count; ++i) s.usable += out.banks[static_cast<std::size_t>(s.first_bank + i)].usable();
    }
    return out;
  }();
  return p;
}
inline const ModelShape& model() {
  static const auto m = load_model("deepseek-v3", {kRoot + "/models"});
  return need(m);
}

/// Zipf demand of tokens x 8 choices, spread over 16 sources.
inline std::vector<TokenGroup> groups(double skew, std::uint64_t seed, int tokens = 2048) {
  Rng rng(seed, "groups");
  std::vector<double> share(256);
  double sum = 0;
  for (std::size_t e = 0; e < share.size(); ++e) sum += share[e] = std::pow(static_cast<double>(e + 1), -skew);
  rng.shuffle(share);
  std::vector<double> upto(share.size());
  std::partial_sum(share.begin(), share.end(), upto.begin());
  std::vector<int> count(16 * 256, 0);
  for (int t = 0; t < tokens * 8; ++t) {
    const double x = rng.uniform() * sum;
    const auto e = std::min<std::size_t>(
        255, static_cast<std::size_t>(std::lower_bound(upto.begin(), upto.end(), x) - upto.begin()));
    ++count[static_cast<std::size_t>(t / 8 % 16) * 256 + e];
  }
  std::vector<TokenGroup> out;
  for (int c = 0; c < 16; ++c)
    for (int e = 0; e < 256; ++e)
      if (const int n = count[static_cast<std::size_t>(c * 256 + e)]; n > 0) out.push_back({e, c, n});
  return out;
}

/// A policy on `layers` layers; four are what a package of DeepSeek-V3's pipeline holds.
struct Desk {
  int layers;
  Profile profile;
  ResidencyLimits limits;
  PlacementTask task;
  Pressure pressure;
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Residency> residency;
  std::vector<double> sigma;
  PolicyView view;
  std::vector<std::vector<TokenGroup>> routed;

  using Options = std::vector<std::pair<std::string, std::string>>;  ///< parameters, as --set gives them
  Desk(const char* name, const Package& p, int layer_count, const Options& options = {}) : layers(layer_count) {
    PolicyRegistry registry("policy");
    register_all_policies(registry);
    const auto* entry = registry.find(name);
    policy = entry->factory(need(resolve(entry->info.params, options, {}, name)));
    profile.layers = layers;
    profile.experts = 256;
    profile.chiplets = 16;
    profile.windows = 8;
    profile.demand.assign(layers * 256, 0);
    profile.active.assign(layers * 256, 1);
    profile.source.assign(layers * 256 * 16, 0);
    profile.next.assign(layers * 256 * 256, 1.0 / 256);
    for (int l = 0; l < layers; ++l) {
      routed.push_back(groups(0.8, static_cast<std::uint64_t>(l)));
      for (const TokenGroup& g : routed.back()) {
        const auto i = static_cast<std::size_t>(l * 256 + g.expert);
        profile.demand[i] += g.tokens;
        profile.source[i * 16 + static_cast<std::size_t>(g.source)] += g.tokens;
      }
    }
    sigma.assign(profile.demand.size(), 1.0);
    limits = policy->limits(limits);
    limits.budget = static_cast<Bytes>(layers * 256 * policy->budget_factor(1.3)) * model().expert_bytes();
    residency =
        std::make_unique<Residency>(p, layers, 256, model().expert_bytes(), std::vector<Bytes>(p.bank_sets.size()));
    task.package = &p;
    task.model = &model();
    task.profile = &profile;
    task.limits = limits;
    task.tokens = 2048;
    task.seed = 1;
    for (std::size_t s = 0; s < p.bank_sets.size(); ++s)
      task.usable.push_back(residency->free_bytes(static_cast<int>(s)));
    std::vector<PlacedReplica> placed;
    policy->place(task, placed);
    for (const PlacedReplica& r : placed)
      if (!residency->place(r.layer, r.expert, r.at, r.slice)) std::abort();
    pressure.load = 0.6;
    pressure.chiplet_load.assign(16, 0.5);
    pressure.link_util.assign(p.links.size(), 0.2);
    pressure.link_weighted.assign(p.links.size(), 0.2);
    pressure.bank_util.assign(p.bank_sets.size(), 0.5);
    pressure.tier_used.assign(kTiers, 0.8);
    view.package = &p;
    view.model = &model();
    view.directory = residency.get();
    view.limits = &limits;
    view.pressure = &pressure;
    view.profile = &profile;
    view.window = 100;
    view.window_ps = 20 * kPsPerMs;
    view.tokens = 2048;
    view.layers = layers;
    view.experts = 256;
    view.chiplets = 16;
    view.ewma = profile.demand;
    view.last = profile.demand;
    view.sigma = sigma;
    view.source = profile.source;
  }
};

}  // namespace bench
