// static: the paper's denominator ("single-copy static placement baseline", HCRMap 7.1).
//
// Re-implementation [R]: experts in id order in contiguous blocks over the chiplets, tiers filled by profiled hotness
// (placement.h), nearest shared set, no action, forced assignment. The tier filling makes it a strong baseline: it uses
// SRAM and HBM as well as a fixed layout can.
#include "policy/placement.h"

namespace sojourn {
namespace {

class StaticPolicy final : public Policy {
 public:
  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const CostModel cost(*task.package, *task.model);
    PlacementBuilder builder(task, cost);
    std::vector<FillItem> items;
    const Profile& p = *task.profile;
    for (int l = 0; l < p.layers; ++l)
      for (int e = 0; e < p.experts; ++e) {
        const Demand d = demand_of(p, l, e);
        items.push_back({l, e, contiguous_chiplet(l, e, p.experts, cost.chiplets()), d.active, d.tokens, false});
      }
    fill_tiers(builder, std::move(items), false);
    out = builder.placed();
  }
  [[nodiscard]] double budget_factor(double /*common*/) const override { return 1.0; }
};

}  // namespace

void register_policies_static(PolicyRegistry& registry) {
  registry.add({"static", "one copy of every expert in id order, tiers filled by profiled hotness, never changed", {}},
               [](const ParamSet&) -> std::unique_ptr<Policy> { return std::make_unique<StaticPolicy>(); });
}

}  // namespace sojourn
