// lplb: DeepSeek's LPLB (deepseek-ai/LPLB, 2025; README read, research stage): EPLB's layout, and in every window and
// layer a linear program that shares the exact loads over the edges between an expert's original and its replicas
// (policy/edge_flow.h).
//
// On this substrate [R]: layout, re-planning and its limits are those of `eplb` here (eplb.cc); the original is the
// oldest live replica, and edges are whatever that layout gives instead of LPLB's fixed topologies (cube, hypercube,
// torus), so nothing restricts it to groups of devices; flows are whole tiles. Which tokens take an edge is not LPLB's
// business: those with sources nearest the replica do (dispatch.h).
#include "policy/dispatch.h"
#include "policy/edge_flow.h"
#include "policy/policies.h"

namespace sojourn {
namespace {

class LplbPolicy final : public Policy {
 public:
  explicit LplbPolicy(const ParamSet& p)
      : updates_(static_cast<int>(p.integer("updates"))),
        layout_(make_policy("eplb", {{"interval", p.integer("interval")}, {"updates", p.integer("updates")}})) {}

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override { layout_->place(task, out); }
  void decide(const PolicyView& view, std::vector<Action>& out) override { layout_->decide(view, out); }

  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    if (!cost_.made_for(view.package, view.model)) cost_ = CostModel(*view.package, *view.model);
    groups_.build(task, view.experts);
    table_.clear();
    for (int e = 0; e < view.experts; ++e) {
      device_.clear();
      for (const int id : view.directory->replicas(task.layer, e))
        device_.push_back(view.directory->replica(id).at.chiplet);
      table_.add_expert(device_);
    }
    const EdgeFlow flow = level_by_edges(view.chiplets, table_, groups_.tokens(), cost_.tile());
    for (int e = 0; e < view.experts; ++e) {
      if (groups_.tokens(e) == 0) continue;
      const auto list = view.directory->replicas(task.layer, e);
      const auto first = static_cast<size_t>(table_.first[static_cast<size_t>(e)]);
      fill_quotas(cost_, *view.directory, task.groups, groups_.of(e), list,
                  std::span(flow.quota).subspan(first, list.size()), out);
    }
  }

  [[nodiscard]] ResidencyLimits limits(ResidencyLimits common) const override {
    common.updates_max = updates_;
    return common;
  }

 private:
  int updates_;
  std::unique_ptr<Policy> layout_;
  CostModel cost_;
  ExpertGroups groups_;
  ReplicaTable table_;
  std::vector<int> device_;
};

}  // namespace

void register_policies_lplb(PolicyRegistry& registry) {
  using I = std::int64_t;
  registry.add(
      {"lplb",
       "eplb's layout, the exact loads of every layer shared by a linear program over its replicas (DeepSeek LPLB)",
       {{"interval", Unit::windows, I{8}, 1, 1 << 20, {}, "windows between plans", "[R], as eplb"},
        {"updates", Unit::none, I{8}, 0, 4096, {}, "most updates a window (its own U^max)", "[R], as eplb"}}},
      [](const ParamSet& p) -> std::unique_ptr<Policy> { return std::make_unique<LplbPolicy>(p); });
}

}  // namespace sojourn
