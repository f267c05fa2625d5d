// The workload adapter: trace + model + package -> what each package of a pipeline executes, layer by layer.
//
// A model larger than a package is cut into a pipeline: as many packages as footprint x copies needs; the layers of a
// package share its tiers (readings: "a model larger than a package"). With `per_layer` every MoE layer has the tiers
// to itself (capacity_scope = "layer") and nothing is handed over.
#pragma once
#include <cstdint>
#include <vector>

#include "moe/windows.h"
#include "sojourn/model.h"
#include "sojourn/package.h"
#include "sojourn/policy.h"
#include "sojourn/trace.h"

namespace sojourn {

/// A contiguous run of blocks on one package.
struct PipelineStage {
  int first_block = 0, block_count = 0;
  int first_moe = 0, moe_count = 0;  ///< MoE layers among them, numbered over the model
  bool head = false;                 ///< carries the LM head
  std::vector<Bytes> fixed;          ///< [bank set] bytes held by non-routed weights
};

/// Cuts the model. Errors: an expert that no tier can hold; one layer that does not fit a package.
[[nodiscard]] Result<std::vector<PipelineStage>> partition(const ModelShape& model, const Package& package,
                                                           double copies, bool per_layer);

/// Experts that fit into the package beside `fixed`.
[[nodiscard]] std::int64_t expert_slots(const Package& package, Bytes expert_bytes, const std::vector<Bytes>& fixed);

/// Trace layer that MoE layer i of `layers` replays: itself where the trace has as many, else spread evenly.
[[nodiscard]] int trace_layer(int moe_layer, int moe_layers, int trace_layers);

/// Routed groups of one window and layer, by source then expert; tokens by (source, expert) in `counts`.
class Router {
 public:
  Router(const Trace& trace, int experts, int chiplets);
  /// Fills groups and demand for the tokens of a window.
  void route(int layer_of_trace, const std::vector<std::uint32_t>& tokens);
  [[nodiscard]] const std::vector<TokenGroup>& groups() const { return groups_; }
  [[nodiscard]] const std::vector<int>& demand() const { return demand_; }  ///< [expert]
  [[nodiscard]] const std::vector<int>& counts() const { return counts_; }  ///< [chiplet][expert]

 private:
  const Trace& trace_;
  int experts_, chiplets_;
  std::vector<int> counts_, demand_;
  std::vector<TokenGroup> groups_;
};

/// Warm-up statistics over all MoE layers of the model.
[[nodiscard]] Profile profile_windows(const Trace& trace, const WindowPlan& plan, int moe_layers, int experts,
                                      int chiplets);
/// The part of a profile that belongs to one stage.
[[nodiscard]] Profile slice(const Profile& all, int first_moe, int moe_count);

/// Durations of non-routed events: compute on all cores or weights and KV from HBM, whichever is longer.
struct BlockTime {
  Ps duration = 0;
  Macs macs = 0;
  Bytes bytes = 0;
};
[[nodiscard]] BlockTime block_time(const Package& package, const BlockWork& work, int throttle);
/// The gate of one layer: E d MACs a token, spread over the chiplets, after the fixed overhead.
[[nodiscard]] Ps gate_time(const Package& package, const BlockWork& work, int throttle);
/// The tier non-routed weights and KV stream from: HBM, else the tier with most bandwidth.
[[nodiscard]] Tier streaming_tier(const Package& package);

}  // namespace sojourn
