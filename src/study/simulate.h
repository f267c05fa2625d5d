// One run: a policy serving the windows of one model and mode on a pipeline of packages.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bound/tier_rates.h"
#include "engine/span_sink.h"
#include "moe/executor.h"
#include "moe/windows.h"
#include "moe/workload.h"
#include "network/network.h"
#include "sojourn/model.h"
#include "sojourn/package.h"
#include "sojourn/policy.h"
#include "sojourn/results.h"

namespace sojourn {

/// Sees every MoE layer's work before it runs. Called from the threads that run policies.
class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  virtual void on_layer(const std::string& model, Mode mode, const std::string& policy, int window, int layer,
                        const LayerWork& work) = 0;
};

/// Everything policies share: same windows, same profile, same pipeline. Read-only during runs.
struct Scenario {
  ModelShape model;
  Mode mode = Mode::prefill;
  const Package* package = nullptr;
  std::shared_ptr<const Trace> trace;
  Origin origin = Origin::recorded;
  WindowPlan plan;
  Profile profile;
  std::vector<PipelineStage> stages;
  TierRates tier_rates;  ///< of the package, for the lower bound
  bool per_layer = false;
  std::uint64_t seed = 1;
  NetworkKind network = NetworkKind::packet;
  double copies = 1.3;      ///< B_res as a multiple of the routed footprint
  double ewma_alpha = 0.8;  ///< alpha of d-bar
  ResidencyLimits limits;   ///< budget is set per stage
  LayerObserver* observer = nullptr;
};

/// Is a trace's model name this model? The same word, or one of them with a suffix after a dash ("qwen1.5-moe-a2.7b"
/// for "qwen1.5-moe"); expert count and top-k must be equal too, which tells a model from its smaller sibling.
[[nodiscard]] bool recorded_from(const TraceMeta& trace, const ModelShape& model);

/// Can the model replay this trace? The finding says why not: another shape, or no tokens.
[[nodiscard]] Result<bool> replayable(const TraceMeta& trace, const ModelShape& model);

/// Checks trace against model and prepares windows, profile and pipeline. Errors as values.
[[nodiscard]] Result<std::shared_ptr<const Scenario>> make_scenario(ModelShape model, const Package& package,
                                                                    std::shared_ptr<const Trace> trace,
                                                                    const WindowOptions& windows, Scenario settings);

/// Runs every window. `stop()` is asked between windows; true abandons the run. Errors: a placement that does not fit.
[[nodiscard]] Result<RunResult> simulate(const Scenario& scenario,
                                         const std::function<std::unique_ptr<Policy>()>& new_policy,
                                         const std::string& policy_name, SpanSink* spans, int timeline_windows,
                                         const std::function<bool()>& stop);

}  // namespace sojourn
