// `sojourn compare`: policies side by side on the same package, models, traces and windows.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "engine/span_sink.h"
#include "moe/windows.h"
#include "sojourn/model.h"
#include "sojourn/policy.h"
#include "sojourn/results.h"
#include "study/simulate.h"

namespace sojourn {

struct PolicySpec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> settings;  ///< from --set NAME.param=value
};

struct CompareOptions {
  std::string package = "hcrmap-table1";  ///< preset or path
  std::string models = "table2";          ///< list or group
  std::vector<Mode> modes = {Mode::prefill, Mode::decode};
  std::vector<PolicySpec> policies;
  std::vector<std::pair<std::string, std::string>> traces;  ///< (model or "" for every model of its shape, file)
  int windows = 32, warmup = 8;
  int prefill_tokens = 2048, decode_tokens = 512, decode_context = 1024;
  std::uint64_t seed = 1;
  NetworkKind network = NetworkKind::packet;
  Mix mix = Mix::mixed;
  int moe_layers = 0;      ///< only the first so many MoE layers of each model; 0 = all
  bool per_layer = false;  ///< capacity_scope = "layer"
  double copies = 1.3;     ///< resident-copy budget over the routed footprint
  double ewma_alpha = 0.8;
  ResidencyLimits limits;  ///< replicas_max, updates_max, age_min, link_threshold
  int threads = 2;
  int timeline_windows = 1;              ///< scored windows drawn in the timeline
  LayerObserver* observer = nullptr;     ///< sees every layer of every run
  std::vector<std::string> search_dirs;  ///< roots that hold packages/, models/, traces/
};

/// Runs every (model, mode, policy). `spans` receives the timeline of the first model and mode under the last policy;
/// may be null. Errors: anything wrong with the inputs, all of it in one pass; nothing has run then.
[[nodiscard]] Result<CompareResult> run_compare(const CompareOptions& options, const PolicyRegistry& policies,
                                                ProgressSink& progress, SpanSink* spans = nullptr);

/// Geometric-mean reductions of every policy against every other, by mode and origin.
[[nodiscard]] std::vector<SummaryRow> summarise(const std::vector<RunResult>& runs);

/// The manifest of a comparison, and the options it stands for. Errors of the latter: not a manifest of ours.
[[nodiscard]] std::string write_manifest(const CompareOptions& options, const PolicyRegistry& policies,
                                         const CompareResult& result,
                                         const std::vector<std::shared_ptr<const Scenario>>& scenarios);
[[nodiscard]] Result<CompareOptions> read_manifest(const std::string& json, const std::string& name);

}  // namespace sojourn
