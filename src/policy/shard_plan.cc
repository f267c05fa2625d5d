// Cutting, packing and tiers of shards; rules in shard_plan.h.
#include "policy/shard_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "policy/placement.h"

namespace sojourn {

Room::Room(const PlacementTask& task) : expert_bytes_(std::max<Bytes>(1, task.model->expert_bytes())) {
  for (size_t s = 0; s < task.package->bank_sets.size(); ++s) {
    const Bytes n = std::max(1, task.package->bank_sets[s].count);
    banks_.push_back(n);
    left_.push_back(std::max<Bytes>(0, s < task.usable.size() ? task.usable[s] : 0) / n);
  }
}

namespace {

size_t z(int i) { return static_cast<size_t>(i); }

/// Bytes a second of the banks a chiplet has of its own, SRAM apart (it holds next to nothing of a model).
std::vector<double> near_rate(const Package& p) {
  std::vector<double> rate(z(p.compute_count), 0.0);
  for (int c = 0; c < p.compute_count; ++c)
    for (int t = 1; t < kTiers; ++t)
      for (int s : p.visible(static_cast<Tier>(t), c))
        if (p.bank_sets[z(s)].owner == c) rate[z(c)] += static_cast<double>(p.bank_sets[z(s)].bandwidth);
  return rate;
}

/// One layer while it is packed.
class LayerPacker {
 public:
  LayerPacker(const PlacementTask& task, const CostModel& cost, const Teams& teams, const std::vector<double>& near)
      : task_(task), cost_(cost), teams_(teams), near_(near), compute_(near.size()), bank_(near.size()) {}

  void pack(int layer, const DemandTable& demand, double theta, std::vector<Shard>& out) {
    const int experts = demand.experts;
    std::fill(compute_.begin(), compute_.end(), 0.0);
    std::fill(bank_.begin(), bank_.end(), 0.0);
    double tokens = 0, active = 0;
    for (int e = 0; e < experts; ++e) {
      tokens += demand.at(layer, e).tokens;
      active += demand.at(layer, e).active;
    }
    std::vector<double> share(z(experts), 0.0);
    for (int e = 0; e < experts; ++e) {
      const Demand& d = demand.at(layer, e);
      share[z(e)] = std::max(tokens > 0 ? d.tokens / tokens : 0.0, active > 0 ? d.active / active : 0.0);
    }
    std::vector<int> order(z(experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return share[z(a)] > share[z(b)]; });
    const size_t block = z(experts) * z(cost_.chiplets());
    hop_table(cost_, std::span(task_.profile->source).subspan(z(layer) * block, block), experts, hops_);
    const size_t first = out.size();
    for (int e : order) {
      const double shards = std::max(share[z(e)], 1.0 / experts) * cost_.chiplets() / std::max(theta, 1e-12);
      const int level = teams_.level_for(static_cast<int>(std::ceil(std::clamp(shards, 1.0, 1.0 * kSlices))));
      place(layer, e, demand.at(layer, e), level, out);
    }
    std::stable_sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), [](const Shard& a, const Shard& b) {
      return std::tie(a.expert, a.slice.first) < std::tie(b.expert, b.slice.first);
    });
  }

 private:
  [[nodiscard]] double load(int c) const { return std::max(compute_[z(c)], bank_[z(c)]); }
  [[nodiscard]] double compute_of(int c, const Demand& d, double part) const {
    return cost_.compute_s(c, d.tokens, d.active) * part;
  }
  [[nodiscard]] double bank_of(int c, const Demand& d, double part) const {
    return near_[z(c)] > 0 ? d.active * part * cost_.expert_bytes() / near_[z(c)] : 0.0;
  }

  void place(int layer, int e, const Demand& d, int level, std::vector<Shard>& out) {
    const auto level_teams = teams_.level(level);
    const std::vector<int>* best = nullptr;
    double best_load = 0, best_hops = 0;
    for (const std::vector<int>& team : level_teams) {
      double worst = 0, hop = 0;
      const double part = 1.0 / static_cast<double>(team.size());
      for (int c : team) {
        worst = std::max({worst, compute_[z(c)] + compute_of(c, d, part), bank_[z(c)] + bank_of(c, d, part)});
        hop += hops_[z(e) * z(cost_.chiplets()) + z(c)] * part;
      }
      if (best != nullptr && std::tie(worst, hop) >= std::tie(best_load, best_hops)) continue;
      best = &team;
      best_load = worst;
      best_hops = hop;
    }
    const int n = static_cast<int>(best->size()), spare = kSlices % n;
    // The members that get one slice more: the least loaded.
    std::vector<int> by_load(*best);
    std::stable_sort(by_load.begin(), by_load.end(), [&](int a, int b) { return load(a) < load(b); });
    int at = 0;
    for (int c : *best) {
      const bool more = std::find(by_load.begin(), by_load.begin() + spare, c) != by_load.begin() + spare;
      const int count = kSlices / n + more;
      const double part = static_cast<double>(count) / kSlices;
      compute_[z(c)] += compute_of(c, d, part);
      bank_[z(c)] += bank_of(c, d, part);
      out.push_back({layer, e, {Tier::sram, c, -1}, {static_cast<std::uint8_t>(at), static_cast<std::uint8_t>(count)}});
      at += count;
    }
  }

  const PlacementTask& task_;
  const CostModel& cost_;
  const Teams& teams_;
  const std::vector<double>& near_;
  std::vector<double> compute_, bank_, hops_;
};

/// Service of one layer's bank sets and of the links that carry weights, seconds.
class TierLoad {
 public:
  explicit TierLoad(const CostModel& cost) : cost_(cost), bank(z(cost.sets())), link(cost.package().links.size()) {}
  void add(const Location& at, Slice slice, double active, double sign = 1.0) {
    const double part = sign * active * slice.count / kSlices;
    bank[z(at.bank_set)] += part * cost_.stream_s(at.bank_set);
    for (int u : cost_.set_route(at.bank_set, at.chiplet))
      link[z(u)] += part * cost_.expert_bytes() / cost_.link_rate(u);
  }
  /// Fullest of a set and of its route to chiplet c.
  [[nodiscard]] double service(int set, int c) const {
    double worst = bank[z(set)];
    for (int u : cost_.set_route(set, c)) worst = std::max(worst, link[z(u)]);
    return worst;
  }

 private:
  const CostModel& cost_;

 public:
  std::vector<double> bank, link;
};

class TierFiller {
 public:
  TierFiller(const PlacementTask& task, const CostModel& cost, const DemandTable& demand)
      : package_(*task.package), cost_(cost), demand_(demand), room_(task), loads_(z(demand.layers), TierLoad(cost)) {}

  void near_first(std::vector<Shard>& shards) {
    std::vector<int> rank(demand_.of.size()), order(z(demand_.experts));
    for (int l = 0; l < demand_.layers; ++l) {
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int a, int b) { return demand_.at(l, a).tokens > demand_.at(l, b).tokens; });
      for (size_t i = 0; i < order.size(); ++i) rank[z(l) * z(demand_.experts) + z(order[i])] = static_cast<int>(i);
    }
    std::vector<size_t> by_density(shards.size());
    std::iota(by_density.begin(), by_density.end(), size_t{0});
    std::stable_sort(by_density.begin(), by_density.end(), [&](size_t a, size_t b) {
      const Shard &x = shards[a], &y = shards[b];
      const auto steps = [&](const Shard& s) { return -std::lround(demand_.at(s.layer, s.expert).active * 64); };
      const auto place = [&](const Shard& s) { return rank[z(s.layer) * z(demand_.experts) + z(s.expert)]; };
      return std::tuple(steps(x), place(x), x.layer) < std::tuple(steps(y), place(y), y.layer);
    });
    for (size_t i : by_density) {
      Shard& s = shards[i];
      if (!find(s, s.at.chiplet) && !find_elsewhere(s)) {
        s.at.bank_set = -1;
        continue;
      }
      room_.take(s.at.bank_set, s.slice);
      loads_[z(s.layer)].add(s.at, s.slice, active(s));
    }
    std::erase_if(shards, [](const Shard& s) { return s.at.bank_set < 0; });
  }

  /// Rule (2) of the header, one layer. `shards`: all of them; [first, last) are the layer's.
  void level(std::vector<Shard>& shards, size_t first, size_t last, double enough) {
    if (first == last) return;
    TierLoad& load = loads_[z(shards[first].layer)];
    std::vector<int> slices_far(z(demand_.experts), 0);
    std::vector<std::vector<size_t>> in_set(z(cost_.sets()));
    for (size_t i = first; i < last; ++i) {
      if (shards[i].at.tier == Tier::dram) slices_far[z(shards[i].expert)] += shards[i].slice.count;
      if (shards[i].at.tier == Tier::hbm) in_set[z(shards[i].at.bank_set)].push_back(i);
    }
    while (true) {
      int from = -1;
      for (int s = 0; s < cost_.sets(); ++s)
        if (!in_set[z(s)].empty() && (from < 0 || load.bank[z(s)] > load.bank[z(from)])) from = s;
      if (from < 0 || load.bank[z(from)] <= enough) return;
      size_t best = last;
      std::vector<size_t>& mine = in_set[z(from)];
      for (size_t i : mine) {
        if (active(shards[i]) <= 0) continue;
        const auto order = [&](size_t k) { return std::tuple(slices_far[z(shards[k].expert)], active(shards[k]), k); };
        if (best == last || order(i) < order(best)) best = i;
      }
      Location to;
      if (best == last || !far_place(load, shards[best], load.bank[z(from)], to)) return;
      Shard& s = shards[best];
      load.add(s.at, s.slice, active(s), -1.0);
      room_.give(s.at.bank_set, s.slice);
      s.at = to;
      load.add(s.at, s.slice, active(s));
      room_.take(s.at.bank_set, s.slice);
      slices_far[z(s.expert)] += s.slice.count;
      mine.erase(std::find(mine.begin(), mine.end(), best));
    }
  }

 private:
  [[nodiscard]] double active(const Shard& s) const { return demand_.at(s.layer, s.expert).active; }

  /// SRAM, HBM, then the shared set with least service in this layer, for a shard executed on chiplet c.
  bool find(Shard& shard, int c) const {
    const TierLoad& load = loads_[z(shard.layer)];
    for (int t = 0; t < kTiers; ++t) {
      int best = -1;
      for (int s : package_.visible(static_cast<Tier>(t), c)) {
        if (!room_.fits(s, shard.slice)) continue;
        if (best < 0 || load.bank[z(s)] < load.bank[z(best)]) best = s;
      }
      if (best < 0) continue;
      shard.at = {static_cast<Tier>(t), c, best};
      return true;
    }
    return false;
  }
  bool find_elsewhere(Shard& shard) const {
    const int home = shard.at.chiplet;
    std::vector<int> order(z(cost_.chiplets()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return cost_.hops(home, a) < cost_.hops(home, b); });
    return std::any_of(order.begin(), order.end(), [&](int c) { return find(shard, c); });
  }
  /// The DRAM set that serves this shard soonest, if it and its route stay below `limit`.
  bool far_place(TierLoad& load, const Shard& s, double limit, Location& to) const {
    double best = limit * (1 - 1e-9);
    bool found = false;
    for (int set : package_.visible(Tier::dram, s.at.chiplet)) {
      if (!room_.fits(set, s.slice)) continue;
      const Location there{Tier::dram, s.at.chiplet, set};
      load.add(there, s.slice, active(s));
      const double service = load.service(set, s.at.chiplet);
      load.add(there, s.slice, active(s), -1.0);
      if (service >= best) continue;
      best = service;
      to = there;
      found = true;
    }
    return found;
  }

  const Package& package_;
  const CostModel& cost_;
  const DemandTable& demand_;
  Room room_;
  std::vector<TierLoad> loads_;
};

/// Slices of every expert in a layout: [layer][expert].
std::vector<int> slices_of(const DemandTable& demand, const std::vector<Shard>& shards) {
  std::vector<int> slices(demand.of.size(), 0);
  for (const Shard& s : shards) slices[z(s.layer) * z(demand.experts) + z(s.expert)] += s.slice.count;
  return slices;
}

/// Every expert whole, filled like a layout of `static`; home: [layer][expert] the chiplet it should lie on.
std::vector<Shard> whole_experts(const PlacementTask& task, const CostModel& cost, const DemandTable& demand,
                                 const std::vector<int>& home) {
  PlacementBuilder builder(task, cost);
  std::vector<FillItem> items;
  for (int l = 0; l < demand.layers; ++l)
    for (int e = 0; e < demand.experts; ++e) {
      const Demand& d = demand.at(l, e);
      items.push_back({l, e, home[z(l) * z(demand.experts) + z(e)], d.active, d.tokens, false});
    }
  (void)fill_tiers(builder, std::move(items), true);  // the caller of place() says what does not fit
  std::vector<Shard> out;
  for (const PlacedReplica& r : builder.placed()) out.push_back({r.layer, r.expert, r.at, r.slice});
  std::stable_sort(out.begin(), out.end(), [](const Shard& a, const Shard& b) {
    return std::tie(a.layer, a.expert) < std::tie(b.layer, b.expert);
  });
  return out;
}

}  // namespace

std::vector<Shard> plan_shards(const PlacementTask& task, const CostModel& cost, const Teams& teams,
                               const DemandTable& demand, const SplitRule& rule) {
  const std::vector<double> near = near_rate(*task.package);
  std::vector<Shard> shards;
  LayerPacker packer(task, cost, teams, near);
  for (int l = 0; l < demand.layers; ++l) packer.pack(l, demand, rule.theta, shards);
  place_in_tiers(task, cost, demand, rule.level_above, shards);
  return shards;
}

void place_in_tiers(const PlacementTask& task, const CostModel& cost, const DemandTable& demand, double level_above,
                    std::vector<Shard>& shards) {
  std::vector<int> home(demand.of.size(), 0);
  for (const Shard& s : shards)
    if (s.slice.first == 0) home[z(s.layer) * z(demand.experts) + z(s.expert)] = s.at.chiplet;
  TierFiller filler(task, cost, demand);
  filler.near_first(shards);
  const std::vector<int> slices = slices_of(demand, shards);
  if (std::any_of(slices.begin(), slices.end(), [](int n) { return n < kSlices; })) {
    shards = whole_experts(task, cost, demand, home);
    return;
  }
  size_t first = 0;
  for (int l = 0; l < demand.layers; ++l) {
    size_t last = first;
    while (last < shards.size() && shards[last].layer == l) ++last;
    double tokens = 0, rate = 0;
    for (int e = 0; e < demand.experts; ++e)
      tokens += demand.at(l, e).tokens + demand.at(l, e).active * 0.5 * (cost.tile() - 1);
    for (int c = 0; c < cost.chiplets(); ++c) rate += 1.0 / cost.token_s(c);
    filler.level(shards, first, last, level_above * tokens / std::max(rate, 1e-30));
    first = last;
  }
}

double shard_time(const CostModel& cost, std::span<const Shard> shards, std::span<const double> tokens, double link_s) {
  std::vector<double> compute(z(cost.chiplets()), 0.0), bank(z(cost.sets()), 0.0);
  for (const Shard& s : shards) {
    const double n = tokens[z(s.expert)];
    if (n <= 0) continue;
    const double part = static_cast<double>(s.slice.count) / kSlices;
    compute[z(s.at.chiplet)] += part * cost.tile() * std::ceil(n / cost.tile()) * cost.token_s(s.at.chiplet);
    bank[z(s.at.bank_set)] += part * cost.stream_s(s.at.bank_set);
  }
  return std::max(
      {link_s, *std::max_element(compute.begin(), compute.end()), *std::max_element(bank.begin(), bank.end())});
}

double shard_link_time(const CostModel& cost, const Profile& profile, int layer, std::span<const Shard> shards) {
  const size_t n = z(cost.chiplets());
  std::vector<double> flow(n * n, 0.0), link(cost.package().links.size(), 0.0);
  for (const Shard& s : shards) {
    for (size_t source = 0; source < n; ++source)
      flow[source * n + z(s.at.chiplet)] += profile.src(layer, s.expert, static_cast<int>(source));
    const double read = demand_of(profile, layer, s.expert).active * cost.expert_bytes() * s.slice.count / kSlices;
    for (int u : cost.set_route(s.at.bank_set, s.at.chiplet)) link[z(u)] += read;
  }
  for (size_t a = 0; a < n; ++a)
    for (size_t b = 0; b < n; ++b) {
      const double bytes = flow[a * n + b] * cost.token_bytes();
      if (bytes <= 0) continue;
      for (int u : cost.package().route_chiplets(static_cast<int>(a), static_cast<int>(b))) link[z(u)] += bytes;
      for (int u : cost.package().route_chiplets(static_cast<int>(b), static_cast<int>(a))) link[z(u)] += bytes;
    }
  double worst = 0;
  for (size_t u = 0; u < link.size(); ++u) worst = std::max(worst, link[u] / cost.link_rate(static_cast<int>(u)));
  return worst;
}

}  // namespace sojourn
