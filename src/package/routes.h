// Route tables of a package: which links a transfer between two chiplets takes. Private to src/package.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "package/topologies.h"
#include "sojourn/diagnostics.h"
#include "sojourn/package.h"

namespace sojourn {

/// Node ids: the core array of compute chiplet c is c, IO chiplet i is i (its index among chiplets), the router of
/// compute chiplet c is chiplets.size() + c. A route between chiplets is injection, D2D hops, ejection.
[[nodiscard]] inline int router_node(const Package& package, int chiplet) {
  return package.chiplets[static_cast<std::size_t>(chiplet)].compute
             ? static_cast<int>(package.chiplets.size()) + chiplet
             : chiplet;
}

/// Reports chiplets that cannot be reached from chiplet 0 or cannot reach it, and which link is missing.
void check_reachable(const Package& package, const SourceSpan& where, Diagnostics& problems);

/// Fills route_links and route_first for every pair of chiplets (pairs of other nodes stay empty).
/// "xy": `topology.next_xy` between compute chiplets; an IO chiplet is entered and left through the attached chiplet
/// with the least route latency (then hops, then lowest number). "table": least latency, then hops, then lowest link id
/// at each step; may pass through IO chiplets. Reports a package whose routes exceed `most_entries`.
void fill_routes(Package& package, const TopologyGraph& topology, std::int64_t most_entries, const SourceSpan& where,
                 Diagnostics& problems);

/// Sum of the link latencies of a route between two chiplets.
[[nodiscard]] Ps route_latency(const Package& package, int from_chiplet, int to_chiplet);

}  // namespace sojourn
