// Everything a training run needs to go on: networks, optimiser, replay, learning curve, and where it stood. Binary, of
// the machine that wrote it; guarded by a hash of the options and of its own bytes.
#pragma once
#include <string>
#include <vector>

#include "study/train.h"

namespace sojourn {

struct TrainState {
  int episode = 0, steps = 0, learned = 0;
  DoubleDqn dqn;
  Replay replay;
  Eigen::VectorXf average;  ///< running mean of theta since averaging began
  int averaged = 0;
  std::vector<TrainPoint> curve;
  std::vector<ValidationPoint> validation;
  TrainPoint open;  ///< sums of the point under way
  int open_steps = 0, open_learned = 0;
};

[[nodiscard]] std::string train_state_bytes(TrainState& state, const std::string& options_sha256);
/// Fills a state of the right sizes. Errors: torn, or of other options.
[[nodiscard]] Result<bool> read_train_state(const std::string& path, const std::string& options_sha256,
                                            TrainState& state);

}  // namespace sojourn
