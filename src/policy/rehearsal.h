// Rehearsal: the time of a candidate layout on warm-up windows, on the event engine that will run it.
//
// A closed form misses how dispatch, weight streams, compute and gather get into each other's way on shared links, and
// that is what decides between fine and coarse shards. Here one layer of one warm-up window is executed as the
// simulator would: same tiles, streams, flows and combine. What a profile does not hold is made up [R]: the tokens of
// an expert are dealt over the source chiplets in turn, and the gate takes no time (it is the same for every layout).
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "policy/cost.h"
#include "sojourn/policy.h"

namespace sojourn {

/// A mapper under test: groups of layer 0 of a directory to its replicas.
using RehearsedMapper = std::function<void(const DirectoryView&, const LayerTask&, std::vector<Assignment>&)>;

class Rehearsal {
 public:
  /// `stages_in_turn`: by the closed form of the layer instead (PlacementTask).
  Rehearsal(const Package& package, const ModelShape& model, bool stages_in_turn)
      : package_(package), model_(model), stages_in_turn_(stages_in_turn) {}

  /// Seconds from the routed groups to the last combine. `placed`: replicas of one layer; `tokens`: [expert] of the
  /// window. Every slice of every expert with tokens must be placed.
  [[nodiscard]] double time(std::span<const PlacedReplica> placed, std::span<const double> tokens,
                            const RehearsedMapper& mapper) const;

 private:
  const Package& package_;
  const ModelShape& model_;
  bool stages_in_turn_;
};

/// Every group to every shard of its expert: the only mapping when each slice lives once.
void map_to_all_shards(const DirectoryView& directory, const LayerTask& task, std::vector<Assignment>& out);

}  // namespace sojourn
