// Expert loads without token order: counts per step, layer and expert. What counts-only formats give; it can be
// summarised, planned on and exported, but never turned into a per-token trace.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sojourn/trace.h"

namespace sojourn {

/// Counts of expert pairs in two layers of the same tokens.
struct LayerTransition {
  int from = 0, to = 0;        ///< layer indices
  std::vector<double> counts;  ///< [experts of `from`][experts of `to`]
};

struct LoadData {
  TraceMeta meta;  ///< layers, experts, top_k (0 = unknown), tokens (0 = unknown), origin, format, warnings
  int layers = 0, experts = 0;
  std::int64_t steps = 0;
  std::vector<double> counts;           ///< [steps][layers][experts]
  std::vector<std::string> step_names;  ///< per step (file, domain, iteration), may be empty
  bool traffic = true;                  ///< false: not token loads (e.g. counts of prompts); not fit for planning
  std::vector<LayerTransition> transitions;
  [[nodiscard]] double at(std::int64_t step, int layer, int expert) const {
    return counts[(static_cast<std::size_t>(step) * static_cast<std::size_t>(layers) +
                   static_cast<std::size_t>(layer)) *
                      static_cast<std::size_t>(experts) +
                  static_cast<std::size_t>(expert)];
  }
  /// Sum over steps, [layers][experts].
  [[nodiscard]] std::vector<std::vector<double>> total() const;
};

/// Collects counts in any order and checks them (finite, not negative, bounded size).
class LoadBuilder {
 public:
  explicit LoadBuilder(std::string format) : format_(std::move(format)) {}
  /// `layer` is the file's own number. False with a reason when out of range.
  [[nodiscard]] bool add(std::int64_t step, std::int64_t layer, std::int64_t expert, double count, std::string& why);
  void name_step(std::int64_t step, std::string name);
  void declare_experts(int experts) { experts_ = experts > experts_ ? experts : experts_; }
  void declare_layer(std::int64_t layer);
  TraceMeta meta;
  bool traffic = true;
  [[nodiscard]] Result<LoadData> finish(const SourceSpan& where);

 private:
  struct Cell {
    std::int64_t step;
    int layer, expert;
    double count;
  };
  std::string format_;
  int experts_ = 0;
  std::vector<Cell> cells_;
  std::vector<std::string> names_;
  std::vector<int> layers_;
  std::int64_t steps_ = 0;
};

/// Loads of a trace: one step, counts of every layer.
[[nodiscard]] LoadData loads_of(const Trace& trace);

}  // namespace sojourn
