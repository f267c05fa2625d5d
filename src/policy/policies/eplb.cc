// eplb: DeepSeek's expert-parallel load balancer as an online policy (deepseek-ai/EPLB, 2025; algorithm:
// policy/eplb.h).
//
// Device = compute chiplet, node = chiplet group, expert group = the model's routing group. On this substrate [R]:
//   * a layer's replicas are its experts and its share of the copies the byte budget leaves; they need not fill the
//     chiplets evenly (empty slots), and R^max bounds the copies of one expert. Hierarchical balancing needs a multiple
//     of the nodes, so it leaves up to nodes - 1 copies a layer unused, and groups of chiplets of equal size;
//   * EPLB numbers its devices freely. The first plan's order is kept, spread over the package if chiplets stay empty
//   and
//     shifted by one a layer; a later plan's devices take the chiplets that hold most of their experts already (greedy,
//     by load, node by node when hierarchical), as otherwise every re-plan would move everything;
//   * two replicas of one expert on one chiplet are stored once;
//   * tiers are generic storage: filled by density at first, a later replica keeps its tier if it can (moves.h).
// Every `interval` windows the layers are planned anew from the smoothed loads. The original then swaps all weights at
// once; here at most `updates` legal actions a window bring the layout nearer to the plan: the layer farthest from its
// plan first, in it the expert with the largest load a copy first, until its balance is within `slack` of the plan's.
// Tokens: `dispatch` (dispatch.h); the original leaves that to the serving engine.
#include "policy/eplb.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "policy/dispatch.h"
#include "policy/moves.h"
#include "policy/placement.h"

namespace sojourn {
namespace {

struct Settings {
  int interval, updates;
  double slack;
  bool hierarchical;
  Dispatch dispatch;
};

size_t at(int i) { return static_cast<size_t>(i); }

/// Chiplets of each expert, each at most once.
using Sites = std::vector<std::vector<int>>;

bool holds(const std::vector<int>& chiplets, int c) {
  return std::find(chiplets.begin(), chiplets.end(), c) != chiplets.end();
}

/// Largest over mean chiplet load, replicas sharing equally.
double imbalance(const Sites& sites, std::span<const float> load, int chiplets) {
  std::vector<double> of(at(chiplets), 0.0);
  double sum = 0;
  for (size_t e = 0; e < sites.size(); ++e) {
    sum += static_cast<double>(load[e]);
    for (const int c : sites[e]) of[at(c)] += static_cast<double>(load[e]) / static_cast<double>(sites[e].size());
  }
  return sum > 0 ? *std::max_element(of.begin(), of.end()) * chiplets / sum : 1.0;
}

class EplbPolicy final : public Policy {
 public:
  explicit EplbPolicy(const Settings& s) : s_(s), dispatcher_(s.dispatch) {}

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const CostModel cost(*task.package, *task.model);
    const Profile& p = *task.profile;
    PlacementBuilder builder(task, cost);
    const std::int64_t extra = builder.copies_left();
    std::vector<FillItem> items;
    for (int l = 0; l < p.layers; ++l) {
      std::vector<float> load;
      for (int e = 0; e < p.experts; ++e) load.push_back(static_cast<float>(p.d(l, e)));
      const Sites sites =
          plan(*task.package, *task.model, l, load, p.experts + share_of(extra, l, p.layers), task.limits, {});
      for (int e = 0; e < p.experts; ++e) {
        const Demand d = demand_of(p, l, e);
        const auto& mine = sites[at(e)];
        const double share = d.tokens / static_cast<double>(mine.size());
        const double active = mine.size() == 1 ? d.active : std::min(d.active, activity(share));
        for (size_t i = 0; i < mine.size(); ++i) items.push_back({l, e, mine[i], active, share, i > 0});
      }
    }
    fill_tiers(builder, std::move(items), false);
    out = builder.placed();
  }

  void decide(const PolicyView& view, std::vector<Action>& out) override {
    refresh(view);
    if (view.window % s_.interval == 0) replan(view);
    if (targets_.empty() || s_.updates == 0) return;
    MoveBudget budget(view);
    struct Row {
      Sites now;
      std::vector<std::uint8_t> touched;
      double excess = 0;  ///< imbalance over the plan's
    };
    std::vector<Row> rows(at(view.layers));
    for (int l = 0; l < view.layers; ++l) {
      Row& row = rows[at(l)];
      row.now = present(view, l);
      row.touched.assign(at(view.experts), 0);
      row.excess = excess(row.now, l, view);
    }
    while (static_cast<int>(out.size()) < s_.updates) {
      int worst = 0;
      for (int l = 1; l < view.layers; ++l)
        if (rows[at(l)].excess > rows[at(worst)].excess) worst = l;
      Row& row = rows[at(worst)];
      if (row.excess <= 1.0 + s_.slack) break;
      if (step(view, worst, budget, row.now, row.touched, out)) {
        row.excess = excess(row.now, worst, view);
      } else {
        row.excess = 0;  // nothing more can be done in it this window
      }
    }
  }

  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    refresh(view);
    dispatcher_.assign(cost_, *view.directory, task, out);
  }

  [[nodiscard]] ResidencyLimits limits(ResidencyLimits common) const override {
    common.updates_max = s_.updates;
    return common;
  }

 private:
  void refresh(const PolicyView& view) {
    if (!cost_.made_for(view.package, view.model)) cost_ = CostModel(*view.package, *view.model);
  }

  static std::span<const float> row_of(const std::vector<float>& v, int row, int columns) {
    return std::span(v).subspan(at(row) * at(columns), at(columns));
  }
  [[nodiscard]] double excess(const Sites& now, int l, const PolicyView& view) const {
    const auto load = row_of(load_, l, view.experts);
    return imbalance(now, load, view.chiplets) / imbalance(targets_[at(l)], load, view.chiplets);
  }

  static Sites present(const PolicyView& view, int l) {
    Sites out(at(view.experts));
    for (int e = 0; e < view.experts; ++e)
      for (const int id : view.directory->replicas(l, e)) {
        const int c = view.directory->replica(id).at.chiplet;
        if (!holds(out[at(e)], c)) out[at(e)].push_back(c);
      }
    return out;
  }

  void replan(const PolicyView& view) {
    const Bytes size = std::max<Bytes>(1, view.directory->expert_bytes());
    const std::int64_t extra =
        std::max<std::int64_t>(0, view.limits->budget / size - static_cast<std::int64_t>(view.layers) * view.experts);
    load_.resize(view.ewma.size());
    for (size_t i = 0; i < load_.size(); ++i) load_[i] = static_cast<float>(view.ewma[i]);
    targets_.clear();
    for (int l = 0; l < view.layers; ++l)
      targets_.push_back(plan(*view.package, *view.model, l, row_of(load_, l, view.experts),
                              view.experts + share_of(extra, l, view.layers), *view.limits, present(view, l)));
  }

  /// Chiplets of every expert after EPLB. `now` (may be empty) decides which chiplet is which device.
  [[nodiscard]] Sites plan(const Package& package, const ModelShape& model, int l, std::span<const float> load,
                           int replicas, const ResidencyLimits& limits, const Sites& now) const {
    const int chiplets = package.compute_count, experts = static_cast<int>(load.size());
    EplbShape shape;
    shape.experts = experts;
    shape.replicas = replicas;
    shape.devices = chiplets;
    shape.copies_max = std::max(1, limits.replicas_max);
    std::vector<int> order(at(chiplets)), members(at(std::max(1, package.groups)), 0);
    std::iota(order.begin(), order.end(), 0);
    const auto group = [&](int c) { return package.chiplets[at(c)].group; };
    for (int c = 0; c < chiplets; ++c) ++members[at(group(c))];
    const int nodes = package.groups, groups = std::max(1, model.expert_groups);
    const bool equal = std::all_of(members.begin(), members.end(), [&](int n) { return n == members[0]; });
    if (s_.hierarchical && equal && nodes > 1 && groups % nodes == 0 && experts % groups == 0) {
      shape.groups = groups;
      shape.nodes = nodes;
      shape.replicas = replicas / nodes * nodes;
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return group(a) < group(b); });
    }
    const auto made = eplb_plan(load, shape);
    assert(made && "the shape above is always legal");
    std::vector<int> chiplet_of(at(chiplets));
    if (now.empty()) {
      // With fewer replicas than chiplets there is one item a device, and the first devices get them all.
      const int used = std::min(chiplets, shape.replicas);
      for (int d = 0; d < chiplets; ++d)
        chiplet_of[at(d)] = used == chiplets ? order[at(d)] : order[at((d * chiplets / used + l) % chiplets)];
    } else {
      match(*made, load, order, shape.nodes, now, chiplet_of);
    }
    Sites out(at(experts));
    for (int e = 0; e < experts; ++e)
      for (int i = 0; i < made->count(0, e); ++i) {
        const int c = chiplet_of[at(made->log2phy[at(e) * at(made->width) + at(i)] / made->per_device)];
        if (!holds(out[at(e)], c)) out[at(e)].push_back(c);
      }
    return out;
  }

  /// Devices to chiplets, greedily by the load of the experts a chiplet holds already; nodes to groups first.
  static void match(const EplbPlan& plan, std::span<const float> load, const std::vector<int>& order, int nodes,
                    const Sites& now, std::vector<int>& chiplet_of) {
    const int chiplets = static_cast<int>(order.size()), each = chiplets / nodes;
    std::vector<double> common(at(chiplets) * at(chiplets), 0.0);  // [device][position in order]
    std::vector<int> position(at(chiplets));
    for (int i = 0; i < chiplets; ++i) position[at(order[at(i)])] = i;
    for (int slot = 0; slot < plan.slots; ++slot)
      if (const int e = plan.expert(0, slot); e >= 0)
        for (const int c : now[at(e)])
          common[at(slot / plan.per_device) * at(chiplets) + at(position[at(c)])] +=
              1e-3 + static_cast<double>(load[at(e)]) / plan.count(0, e);
    std::vector<double> of_nodes(at(nodes) * at(nodes), 0.0);
    for (int d = 0; d < chiplets; ++d)
      for (int i = 0; i < chiplets; ++i)
        of_nodes[at(d / each) * at(nodes) + at(i / each)] += common[at(d) * at(chiplets) + at(i)];
    const std::vector<int> node = greedy(of_nodes, nodes);
    for (int n = 0; n < nodes; ++n) {
      std::vector<double> of_devices;
      for (int d = 0; d < each; ++d)
        for (int i = 0; i < each; ++i)
          of_devices.push_back(common[at(n * each + d) * at(chiplets) + at(node[at(n)] * each + i)]);
      const std::vector<int> device = greedy(of_devices, each);
      for (int d = 0; d < each; ++d) chiplet_of[at(n * each + d)] = order[at(node[at(n)] * each + device[at(d)])];
    }
  }

  /// Rows to columns, the largest entry first; ties to the lower row, then column.
  static std::vector<int> greedy(const std::vector<double>& worth, int n) {
    std::vector<int> cells(worth.size()), out(at(n), -1);
    std::iota(cells.begin(), cells.end(), 0);
    std::stable_sort(cells.begin(), cells.end(), [&](int a, int b) { return worth[at(a)] > worth[at(b)]; });
    std::vector<std::uint8_t> used(at(n), 0);
    for (const int cell : cells) {
      if (out[at(cell / n)] >= 0 || used[at(cell % n)]) continue;
      out[at(cell / n)] = cell % n;
      used[at(cell % n)] = 1;
    }
    return out;
  }

  /// One action that brings layer l nearer to its plan; false if there is none.
  bool step(const PolicyView& view, int l, MoveBudget& budget, Sites& now, std::vector<std::uint8_t>& touched,
            std::vector<Action>& out) const {
    const auto load = row_of(load_, l, view.experts);
    const Sites& target = targets_[at(l)];
    const auto share = [&](int e) { return load[at(e)] / static_cast<float>(target[at(e)].size()); };
    std::vector<int> order(at(view.experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return share(a) > share(b); });
    bool wants_copy = false;
    for (const int e : order) {
      if (touched[at(e)] || view.directory->has_pending(l, e)) continue;
      int missing = -1;
      for (const int c : target[at(e)])
        if (missing < 0 && !holds(now[at(e)], c)) missing = c;
      if (missing < 0) continue;
      const auto list = view.directory->replicas(l, e);
      const int surplus = spare(view, list, target[at(e)]);
      if (surplus < 0 && static_cast<int>(list.size()) >= view.limits->replicas_max) continue;
      if (surplus < 0 && budget.copies() <= 0) {
        wants_copy = true;
        continue;
      }
      Location to;
      const Tier first = surplus >= 0 ? view.directory->replica(surplus).at.tier : Tier::hbm;
      if (!budget.find(missing, first, to)) continue;
      budget.take(to, surplus < 0);
      touched[at(e)] = 1;
      if (surplus >= 0) {
        const Replica& r = view.directory->replica(surplus);
        out.push_back(move_of(r, surplus, to));
        std::erase(now[at(e)], r.at.chiplet);
      } else {
        out.push_back({ActionKind::promote, l, e, -1, to});
      }
      now[at(e)].push_back(missing);
      return true;
    }
    if (!wants_copy) return false;
    // A copy is due and the budget is used up: drop the lightest replica that the plan does not want.
    for (size_t i = order.size(); i-- > 0;) {
      const int e = order[i];
      const auto list = view.directory->replicas(l, e);
      if (touched[at(e)] || list.size() < 2 || view.directory->has_pending(l, e)) continue;
      const int surplus = spare(view, list, target[at(e)]);
      if (surplus < 0) continue;
      const Replica& r = view.directory->replica(surplus);
      out.push_back({ActionKind::evict, l, e, surplus, r.at});
      touched[at(e)] = 1;
      std::erase(now[at(e)], r.at.chiplet);
      return true;
    }
    return false;
  }

  /// The youngest replica on a chiplet outside the plan that may be touched, or -1.
  static int spare(const PolicyView& view, std::span<const int> list, const std::vector<int>& target) {
    for (size_t i = list.size(); i-- > 0;) {
      const Replica& r = view.directory->replica(list[i]);
      if (!holds(target, r.at.chiplet) && old_enough(view, r)) return list[i];
    }
    return -1;
  }

  Settings s_;
  CostModel cost_;
  Dispatcher dispatcher_;
  std::vector<float> load_;     ///< [layer][expert] the plan was made for
  std::vector<Sites> targets_;  ///< [layer]
};

}  // namespace

void register_policies_eplb(PolicyRegistry& registry) {
  using I = std::int64_t;
  registry.add({"eplb",
                "replicas by load a copy, balanced packing, re-planned every few windows (DeepSeek EPLB)",
                {dispatch_param("least-loaded", "[R]; the original leaves it to the serving engine"),
                 {"interval", Unit::windows, I{8}, 1, 1 << 20, {}, "windows between plans", "[R]"},
                 {"updates", Unit::none, I{8}, 0, 4096, {}, "most updates a window (its own U^max)", "[R]"},
                 {"slack",
                  Unit::fraction,
                  0.02,
                  0.0,
                  10.0,
                  {},
                  "a layout is near enough when its imbalance exceeds the plan's by this share",
                  "[R]"},
                 {"hierarchical",
                  Unit::none,
                  true,
                  -1e300,
                  1e300,
                  {},
                  "groups of experts to groups of chiplets first, where groups are a multiple",
                  "EPLB README"}}},
               [](const ParamSet& p) -> std::unique_ptr<Policy> {
                 return std::make_unique<EplbPolicy>(Settings{static_cast<int>(p.integer("interval")),
                                                              static_cast<int>(p.integer("updates")), p.number("slack"),
                                                              p.flag("hierarchical"), dispatch_of(p.word("dispatch"))});
               });
}

}  // namespace sojourn
