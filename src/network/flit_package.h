// A package as the flit network sees it: which routers, links and terminals, at which clock.
//
//   cycle     T = F / max_u B_u                F: bytes of a flit ([flit] bytes), so the fastest link carries one a
//   cycle interval  i_u = F / (B_u T) cycles a flit  (1 for the fastest link) latency   a hop takes 2 + l_u cycles
//   (allocation, traversal, link): l_u = max(1, round(lambda_u / T) - 2);
//             a source's injection takes 1 + l: l = max(1, round(lambda_u / T) - 1)
//   buffer    flits a VC of the port that a link feeds: 2 l_u + 3, the credit loop, if [flit] buffer is 0
//
// so that a message of D bytes alone takes sum(lambda_u) + D / min(B_u) but for rounding to cycles, as in the packet
// model. A compute chiplet's injection and ejection links become its terminal; a chiplet whose node is a router itself
// (an IO chiplet) gets one terminal a link, of that link's bandwidth and one cycle of latency. A torus gets two classes
// of virtual channels, before and behind the wrap-around link.
// Assumption: one router clock for the whole package; a message is cut into packets of at most [flit] packet bytes.
#pragma once
#include <vector>

#include "network/flit/config.h"
#include "sojourn/package.h"

namespace sojourn {

/// The clock and sizes that follow from the fastest link.
struct FlitTiming {
  Bytes flit = 1;  ///< F
  Ps cycle = 1;    ///< T, a whole number of picoseconds
  explicit FlitTiming(const Package& package);
  [[nodiscard]] int latency(const Link& link) const;                         ///< l_u of a link between routers, cycles
  [[nodiscard]] int buffer(const Package& package, const Link& link) const;  ///< flits a VC at its end
};

struct FlitMap {
  flit::FlitConfig config;
  Ps cycle = 1;  ///< T, a whole number of picoseconds
  Bytes flit_bytes = 1, packet_bytes = 1;
  std::vector<int> source_of;  ///< terminal of a message whose first link is [u]; -1 where no message starts
  std::vector<int> sink_of;    ///< likewise of its last link
};

/// Errors: routes that may deadlock (the circle is named), routes that depend on more than router and destination, or a
/// network too large for the model's tables.
Result<FlitMap> flit_map(const Package& package);

}  // namespace sojourn
