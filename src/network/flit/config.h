// What a cycle-accurate network is made of: routers with numbered ports, links with a latency in cycles, terminals
// (one source and one sink each), a route table, and the microarchitecture of the routers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "network/flit/limits.h"
#include "sojourn/diagnostics.h"

namespace sojourn::flit {

/// One direction of a channel. Ports are numbered from 0 at each router and side; arbiters go round them in that order.
struct Link {
  int from = 0, from_port = 0;
  int to = 0, to_port = 0;
  int latency = 1;           ///< cycles; credits take as long on the way back
  int interval = kFullRate;  ///< 1/1024 cycles between flits: more than 1024 for a narrower link or a slower clock
  int buffer = 0;            ///< flits a VC of the port it feeds; 0 = FlitConfig::buffer
};

/// The two links between a terminal and its router.
struct TerminalLink {
  int in_latency = 1, out_latency = 1;                    ///< cycles, into and out of the network
  int in_interval = kFullRate, out_interval = kFullRate;  ///< as Link::interval
  int buffer = 0;                                         ///< flits a VC of the injection port; 0 = FlitConfig::buffer
};

struct FlitConfig {
  int routers = 0;
  std::vector<Link> links;
  /// terminals[t]: the router terminal t hangs on. Its ports come after the router's link ports.
  std::vector<int> terminals;
  int terminal_latency = 1;                  ///< injection and ejection link, cycles
  std::vector<TerminalLink> terminal_links;  ///< one a terminal; empty: all of terminal_latency, at full rate

  int vcs = 1;                ///< virtual channels an input port
  int buffer = 4;             ///< flits a VC
  bool speculative = true;    ///< a head asks for a VC and for the switch in the same cycle
  bool look_ahead = true;     ///< the route is known on arrival; otherwise computing it takes a cycle
  int router_delay = 0;       ///< cycles a router needs more, before a flit may ask for VC and switch
  bool oldest_first = false;  ///< every arbiter takes the packet that was sent first, instead of going round

  /// VC classes of the table: VCs are shared out evenly over them, and a packet may only take a VC of its class, which
  /// vc_class[router * terminals.size() + destination] gives for the link that `routes` gives. Empty = all of class 0.
  /// With two classes a ring or torus is free of deadlock: 0 before the wrap-around link, 1 behind it.
  int classes = 1;
  std::vector<std::uint8_t> vc_class;
  /// Minimal adaptive routing: VCs from number `classes` on may be taken on any link that brings a packet nearer (most
  /// credits first); class c of the table keeps VC c as its escape. Needs vcs > classes.
  bool adaptive = false;

  /// routes[router * terminals.size() + destination]: the link to take next; -1 at the destination's router, and where
  /// no packet for it comes by.
  std::vector<int> routes;

  [[nodiscard]] int route(int router, int destination) const {
    return routes[static_cast<std::size_t>(router) * terminals.size() + static_cast<std::size_t>(destination)];
  }
  [[nodiscard]] int class_of(int router, int destination) const {
    return vc_class.empty()
               ? 0
               : vc_class[static_cast<std::size_t>(router) * terminals.size() + static_cast<std::size_t>(destination)];
  }
  [[nodiscard]] TerminalLink terminal_link(int terminal) const {
    if (terminal_links.empty()) return {terminal_latency, terminal_latency, kFullRate, kFullRate, 0};
    return terminal_links[static_cast<std::size_t>(terminal)];
  }
  /// Adds a link on the next free port of either side and returns its number.
  int add_link(int from, int to, int latency = 1);
};

/// width x height routers, one terminal each, node = y * width + x; routing X first, then Y. Ports of a router: +x, -x,
/// +y, -y (for inputs: the neighbour the flit comes from).
FlitConfig grid(int width, int height, int latency = 1);

/// The same with wrap-around links, the shorter way round (the positive one of two equal ways), and two VC classes: 0
/// while the wrap-around link of the present dimension lies ahead, 1 otherwise. Needs at least 2 VCs.
FlitConfig torus(int width, int height, int latency = 1);

/// Fills `routes` with shortest paths by latency; of equal ones, the one over the lowest-numbered link.
void route_shortest(FlitConfig& config);

/// The links that bring a packet nearer, by latency as route_shortest counts it: [router * terminals + destination], a
/// bit an output port.
std::vector<std::uint64_t> productive_ports(const FlitConfig& config);

/// Refuses what the model cannot run: ports used twice or out of range, destinations without a route, and a circle in
/// the channel dependency graph, which is named router by router.
Result<void> check(const FlitConfig& config);

/// The routers of a circle of channels that may wait for one another, its first router repeated at the end; empty if
/// there is none. A channel is a link and a VC class (of the table; with adaptive routing these are the escape
/// channels, and what a packet may do on adaptive channels between two of them counts as waiting, too).
std::vector<int> dependency_cycle(const FlitConfig& config);

}  // namespace sojourn::flit
