// A seeded generator of router traces whose knobs are the statistics that real traces are described by, and a
// deterministic search that finds the knobs for given statistics. Its traces are marked synthetic, or calibrated when
// fitted.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sojourn/params.h"
#include "sojourn/trace.h"
#include "trace/stats.h"

namespace sojourn {

/// The generator's parameter record: layers, experts, top_k, tokens, domains, zipf, domain_mix, clusters, coactivation,
/// drift, drift_every, persistence, length_mean, length_spread, prefill.
[[nodiscard]] const std::vector<Param>& synth_params();

/// Same parameters and seed, same trace.
[[nodiscard]] Result<TraceData> synthesise(const ParamSet& params, std::uint64_t seed);

/// Statistics to match (means over layers); those not given are free.
struct SynthTargets {
  std::optional<double> gini, max_over_mean, top10pct_share, reuse, window_correlation_512;
  [[nodiscard]] static SynthTargets of(const TraceStats& stats);
  [[nodiscard]] static SynthTargets of(const LoadStats& stats);
};

struct SynthFit {
  ParamSet params;
  std::string details;  ///< JSON: per statistic target, reached and residual; the knobs found
};
/// Coordinate search over zipf, persistence, domain_mix and drift by golden sections, on a short trace of the same
/// shape and a fixed seed. `start` gives the shape and every knob that no target fixes.
[[nodiscard]] Result<SynthFit> fit_synth(const SynthTargets& targets, ParamSet start, std::uint64_t seed);

}  // namespace sojourn
