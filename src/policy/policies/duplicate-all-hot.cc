// duplicate-all-hot: a sanity end, ours. Copies of the hottest experts on every chiplet, as far as the byte budget
// goes; tokens to the nearest replica; nothing is ever moved.
//
// First replicas lie as in `static`. Then rank by rank, the layers in turn: the expert of that rank gets a copy on
// every chiplet that has none, nearest to its first replica first, until the budget is used up. `replicas` is its own
// R^max (the common one would forbid the very idea). Replicas are expected to carry what their chiplet's own sources
// send.
#include <numeric>

#include "policy/dispatch.h"
#include "policy/moves.h"
#include "policy/placement.h"

namespace sojourn {
namespace {

class DuplicateAllHotPolicy final : public Policy {
 public:
  DuplicateAllHotPolicy(int replicas, Dispatch dispatch) : replicas_(replicas), dispatcher_(dispatch) {}

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const CostModel cost(*task.package, *task.model);
    const Profile& p = *task.profile;
    PlacementBuilder builder(task, cost);
    const std::vector<int> ranks = demand_ranks(p);
    const int most = std::min(cost.chiplets(), std::max(1, task.limits.replicas_max));
    std::int64_t copies = builder.copies_left();
    std::vector<FillItem> items;
    std::vector<int> order(static_cast<size_t>(cost.chiplets())), expert(ranks.size());
    for (size_t i = 0; i < ranks.size(); ++i) {  // [layer][rank] expert
      const size_t row = i / static_cast<size_t>(p.experts) * static_cast<size_t>(p.experts);
      expert[row + static_cast<size_t>(ranks[i])] = static_cast<int>(i - row);
    }
    for (int rank = 0; rank < p.experts; ++rank)
      for (int l = 0; l < p.layers; ++l) {
        const int e = expert[static_cast<size_t>(l) * static_cast<size_t>(p.experts) + static_cast<size_t>(rank)];
        const int home = contiguous_chiplet(l, e, p.experts, cost.chiplets());
        const Demand d = demand_of(p, l, e);
        const int extra = static_cast<int>(std::min<std::int64_t>(copies, most - 1));
        const double share = d.tokens / (extra + 1);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return cost.hops(home, a) < cost.hops(home, b); });
        for (int i = 0; i <= extra; ++i)
          items.push_back({l, e, order[static_cast<size_t>(i)], extra > 0 ? activity(share) : d.active, share, i > 0});
        copies -= extra;
      }
    fill_tiers(builder, std::move(items), false);
    out = builder.placed();
  }

  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    if (!cost_.made_for(view.package, view.model)) cost_ = CostModel(*view.package, *view.model);
    dispatcher_.assign(cost_, *view.directory, task, out);
  }

  [[nodiscard]] ResidencyLimits limits(ResidencyLimits common) const override {
    common.replicas_max = replicas_;
    return common;
  }

 private:
  int replicas_;
  CostModel cost_;
  Dispatcher dispatcher_;
};

}  // namespace

void register_policies_duplicate_all_hot(PolicyRegistry& registry) {
  registry.add(
      {"duplicate-all-hot",
       "copies of the hottest experts on every chiplet as far as the budget goes, nearest replica (sanity end)",
       {dispatch_param("nearest", "ours"),
        {"replicas", Unit::none, std::int64_t{64}, 1, 4096, {}, "most replicas of an expert (its own R^max)", "ours"}}},
      [](const ParamSet& p) -> std::unique_ptr<Policy> {
        return std::make_unique<DuplicateAllHotPolicy>(static_cast<int>(p.integer("replicas")),
                                                       dispatch_of(p.word("dispatch")));
      });
}

}  // namespace sojourn
