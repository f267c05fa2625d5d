// moentwine: ER-mapping and the NI-Balancer of MoEntwine (arXiv 2510.25258, HPCA 2026).
//
// From summaries of the paper [S]: devices form compact, disjoint full-token-domain (FTD) tiles; originals stay, shadow
// slots hold replicas; load H_d = sum over experts on d of l_e / r_e; trigger max H_d / mean H_d > 1 + alpha; step: the
// hottest device's most popular expert goes to the topologically nearest device with a free shadow slot whose load
// stays at or below the present maximum; migrations ride links that are cold. On this substrate [R]:
//   * token sources are given, so ER-mapping decides only the order of devices: consecutive blocks of experts go to
//     different 2x2 tiles, and every tile holds an equal share of every id range;
//   * shadow slots: ceil(copies the byte budget leaves / (layers |C|)) a device and layer;
//   * the balancer counts tokens only: no tiers, no banks. Tiers are generic storage: originals and shadows are filled
//   by
//     density like any other replica, and a later shadow goes to the first near tier with room, SRAM excepted;
//   * a shadow whose expert would do without it (l_e / (r_e - 1) < stale * mean expert load) is evicted;
//   * cold links: a migration starts only if every link of its path keeps utilisation below `cold`;
//   * tokens of a replicated expert: `split` = least-loaded (default: the strongest on training traffic), even,
//   nearest.
#include <numeric>

#include "policy/placement.h"

namespace sojourn {
namespace {

struct Settings {
  double alpha, stale, cold;
  int updates, slots;
  std::string split;
};

/// Devices in ER order: position p of every tile, then position p + 1 of every tile.
std::vector<int> er_order(const Package& package) {
  struct Seat {
    int position, tile_y, tile_x, chiplet;
  };
  std::vector<Seat> seats;
  for (int c = 0; c < package.compute_count; ++c) {
    const Chiplet& ch = package.chiplets[static_cast<size_t>(c)];
    seats.push_back({(ch.y & 1) * 2 + (ch.x & 1), ch.y / 2, ch.x / 2, c});
  }
  std::sort(seats.begin(), seats.end(), [](const Seat& a, const Seat& b) {
    if (a.position != b.position) return a.position < b.position;
    if (a.tile_y != b.tile_y) return a.tile_y < b.tile_y;
    return a.tile_x != b.tile_x ? a.tile_x < b.tile_x : a.chiplet < b.chiplet;
  });
  std::vector<int> order;
  for (const Seat& s : seats) order.push_back(s.chiplet);
  return order;
}

bool same_tile(const Package& p, int a, int b) {
  const Chiplet &x = p.chiplets[static_cast<size_t>(a)], &y = p.chiplets[static_cast<size_t>(b)];
  return x.x / 2 == y.x / 2 && x.y / 2 == y.y / 2;
}

/// Load state of one layer as the balancer sees it.
struct Balance {
  std::vector<double> expert;        ///< l_e
  std::vector<std::vector<int>> on;  ///< [expert] devices holding it, original first
  std::vector<double> device;        ///< H_d
  std::vector<int> shadows;          ///< [device] shadow slots in use

  void count(int chiplets) {
    device.assign(static_cast<size_t>(chiplets), 0.0);
    shadows.assign(static_cast<size_t>(chiplets), 0);
    for (size_t e = 0; e < expert.size(); ++e)
      for (size_t i = 0; i < on[e].size(); ++i) {
        device[static_cast<size_t>(on[e][i])] += share(e);
        if (i > 0) ++shadows[static_cast<size_t>(on[e][i])];
      }
  }
  [[nodiscard]] double share(size_t e) const {
    return expert[e] / static_cast<double>(std::max<size_t>(1, on[e].size()));
  }
  [[nodiscard]] double mean() const {
    return std::accumulate(device.begin(), device.end(), 0.0) / static_cast<double>(device.size());
  }
  [[nodiscard]] int hottest() const {
    return static_cast<int>(std::max_element(device.begin(), device.end()) - device.begin());
  }
};

/// One greedy step: which expert to copy from where to where; false when no candidate relieves the hottest device.
struct Step {
  int expert = -1, from = -1, to = -1;
};
template <class Allowed>
bool next_step(const CostModel& cost, const Balance& b, int slots, int replicas_max, const Allowed& allowed,
               Step& step) {
  const int hot = b.hottest();
  const double worst = b.device[static_cast<size_t>(hot)];
  std::vector<int> mine;
  for (size_t e = 0; e < b.expert.size(); ++e)
    if (std::find(b.on[e].begin(), b.on[e].end(), hot) != b.on[e].end() &&
        static_cast<int>(b.on[e].size()) < replicas_max && b.expert[e] > 0)
      mine.push_back(static_cast<int>(e));
  std::stable_sort(mine.begin(), mine.end(),
                   [&](int x, int y) { return b.share(static_cast<size_t>(x)) > b.share(static_cast<size_t>(y)); });
  for (int e : mine) {
    const auto& on = b.on[static_cast<size_t>(e)];
    const double share = b.expert[static_cast<size_t>(e)] / static_cast<double>(on.size() + 1);
    int best = -1;
    for (int d = 0; d < cost.chiplets(); ++d) {
      if (b.shadows[static_cast<size_t>(d)] >= slots || std::find(on.begin(), on.end(), d) != on.end()) continue;
      if (b.device[static_cast<size_t>(d)] + share > worst || !allowed(e, hot, d)) continue;
      if (best < 0 || cost.hops(hot, d) < cost.hops(hot, best)) best = d;
    }
    if (best < 0) continue;
    step = {e, hot, best};
    return true;
  }
  return false;
}

class MoentwinePolicy final : public Policy {
 public:
  explicit MoentwinePolicy(Settings s) : s_(std::move(s)) {}

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const CostModel cost(*task.package, *task.model);
    const Profile& p = *task.profile;
    PlacementBuilder builder(task, cost);
    const std::vector<int> order = er_order(*task.package);
    // Every layer gets its share of the copies the budget leaves.
    const std::int64_t extra = builder.copies_left();
    std::vector<FillItem> items;
    for (int l = 0; l < p.layers; ++l) {
      Balance b;
      for (int e = 0; e < p.experts; ++e) {
        b.expert.push_back(p.d(l, e));
        b.on.push_back({order[static_cast<size_t>(contiguous_chiplet(l, e, p.experts, cost.chiplets()))]});
      }
      b.count(cost.chiplets());
      const int slots = shadow_slots(extra, p.layers, cost.chiplets());
      std::int64_t copies = extra * (l + 1) / p.layers - extra * l / p.layers;
      Step step;
      while (copies-- > 0 && b.device[static_cast<size_t>(b.hottest())] > (1 + s_.alpha) * b.mean() &&
             next_step(
                 cost, b, slots, task.limits.replicas_max, [](int, int, int) { return true; }, step)) {
        b.on[static_cast<size_t>(step.expert)].push_back(step.to);
        b.count(cost.chiplets());
      }
      for (int e = 0; e < p.experts; ++e) {
        const auto& on = b.on[static_cast<size_t>(e)];
        const Demand d = demand_of(p, l, e);
        const double share = d.tokens / static_cast<double>(on.size());
        const double active = on.size() == 1 ? d.active : std::min(d.active, activity(share));
        for (size_t i = 0; i < on.size(); ++i) items.push_back({l, e, on[i], active, share, i > 0});
      }
    }
    fill_tiers(builder, std::move(items), false);
    out = builder.placed();
  }

  void decide(const PolicyView& view, std::vector<Action>& out) override {
    if (!cost_.made_for(view.package, view.model)) cost_ = CostModel(*view.package, *view.model);
    const Bytes size = std::max<Bytes>(1, view.directory->expert_bytes());
    const std::int64_t room = view.limits->budget / size - view.directory->resident_bytes() / size;
    std::int64_t copies = std::max<std::int64_t>(0, room);
    const int slots = shadow_slots(view.limits->budget / size - static_cast<std::int64_t>(view.layers) * view.experts,
                                   view.layers, cost_.chiplets());
    std::vector<int> promised(view.package->bank_sets.size(), 0);
    // Layers in order of imbalance, the worst first.
    std::vector<Balance> all(static_cast<size_t>(view.layers));
    std::vector<std::pair<double, int>> order;
    for (int l = 0; l < view.layers; ++l) {
      Balance& b = all[static_cast<size_t>(l)];
      read(view, l, b);
      const double mean = b.mean();
      order.emplace_back(mean > 0 ? -b.device[static_cast<size_t>(b.hottest())] / mean : 0.0, l);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [imbalance, l] : order) {
      Balance& b = all[static_cast<size_t>(l)];
      evict_stale(view, l, b, out);
      Step step;
      const auto allowed = [&, layer = l](int e, int from, int to) {
        Location at;
        return !view.directory->has_pending(layer, e) && find(view, promised, to, at) &&
               cold(view, view.directory->replica(view.directory->replicas(layer, e).front()).at, at, from);
      };
      while (copies > 0 && static_cast<int>(out.size()) < s_.updates &&
             b.device[static_cast<size_t>(b.hottest())] > (1 + s_.alpha) * b.mean() &&
             next_step(cost_, b, slots, view.limits->replicas_max, allowed, step)) {
        Location at;
        find(view, promised, step.to, at);
        ++promised[static_cast<size_t>(at.bank_set)];
        out.push_back({ActionKind::promote, l, step.expert, -1, at});
        b.on[static_cast<size_t>(step.expert)].push_back(step.to);
        b.count(cost_.chiplets());
        --copies;
        // One copy of an expert a window: the next is judged when this one has arrived.
        if (b.on[static_cast<size_t>(step.expert)].size() > view.directory->replicas(l, step.expert).size() + 1) break;
      }
    }
  }

  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    device_.assign(static_cast<size_t>(view.chiplets), 0);
    turn_.assign(static_cast<size_t>(view.experts), 0);
    const bool least = s_.split == "least-loaded";
    out.reserve(out.size() + task.groups.size());
    for (int pass = 0; pass < 2; ++pass)
      for (size_t g = 0; g < task.groups.size(); ++g) {
        const TokenGroup& group = task.groups[g];
        if (group.tokens <= 0) continue;
        const auto list = view.directory->replicas(task.layer, group.expert);
        if ((list.size() > 1) != (pass == 1)) continue;
        if (pass == 0) {
          device_[static_cast<size_t>(view.directory->replica(list.front()).at.chiplet)] += group.tokens;
          out.push_back({static_cast<int>(g), list.front(), group.tokens});
        } else if (s_.split == "even") {
          split_even(list, static_cast<int>(g), group, out);
        } else {
          int best = list.front();
          for (int id : list)
            if (better(view, group.source, id, best, least)) best = id;
          device_[static_cast<size_t>(view.directory->replica(best).at.chiplet)] += group.tokens;
          out.push_back({static_cast<int>(g), best, group.tokens});
        }
      }
  }

  [[nodiscard]] ResidencyLimits limits(ResidencyLimits common) const override {
    common.updates_max = s_.updates;
    return common;
  }

 private:
  [[nodiscard]] int shadow_slots(std::int64_t extra, int layers, int chiplets) const {
    if (s_.slots > 0) return s_.slots;
    const std::int64_t cells = static_cast<std::int64_t>(std::max(1, layers)) * chiplets;
    return static_cast<int>(std::max<std::int64_t>(1, (std::max<std::int64_t>(0, extra) + cells - 1) / cells));
  }

  static void read(const PolicyView& view, int l, Balance& b) {
    for (int e = 0; e < view.experts; ++e) {
      b.expert.push_back(view.d(l, e));
      b.on.emplace_back();
      for (int id : view.directory->replicas(l, e)) b.on.back().push_back(view.directory->replica(id).at.chiplet);
    }
    b.count(view.chiplets);
  }

  /// Generic storage for a new shadow at device d: HBM, else DRAM, else SRAM.
  static bool find(const PolicyView& view, const std::vector<int>& promised, int d, Location& at) {
    for (Tier t : {Tier::hbm, Tier::dram, Tier::sram})
      for (int s : view.package->visible(t, d)) {
        const Bytes n = std::max(1, view.package->bank_sets[static_cast<size_t>(s)].count);
        const Bytes need = (view.directory->expert_bytes() + n - 1) / n * n;
        if (view.directory->free_bytes(s) < need * (promised[static_cast<size_t>(s)] + 1)) continue;
        at = {t, d, s};
        return true;
      }
    return false;
  }

  [[nodiscard]] bool cold(const PolicyView& view, const Location& from, const Location& to, int /*hot*/) const {
    if (view.pressure == nullptr || view.pressure->link_util.empty() || view.window_ps <= 0) return true;
    const auto& sets = view.package->bank_sets;
    for (int u : view.package->route_chiplets(sets[static_cast<size_t>(from.bank_set)].owner,
                                              sets[static_cast<size_t>(to.bank_set)].owner)) {
      const double mine = cost_.expert_bytes() / (cost_.link_rate(u) * ps_to_s(view.window_ps));
      if (view.pressure->link_util[static_cast<size_t>(u)] + mine > s_.cold) return false;
    }
    return true;
  }

  void evict_stale(const PolicyView& view, int l, Balance& b, std::vector<Action>& out) const {
    const double mean = std::accumulate(b.expert.begin(), b.expert.end(), 0.0) / static_cast<double>(b.expert.size());
    for (size_t e = 0; e < b.expert.size() && static_cast<int>(out.size()) < s_.updates; ++e) {
      const auto list = view.directory->replicas(l, static_cast<int>(e));
      if (list.size() < 2 || view.directory->has_pending(l, static_cast<int>(e))) continue;
      if (b.expert[e] / static_cast<double>(list.size() - 1) >= s_.stale * mean) continue;
      const Replica& r = view.directory->replica(list.back());
      if (!r.initial && view.window - r.born_window < view.limits->age_min) continue;
      out.push_back({ActionKind::evict, l, static_cast<int>(e), list.back(), r.at});
      b.on[e].pop_back();
      b.count(view.chiplets);
    }
  }

  [[nodiscard]] bool better(const PolicyView& view, int source, int id, int best, bool least) {
    const int a = view.directory->replica(id).at.chiplet, b = view.directory->replica(best).at.chiplet;
    if (least && device_[static_cast<size_t>(a)] != device_[static_cast<size_t>(b)])
      return device_[static_cast<size_t>(a)] < device_[static_cast<size_t>(b)];
    const bool ta = same_tile(*view.package, source, a), tb = same_tile(*view.package, source, b);
    if (ta != tb) return ta;
    return view.package->route_chiplets(source, a).size() < view.package->route_chiplets(source, b).size();
  }

  void split_even(std::span<const int> list, int g, const TokenGroup& group, std::vector<Assignment>& out) {
    const int r = static_cast<int>(list.size());
    int& turn = turn_[static_cast<size_t>(group.expert)];
    for (int i = 0; i < std::min(r, group.tokens); ++i) {
      const int n = group.tokens / r + (i < group.tokens % r ? 1 : 0);
      out.push_back({g, list[static_cast<size_t>((turn + i) % r)], n});
    }
    turn = (turn + group.tokens % r) % r;
  }

  Settings s_;
  CostModel cost_;
  std::vector<int> device_, turn_;
};

}  // namespace

void register_policies_moentwine(PolicyRegistry& registry) {
  using I = std::int64_t;
  registry.add(
      {"moentwine",
       "ER-mapping tiles and the NI-Balancer's shadow replicas over cold links (MoEntwine, HPCA 2026)",
       {{"alpha",
         Unit::fraction,
         0.1,
         0.0,
         10.0,
         {},
         "a layer is balanced when max/mean device load > 1 + alpha",
         "[R]"},
        {"stale",
         Unit::none,
         0.5,
         0.0,
         10.0,
         {},
         "a shadow goes when the rest would carry less than this share of the mean expert load",
         "[R]"},
        {"cold", Unit::fraction, 0.85, 0.0, 1.0, {}, "utilisation a migration may bring a link to", "[R]"},
        {"updates", Unit::none, I{8}, 0, 4096, {}, "most updates a window (its own U^max)", "[R]"},
        {"slots", Unit::none, I{0}, 0, 4096, {}, "shadow slots a device and layer; 0 = from the byte budget", "[R]"},
        {"split",
         Unit::none,
         std::string("least-loaded"),
         -1e300,
         1e300,
         {"least-loaded", "even", "nearest"},
         "how tokens of a replicated expert are shared",
         "[R]"}}},
      [](const ParamSet& p) -> std::unique_ptr<Policy> {
        return std::make_unique<MoentwinePolicy>(Settings{p.number("alpha"), p.number("stale"), p.number("cold"),
                                                          static_cast<int>(p.integer("updates")),
                                                          static_cast<int>(p.integer("slots")), p.word("split")});
      });
}

}  // namespace sojourn
