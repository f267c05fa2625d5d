// The linear program of LPLB (deepseek-ai/LPLB): how many tokens of each replicated expert leave its original device.
//
//   edge       a redundant replica r of expert e: from the device of e's first replica to r's
//   minimise   t   with  base_d - sum of flows out of d + sum of flows into d <= t   for every device d
//              flow_r >= 0,  sum over the edges of e <= units of e               (an expert's capacity)
//   base_d     units of the experts whose first replica is on d
//
// A unit is `unit` tokens, an expert's last one perhaps fewer: LPLB counts tokens (1), but a broken tile costs as much
// as a whole one. Whole units: with T = ceil(t) fixed the rows are those of a transport problem, whose corners are
// integral; a second program over them, with as few rerouted units as possible, gives flows that never exceed T, which
// is the least possible.
//
// Source: LPLB's README (its code solves the first program by an interior-point method on one GPU multiprocessor and
// samples tokens by the result). Assumption: loads are units; banks, tiers and links are not seen.
#pragma once
#include <span>
#include <vector>

#include "policy/least_loaded.h"

namespace sojourn {

struct EdgeFlow {
  double bound = 0;        ///< t, units: the optimum of the first program
  std::vector<int> quota;  ///< [replica of the table] tokens
};

/// `table`: replicas by expert, the original first; `tokens` by expert.
[[nodiscard]] EdgeFlow level_by_edges(int devices, const ReplicaTable& table, std::span<const int> tokens, int unit);

}  // namespace sojourn
