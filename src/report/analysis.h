// What the tables and the page say beyond the raw numbers: who wins and why, and the paper's figures beside ours.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sojourn/results.h"
#include "study/reproduce_paper.h"

namespace sojourn {

/// Distinct values in order of first appearance.
[[nodiscard]] std::vector<std::string> modes_of(const CompareResult& result);
[[nodiscard]] std::vector<std::string> models_of(const CompareResult& result);
[[nodiscard]] std::vector<std::string> policies_of(const CompareResult& result);
[[nodiscard]] const RunResult* find_run(const CompareResult& result, const std::string& model, const std::string& mode,
                                        const std::string& policy);

/// How far the routed-MoE latency is above its lower bound, as a share; nothing without a bound.
[[nodiscard]] std::optional<double> above_bound(const RunResult& run);
/// Share of each stage in the sum of all.
[[nodiscard]] std::array<double, kStages> stage_shares(const RunResult& run);
/// Kind of a resource by its name: "link c0->c1" -> "link"; otherwise the letters before the first digit or blank.
[[nodiscard]] std::string resource_kind(const std::string& resource);
/// Layer executions bound by each kind.
[[nodiscard]] std::map<std::string, int> bottleneck_kinds(const RunResult& run);

struct Winner {
  std::string model, mode, policy, against;  ///< against: `static`, or the runner-up when static was not run
  double reduction = 0;                      ///< 1 - latency / latency of `against`
  bool within_noise = false;                 ///< the 95 % intervals of winner and runner-up overlap
  std::string runner_up;
  std::string reason;  ///< the stage and resource it relieved, from the data
};
/// One a (model, mode), in order of appearance.
[[nodiscard]] std::vector<Winner> winners(const CompareResult& result);

/// A published figure: the geomean reduction over the paper's models, and where it is from.
struct PaperFigure {
  double reduction = 0;
  std::string source;
};
/// The published figure a summary row may be held against; nothing where there is none, a model is not of the paper's
/// set, or `paper` is null.
[[nodiscard]] std::optional<PaperFigure> paper_figure(const SummaryRow& row, const PaperNumbers* paper);
/// As printed in the paper: 0.436 -> "43.6", 0.2495 -> "24.95".
[[nodiscard]] std::string paper_percent(const PaperFigure& figure);

/// The manifest as name/value lines for people: nested objects as "a.b", lists of texts one line each.
struct ManifestLine {
  std::string name, value;
};
[[nodiscard]] std::vector<ManifestLine> manifest_lines(const std::string& manifest_json);
/// The texts of its "assumptions" list; empty when there is none.
[[nodiscard]] std::vector<std::string> assumptions(const std::string& manifest_json);

}  // namespace sojourn
