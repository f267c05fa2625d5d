// A list of runs over models, modes, packages, budgets, policies and seeds, executed on a few threads, each finished
// run stored at once. Runs that the store already holds are not done again.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "sojourn/model.h"
#include "sojourn/policy.h"
#include "sojourn/results.h"
#include "study/compare.h"
#include "study/results_store.h"

namespace sojourn {

/// Where runs happen. The pipeline of packages is cut for `cut_*`, so that points of one sweep share a pipeline.
struct Place {
  std::string id;       ///< "table1-package", "copies-1.5", ...
  std::string package;  ///< preset or path
  bool per_layer = false;
  double copies = 1.3;       ///< B_res over the routed footprint
  double sram = 1, hbm = 1;  ///< factors on the capacity of every bank of the tier
  double cut_copies = 1.3, cut_sram = 1, cut_hbm = 1;
};

/// A policy with settings, under a name of its own.
struct Arm {
  std::string id;     ///< "hcrmap", "hcrmap:no-link"
  std::string label;  ///< for people
  PolicySpec policy;
};

struct SweepRun {
  std::size_t model = 0, place = 0, arm = 0;
  Mode mode = Mode::prefill;
  std::uint64_t seed = 1;
  int windows = 8;
};

struct SweepInputs {
  std::vector<ModelShape> models;
  std::vector<std::shared_ptr<const Trace>> traces;  ///< one a model
  std::vector<std::pair<std::string, Package>> packages;
  std::vector<Place> places;
  std::vector<Arm> arms;
  int warmup = 8, prefill_tokens = 2048, decode_tokens = 512, decode_context = 1024;
  NetworkKind network = NetworkKind::packet;
  std::vector<std::string> search_dirs;  ///< folders with checkpoints/
  std::string program;  ///< version and digest of the executable: results of another build are not reused
};

struct SweepFailure {
  std::size_t run = 0;
  std::string message;
};

struct SweepOutcome {
  std::vector<std::optional<RunResult>> runs;  ///< in the order asked for; nothing where it failed
  std::vector<SweepFailure> failures;
  bool interrupted = false;
  int reused = 0, simulated = 0;
};

/// The package with the capacity of every SRAM and HBM bank scaled; reservations stay, bandwidths stay.
[[nodiscard]] Package scaled_package(const Package& package, double sram, double hbm);

/// Errors: an unknown policy, parameter or checkpoint (exit 2), the store (exit 3). A run whose placement or pipeline
/// does not fit is a failure of that run only.
[[nodiscard]] Result<SweepOutcome> run_sweep(const SweepInputs& inputs, const std::vector<SweepRun>& runs,
                                             const PolicyRegistry& registry, ResultsStore& store, int threads,
                                             ProgressSink& progress);

}  // namespace sojourn
