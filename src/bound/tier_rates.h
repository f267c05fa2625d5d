// How fast groups of tiers can deliver weights to the chiplets that compute with them, over banks and links at once:
//
//   F(Q) = max sum_{s in Q, c} z_{s,c}   subject to   sum_c z_{s,c} <= BW_s,   sum_{(s,c) over u} z_{s,c} <= B_u
//
// for every set Q of tiers; z_{s,c} is the rate from bank set s to a compute chiplet c that sees it, over the one route
// it has. Whatever an execution reads in a time T from the tiers of Q, divided by T, is such a z, so no execution reads
// more than F(Q) T. Assumption: none; queueing, pacing and other traffic only lower what is read.
#pragma once
#include <array>

#include "sojourn/package.h"

namespace sojourn {

struct TierRates {
  static constexpr std::size_t kSubsets = 1U << kTiers;
  std::array<double, kSubsets> bytes_per_s{};  ///< F(Q); bit t of the index: tier t is in Q
  std::array<bool, kSubsets> links{};          ///< F(Q) is less than the banks' bandwidth: links are what limits it
};

[[nodiscard]] TierRates tier_rates(const Package& package);

}  // namespace sojourn
