// A proven lower bound on the latency of one routed MoE layer, for any placement, copies and assignment of the same
// routing on the same package.
//
//   T >= gate + max( W / sum_c Pi_c , T_mem ) + min_a combine_a
//   W     = sum_e ops tile ceil(N_e / tile): splitting an expert over replicas only adds partly filled tiles.
//   T_mem = least T with sum_t min(Cap_t, BW_t T) >= active experts x S: every active expert is read at least once,
//           from somewhere, and a tier can deliver neither more than it holds nor more than its bandwidth.
//
// Proof sketch: gate precedes every event of the layer. All expert work is done on the package's cores, W of it at
// least, at no more than sum Pi; all weights pass their banks. The layer ends after the last group's gather and the
// combine of its aggregator, which no expert work of that group can follow. Rounding to picoseconds is allowed for by
// one picosecond an active expert. Power capping only slows compute and is left out, so the bound holds with it too.
#pragma once
#include <string>
#include <vector>

#include "sojourn/package.h"
#include "sojourn/units.h"

namespace sojourn {

struct BoundTask {
  const std::vector<int>* demand = nullptr;  ///< N_e
  std::vector<int> aggregated;               ///< [chiplet] expert outputs combined there
  Bytes expert_bytes = 0;
  Macs macs_per_token = 0, combine_macs_per_token = 0;
  Ps gate = 0;
  std::vector<Bytes> tier_capacity;  ///< [tier] bytes usable for experts
};

struct LayerBound {
  Ps latency = 0;
  Ps compute = 0, memory = 0;
  const char* resource = "";  ///< "compute" or "memory"
};

[[nodiscard]] LayerBound layer_bound(const Package& package, const BoundTask& task);

}  // namespace sojourn
