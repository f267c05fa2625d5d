// What a cycle-accurate network is made of: routers with numbered ports, links with a latency in cycles, terminals
// (one source and one sink each), a route table, and the microarchitecture of the routers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn::flit {

/// One direction of a channel. Ports are numbered from 0 at each router and side; arbiters go round them in that order.
struct Link {
  int from = 0, from_port = 0;
  int to = 0, to_port = 0;
  int latency = 1;  ///< cycles; credits take as long on the way back
};

struct FlitConfig {
  int routers = 0;
  std::vector<Link> links;
  /// terminals[t]: the router terminal t hangs on. Its ports come after the router's link ports.
  std::vector<int> terminals;
  int terminal_latency = 1;  ///< injection and ejection link, cycles

  int vcs = 1;              ///< virtual channels an input port
  int buffer = 4;           ///< flits a VC
  bool speculative = true;  ///< a head asks for a VC and for the switch in the same cycle
  bool look_ahead = true;   ///< the route is known on arrival; otherwise computing it takes a cycle

  /// routes[router * terminals.size() + destination]: the link to take next; -1 at the destination's router, and where
  /// no packet for it comes by.
  std::vector<int> routes;

  [[nodiscard]] int route(int router, int destination) const {
    return routes[static_cast<std::size_t>(router) * terminals.size() + static_cast<std::size_t>(destination)];
  }
  /// Adds a link on the next free port of either side and returns its number.
  int add_link(int from, int to, int latency = 1);
};

/// width x height routers, one terminal each, node = y * width + x; routing X first, then Y. Ports of a router: +x, -x,
/// +y, -y (for inputs: the neighbour the flit comes from).
FlitConfig grid(int width, int height, int latency = 1);

/// Fills `routes` with shortest paths by latency; of equal ones, the one over the lowest-numbered link.
void route_shortest(FlitConfig& config);

/// Refuses what the model cannot run: ports used twice or out of range, destinations without a route, and a circle in
/// the channel dependency graph (Dally and Seitz, 1987), which is named router by router. Every VC serves every packet,
/// so VCs do not break a circle.
Result<void> check(const FlitConfig& config);

/// The routers of a circle of channels that may wait for one another, its first router repeated at the end; empty if
/// there is none.
std::vector<int> dependency_cycle(const FlitConfig& config);

}  // namespace sojourn::flit
