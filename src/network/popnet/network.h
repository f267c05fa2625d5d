// popnet's router, cycle by cycle: input buffers by VC, a five-step pipeline, output buffers by port.
//
//   delay of a packet alone = 5 * hops + flits - 1     (mesh; link delay 0.9, read in the next step)
//   step at cycle t of each router, in this order:
//     5 the oldest flit of each output buffer goes on its link, arrives at t + delay
//     4 flits that won the switch move to the output buffer, one credit goes back (there at t + 1); a tail frees its VC
//     3 switch: per input port one ready VC, then per output port one input port, each drawn at random; a VC is ready
//       if the VC behind the link has a credit and the output buffer a place
//     2 VCs: each waiting head draws one free VC of those its route allows; of the heads that drew the same one, one
//     wins 1 heads get their route. At its destination any VC of any port hands over one flit, its credit goes back
//   A source puts a whole packet into the emptiest of its V unbounded queues, stops above 100 flits in the emptiest and
//   goes on when one falls below 100.
//
// Assumption: events of equal time come in the order of EventHeap, routers step by rising number, and draws come from
// Draws in the order in which they are made; with these popnet's own runs are met packet by packet where the
// reference data allow to see it. Idle stretches are stepped over as popnet does (docs/popnet.md). Power is not
// modelled. Source: behaviour of popnet (FCAS-LAB/popnet_chiplet); data of reference/popnet.
#pragma once
#include <cstdint>
#include <vector>

#include "network/popnet/config.h"

namespace sojourn::popnet {

struct Packet {
  double ready = 0;  ///< cycle
  int source = 0, destination = 0;
  std::int64_t flits = 1;
  double reply_from = -1;  ///< negative: no reply; else one flit goes back, not before this cycle
};

struct Arrival {
  std::uint32_t packet = 0;  ///< index into the list given
  bool reply = false;
  double ready = 0, time = 0;  ///< time: when the last flit was handed over
};

enum class Ending { all_arrived, limit, blocked };

struct Run {
  std::vector<Arrival> arrivals;  ///< in order of completion
  Ending ending = Ending::all_arrived;
  std::int64_t flit_hops = 0;  ///< links taken by flits
  std::int64_t steps = 0;      ///< pipeline steps simulated
};

/// The packets in any order; of those ready in the same cycle the later one in the list goes first, as in popnet.
/// Stops after `limit` cycles. Every packet has at least one flit and routers that exist.
[[nodiscard]] Run simulate(const PopnetConfig& config, const std::vector<Packet>& packets, double limit);

}  // namespace sojourn::popnet
