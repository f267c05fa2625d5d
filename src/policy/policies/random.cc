// random: a sanity end, ours. Every expert on a chiplet drawn at random, the copies of the budget likewise, every token
// group to a replica drawn at random; nothing is ever moved.
//
// Tiers are filled by density like everybody's: only the choice of chiplets and replicas is random. Draws come from the
// run's seed: one stream for the placement, one a window and layer for the tokens, so that no draw depends on another
// call.
#include "base/rng.h"
#include "policy/placement.h"

namespace sojourn {
namespace {

class RandomPolicy final : public Policy {
 public:
  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    seed_ = task.seed;
    const CostModel cost(*task.package, *task.model);
    const Profile& p = *task.profile;
    PlacementBuilder builder(task, cost);
    Rng rng(seed_, "random policy, placement");
    const auto chiplets = static_cast<std::uint64_t>(cost.chiplets());
    std::vector<FillItem> items;
    for (int l = 0; l < p.layers; ++l)
      for (int e = 0; e < p.experts; ++e) {
        const Demand d = demand_of(p, l, e);
        items.push_back({l, e, static_cast<int>(rng.below(chiplets)), d.active, d.tokens, false});
      }
    fill_tiers(builder, std::move(items), false);
    // A draw may hit a full chiplet or an expert with R^max replicas: it is lost, so the loop ends.
    for (std::int64_t draws = builder.copies_left(); draws > 0 && p.layers > 0; --draws) {
      const int l = static_cast<int>(rng.below(static_cast<std::uint64_t>(p.layers)));
      const int e = static_cast<int>(rng.below(static_cast<std::uint64_t>(p.experts)));
      const int c = static_cast<int>(rng.below(chiplets));
      Location at;
      if (builder.may_copy(l, e) && !builder.replicas_of(l, e).empty() && builder.find_at(l, c, false, at))
        builder.put(l, e, at);
    }
    out = builder.placed();
  }

  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    Rng rng(seed_, "random policy, tokens",
            static_cast<std::uint64_t>(view.window) * static_cast<std::uint64_t>(view.layers) +
                static_cast<std::uint64_t>(task.layer));
    for (size_t g = 0; g < task.groups.size(); ++g) {
      const TokenGroup& group = task.groups[g];
      if (group.tokens <= 0) continue;
      const auto list = view.directory->replicas(task.layer, group.expert);
      out.push_back({static_cast<int>(g), list[rng.below(list.size())], group.tokens});
    }
  }

 private:
  std::uint64_t seed_ = 1;
};

}  // namespace

void register_policies_random(PolicyRegistry& registry) {
  registry.add({"random", "experts, copies and replicas drawn at random from the run's seed (sanity end)", {}},
               [](const ParamSet&) -> std::unique_ptr<Policy> { return std::make_unique<RandomPolicy>(); });
}

}  // namespace sojourn
