// Traffic for a flit network: replay of packet lists, open-loop injection by pattern, and closed bursts.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "network/flit/network.h"

namespace sojourn::flit {

struct TracePacket {
  int source = 0, destination = 0, flits = 1;
  Cycle ready = 0;
};

/// Sends every packet in its ready cycle (equal ones in the order given) and runs until the network is empty. The
/// result is indexed like `packets`, which must be sorted by ready cycle.
std::vector<Delivery> replay(FlitNetwork& network, const std::vector<TracePacket>& packets);

enum class Pattern { uniform, transpose, neighbor, hotspot1, hotspot4 };
std::optional<Pattern> pattern_named(std::string_view name);

/// Where a packet of node `source` goes on a k x k grid. uniform: any node, the source included; transpose: (x, y) to
/// (y, x); neighbor: (x + 1 mod k, y + 1 mod k); hotspot1: node 0; hotspot4: one of the four corners.
int destination(Pattern pattern, int k, int source, Rng& rng);

struct OpenLoop {
  Pattern pattern = Pattern::uniform;
  int k = 8, flits = 1;
  double offered = 0.1;  ///< flits a node and cycle; at most one packet a node and cycle
  Cycle warm_up = 1000, measured = 10000;
  std::uint64_t seed = 1;
  double give_up = 0;  ///< stop as unstable when the mean latency passes this many cycles; 0 = never
  bool drain = true;   ///< go on, under traffic, until every measured packet has arrived
};

struct OpenLoopResult {
  std::int64_t packets = 0;           ///< measured: created after the warm-up, within the window
  double latency = 0;                 ///< mean, creation to tail arrival
  double network_latency = 0;         ///< mean, head injection to tail arrival
  double hops = 0;                    ///< mean routers passed
  double injected = 0, accepted = 0;  ///< flits a node and cycle within the window
  bool stopped = false;               ///< gave up
  Cycle cycles = 0;
};

/// Bernoulli injection: every node creates a packet with probability offered / flits in every cycle.
OpenLoopResult open_loop(FlitNetwork& network, const OpenLoop& run);

/// `packets_per_node` packets of every node, all ready at cycle 0.
std::vector<TracePacket> burst(Pattern pattern, int k, int flits, int packets_per_node, std::uint64_t seed);

}  // namespace sojourn::flit
