// Closed-form lower bound; see bound.h for the argument.
#include "bound/bound.h"

#include <algorithm>
#include <array>

namespace sojourn {

LayerBound layer_bound(const Package& p, const BoundTask& task) {
  LayerBound b;
  Macs work = 0;
  int active = 0;
  const Macs tile = p.tile_tokens;
  for (int n : *task.demand) {
    if (n == 0) continue;
    ++active;
    work += task.macs_per_token * tile * ((n + tile - 1) / tile);
  }
  std::uint64_t rate = 0;
  for (int c = 0; c < p.compute_count; ++c) rate += p.chiplet_rate(c).per_second();
  b.compute = std::max<Ps>(0, Rate(rate).time(work) - active - 1);

  // Fill tiers for a time T: the total delivered is concave and piecewise linear in T; a tier stops at Cap_t / BW_t.
  std::array<std::uint64_t, kTiers> bandwidth{};
  for (const BankSet& set : p.bank_sets) bandwidth[static_cast<std::size_t>(set.tier)] += set.bandwidth;
  double left = static_cast<double>(active) * static_cast<double>(task.expert_bytes);
  std::array<bool, kTiers> full{};
  double t = 0, delivering = 0;
  for (std::uint64_t bw : bandwidth) delivering += static_cast<double>(bw);
  while (left > 0 && delivering > 0) {
    // The next tier to run dry, or the end.
    double step = left / delivering;
    int dry = -1;
    for (int i = 0; i < kTiers; ++i) {
      const auto k = static_cast<std::size_t>(i);
      if (full[k] || bandwidth[k] == 0) continue;
      const double empty = static_cast<double>(task.tier_capacity[k]) / static_cast<double>(bandwidth[k]) - t;
      if (empty < step) {
        step = empty;
        dry = i;
      }
    }
    left -= delivering * step;
    t += step;
    if (dry < 0) break;
    full[static_cast<std::size_t>(dry)] = true;
    delivering -= static_cast<double>(bandwidth[static_cast<std::size_t>(dry)]);
  }
  b.memory = std::max<Ps>(0, static_cast<Ps>(t * 1e12 * (1 - 1e-9)) - active - 1);
  Ps combine = -1;
  for (std::size_t c = 0; c < task.aggregated.size(); ++c) {
    if (task.aggregated[c] == 0) continue;
    const Ps own = p.chiplet_rate(static_cast<int>(c)).time(task.aggregated[c] * task.combine_macs_per_token);
    combine = combine < 0 ? own : std::min(combine, own);
  }
  b.latency = task.gate + std::max(b.compute, b.memory) + std::max<Ps>(0, combine);
  b.resource = b.compute >= b.memory ? "compute" : "memory";
  return b;
}

}  // namespace sojourn
