// A frozen Q-network on disk: JSON with the network's shape, the names of its inputs, its weights and what trained it.
// Weights are decimal with nine digits, which fp32 survives exactly; `weights_sha256` is over them as little-endian
// fp32 and the margin, so an edited or torn file is refused.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nn/mlp.h"
#include "sojourn/diagnostics.h"
#include "sojourn/params.h"

namespace sojourn {

inline constexpr const char* kShippedCheckpoint = "hcrmap-dqn";

struct DqnCheckpoint {
  std::shared_ptr<const Mlp> network;
  double margin = 0;  ///< least advantage over no-op that is acted on; see make_dqn()
  std::string weights_sha256;
  std::string training;  ///< JSON: seed, steps, package, models, options; never read back
};

[[nodiscard]] std::string dqn_checkpoint_text(const DqnCheckpoint& checkpoint);
/// Errors name the file and say how to get a good one: not ours, another feature set, wrong size, hash differs.
[[nodiscard]] Result<DqnCheckpoint> parse_dqn_checkpoint(const std::string& text, const std::string& name);

/// The network `hcrmap` uses unless told otherwise, compiled in from checkpoints/hcrmap-dqn.json.
[[nodiscard]] const std::string& shipped_dqn_text();

/// `name`: kShippedCheckpoint, a name below `dirs`/checkpoints (without .json), or a path.
[[nodiscard]] Result<DqnCheckpoint> load_dqn_checkpoint(const std::string& name, const std::vector<std::string>& dirs);
/// Finds and checks the file a policy's parameters name, before anything runs; puts its path in their place. Parameters
/// without a `checkpoint` pass.
[[nodiscard]] Result<bool> resolve_dqn_checkpoint(ParamSet& params, const std::vector<std::string>& dirs);

}  // namespace sojourn
