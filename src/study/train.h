// `sojourn train`: offline training of the slow loop's masked Double DQN (HCRMap 6.4, 6.9) on synthetic traces.
//
// An episode is one package of one model serving consecutive windows; each window the network picks one legal action
// (epsilon-greedy), the world returns its counterfactual reward (train_world.h), and a gradient step follows. The
// counterfactual of other actions of the same state costs little more, so no-op and a few drawn ones are judged too,
// each with the state it would have led to: a window gives some eight transitions [R]. Every episode draws from streams
// of its own, so that a run interrupted at any moment and resumed from its last saved state ends with the same bytes.
//
// The split: training and validation worlds are drawn by `sojourn trace synth`'s generator from two disjoint streams of
// seeds; no trace of a file is opened, so every shipped or recorded trace is held out.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "nn/double_dqn.h"
#include "sojourn/policy.h"
#include "study/train_world.h"

namespace sojourn {

struct TrainOptions {
  std::string package = "hcrmap-table1", models = "table2";
  std::vector<Mode> modes = {Mode::prefill, Mode::decode};
  std::uint64_t seed = 1;
  int steps = 10000;    ///< windows served while learning
  int episode = 48;     ///< windows an episode
  int variants = 3;     ///< traces a model, with knobs and seeds of their own
  int validations = 2;  ///< times the greedy policy is measured on validation worlds; 0: never
  int save_every = 40;  ///< episodes between saved states
  int prefill_tokens = 2048, decode_tokens = 512;
  // Hyper-parameters; the paper gives none [R].
  int branches = 6;  ///< further actions judged a window, beside the one taken and no-op
  int hidden = 64, batch = 64, replay = 16000, sync = 200, learn_from = 1000;
  double average_share = 0.3;  ///< the checkpoint is the mean of theta over this last share of the steps
  double gamma = 0.9, rate = 1e-3, rate_end = 5e-5, clip = 10;
  double epsilon_start = 1.0, epsilon_end = 0.05, epsilon_share = 0.6;  ///< linear over this share of the steps
  RewardTerms reward;
  std::string state_path;  ///< where the state is saved for --resume; empty: nowhere
  bool resume = false;
  std::vector<std::string> search_dirs;
};

struct TrainPoint {  ///< means since the point before
  int episode = 0, steps = 0;
  double reward = 0, loss = 0, epsilon = 0, legal = 0, acted = 0;
};
struct MarginPoint {  ///< the trained network with this margin on the validation worlds
  double margin = 0, over = 0;
};
struct ValidationPoint {  ///< routed-MoE time of the validation worlds over that without updates, less 1
  int steps = 0;
  double dqn = 0;
};

struct TrainResult {
  std::string checkpoint;  ///< text of the checkpoint file
  std::string weights_sha256, manifest_json;
  std::vector<TrainPoint> curve;
  std::vector<ValidationPoint> validation;
  std::vector<MarginPoint> margins;  ///< the best of them is the checkpoint's
  double amortised = 0;              ///< the closed-form rule on the validation worlds, as ValidationPoint::dqn
  bool interrupted = false;
};

/// Errors: inputs that do not fit, a state file of other options, a file that cannot be written (exit 3).
[[nodiscard]] Result<TrainResult> train_dqn(const TrainOptions& options, const PolicyRegistry& registry,
                                            ProgressSink& progress);

/// Temporary file, fsync, rename, fsync of the folder: after a crash there is the old file or the new one.
[[nodiscard]] Result<bool> write_durably(const std::string& path, const std::string& bytes);

}  // namespace sojourn
