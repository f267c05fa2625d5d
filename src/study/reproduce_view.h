// Looks up the runs of a study and sums them up: geometric means over models with 95 % intervals over windows and
// seeds.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "study/sweep.h"

namespace sojourn {

/// A number with its interval. Not valid: a run it needs is missing.
struct Estimate {
  bool valid = false;
  double value = 0, low = 0, high = 0;
  bool has_interval = false;
  int models = 0, windows = 0, seeds = 0;
};

/// Where a run is looked up: ids of place and arm.
struct At {
  std::string place, arm;
};

class StudyView {
 public:
  StudyView(const SweepInputs& inputs, const std::vector<SweepRun>& runs, const SweepOutcome& outcome);

  [[nodiscard]] const RunResult* run(const At& at, Mode mode, std::size_t model, std::uint64_t seed) const;
  [[nodiscard]] bool has(const At& at, Mode mode) const { return !seeds(at, mode).empty(); }
  [[nodiscard]] std::vector<std::uint64_t> seeds(const At& at, Mode mode) const;
  /// Models that have a run of every one of these in every seed all of them share.
  [[nodiscard]] std::vector<std::size_t> models(const std::vector<At>& all, Mode mode) const;

  /// geomean over models of latency(a) / latency(b); the interval is a bootstrap of 999 draws: seeds with replacement,
  /// within a seed its windows with replacement, the same windows for a and b. `only`: these models, empty = all.
  [[nodiscard]] Estimate latency_ratio(const At& a, const At& b, Mode mode,
                                       const std::vector<std::size_t>& only = {}) const;
  /// geomean over models of value(a) / value(b), by seed; Student's t over seeds, no interval with one seed.
  [[nodiscard]] Estimate value_ratio(const At& a, const At& b, Mode mode,
                                     const std::function<double(const RunResult&)>& value) const;
  /// Mean over models of value; interval as above.
  [[nodiscard]] Estimate mean_value(const At& a, Mode mode, const std::function<double(const RunResult&)>& value) const;
  /// Mean over models, those where value(b) is 0 left out, of 1 - value(a) / value(b), with the 95 % interval over
  /// models (as in "per benchmark, averaged").
  [[nodiscard]] Estimate mean_reduction(const At& a, const At& b, Mode mode,
                                        const std::function<double(const RunResult&)>& value) const;
  /// Latency of one model over seeds and windows, ps; 0 when missing.
  [[nodiscard]] double latency(const At& at, Mode mode, std::size_t model) const;
  /// Mean over seeds of value for one model; NaN when missing.
  [[nodiscard]] double value(const At& at, Mode mode, std::size_t model,
                             const std::function<double(const RunResult&)>& value) const;

  [[nodiscard]] const SweepInputs& inputs() const { return inputs_; }
  /// Every run there is.
  void each(const std::function<void(const SweepRun&, const RunResult&)>& f) const;

 private:
  [[nodiscard]] std::vector<std::uint64_t> shared_seeds(const std::vector<At>& all, Mode mode) const;

  const SweepInputs& inputs_;
  const std::vector<SweepRun>& runs_;
  const SweepOutcome& outcome_;
  std::map<std::tuple<std::string, std::string, int, std::size_t, std::uint64_t>, std::size_t> index_;
};

/// 1 - e, with its interval turned round; in per cent.
[[nodiscard]] Estimate reduction_percent(const Estimate& ratio);

}  // namespace sojourn
