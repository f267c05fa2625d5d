// `sojourn reproduce hcrmap`: the study of the paper's section 7 as a list of runs, and what follows from them as
// checks beside the paper's numbers.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "sojourn/policy.h"
#include "study/reproduce_paper.h"
#include "study/reproduce_view.h"
#include "study/sweep.h"

namespace sojourn {

struct ReproduceOptions {
  std::string system = "hcrmap";
  bool quick = false;
  std::string models;                 ///< empty: the paper's (quick: four of them)
  std::vector<std::string> policies;  ///< further policies beside the paper's; those not registered are left out
  bool policies_given = false;        ///< by the user: then each must be registered
  std::vector<std::pair<std::string, std::string>> traces;  ///< (model or "", file)
  int windows = 0, seeds = 0;                               ///< 0: the plan's
  std::uint64_t seed = 1;                                   ///< the first of the seeds
  int threads = 2;
  std::string state;               ///< file of finished runs; "" = memory
  std::string program;             ///< see SweepInputs
  std::vector<std::string> roots;  ///< folders with packages/, models/, traces/, systems/
};

/// Policies that take part beside the paper's when they are registered.
[[nodiscard]] const std::vector<std::string>& further_policies();

/// One number beside the paper's.
struct ReproduceCheck {
  std::string id;                  ///< "hcrmap.fig5.prefill.vs-hydra", "...@total-layer" away from the default reading
  std::string base, place;         ///< the id without system and reading; the place
  std::optional<double> paper;     ///< absent: the text gives no number
  std::optional<double> measured;  ///< absent: a run it needs is missing; the note says why
  std::string unit, kind, source, reading, note;
  std::optional<double> low, high;  ///< 95 % interval
  std::optional<double> limit;      ///< a reduction that no policy could exceed here, from the proven bound
  std::string verdict;              ///< see verdict_word()
  bool must_hold = false, holds = true;
};

/// A claim of the paper over the four readings: the rows of the first table of the report.
struct ReproduceClaim {
  std::string text, source;
  std::vector<std::string> bases;  ///< ids of the checks it rests on, "fig5.prefill.vs-hydra"
};

struct ReproduceResult {
  ReproduceOptions options;
  PaperNumbers paper;
  SweepInputs inputs;
  std::vector<SweepRun> runs;
  SweepOutcome outcome;
  std::vector<std::string> reduced;  ///< what --quick or an option left out
  std::vector<std::string> absent;   ///< what could not be run, and why
  std::vector<ReproduceCheck> checks;
  std::vector<ReproduceClaim> claims;
  std::vector<std::string> readings;                       ///< places of the first table
  std::vector<std::pair<std::string, std::string>> fixed;  ///< mode -> arm: strongest fixed-replica baseline
  std::vector<std::string> notes;                          ///< why results differ, measured
  std::string manifest_json;
  [[nodiscard]] const ReproduceCheck* find(const std::string& base, const std::string& place) const;
  /// False when a check that must hold does not.
  [[nodiscard]] bool sound() const;
};

/// Loads and plans. Errors: wrong inputs, all in one pass, before anything runs or is written (exit 2).
[[nodiscard]] Result<ReproduceResult> prepare_reproduce(const ReproduceOptions& options,
                                                        const PolicyRegistry& registry);
/// Runs what the state file does not hold yet and draws the conclusions. When interrupted, `outcome.interrupted` is set
/// and there are no checks. Errors: the state file (exit 2 or 3).
[[nodiscard]] Result<bool> run_reproduce(ReproduceResult& study, const PolicyRegistry& registry,
                                         ProgressSink& progress);

// The parts of it, for tests.

/// Fills inputs.places, inputs.arms and runs.
void plan_hcrmap(ReproduceResult& study, const PolicyRegistry& registry);
/// Fills checks, claims, fixed and notes from the runs.
void check_hcrmap(ReproduceResult& study);
[[nodiscard]] std::string reproduce_manifest(const ReproduceResult& study, const PolicyRegistry& registry);

/// How a measured reduction stands to the paper's: "agrees" (within a tenth, or the paper's number lies in an interval
/// that is above zero), "larger", "smaller" (the sign is certain), "none" (zero is in the interval), "opposite"; for
/// claims without a number "holds" or "does not hold".
[[nodiscard]] std::string verdict_word(double measured, std::optional<double> low, std::optional<double> high,
                                       std::optional<double> paper);

// Points of the sweeps, and names of places.
[[nodiscard]] std::string copies_place(double copies, const std::string& reading);
[[nodiscard]] std::string scale_place(double scale, const std::string& reading);
[[nodiscard]] std::vector<double> copies_points(bool quick);
[[nodiscard]] std::vector<double> scale_points(bool quick);
[[nodiscard]] std::string reading_text(const std::string& place);
inline constexpr const char* kDefaultPlace = "table1-package";

}  // namespace sojourn
