// One DRAM channel behind its controller, simulated command by command.
//
// Equations: every command has an earliest cycle, the maximum over the timing rules of the record (RCD, RP, RAS, RC,
// RTP,
//   CCD, RRD, FAW, PPD, RFC, occupancy of the command bus); a command that needs c cycles on the bus counts from its
//   last one, so a rule between it and the next command moves by their cycles less one. Data ends CL + burst after the
//   read.
// Assumptions: open page; FR-FCFS (of the commands that are ready the oldest request's is issued) in two shapes, see
//   Scheduler; all-bank refresh every REFI, which no read overtakes; reads only.
// Sources: Rixner et al., ISCA 2000 (FR-FCFS); JESD235, JESD79-4, JESD79-5 (rules). The two shapes were told apart by
// the
//   reference data, see docs/memory.md.
#pragma once
#include <memory>
#include <vector>

#include "memory/dram.h"

namespace sojourn::dram {

struct Done {
  std::int64_t id = 0;
  Cycle data_end = 0;
};

struct ChannelCounts {
  std::int64_t activates = 0, reads = 0, precharges = 0, refreshes = 0;
  Cycle active_cycles = 0;  ///< some row was open, up to the last change
};

class Channel {
 public:
  virtual ~Channel() = default;
  [[nodiscard]] virtual bool room() const = 0;
  /// Accepts a read; needs room(). It can be served from cycle `now` on.
  virtual void push(Cycle now, std::int64_t id, const Place& place) = 0;
  /// Does what happens in cycle `now` and returns the next cycle in which something can happen if nothing is pushed.
  /// Cycles must not go back, and none that was returned may be left out.
  virtual Cycle step(Cycle now, std::vector<Done>& done) = 0;
  [[nodiscard]] virtual ChannelCounts counts(Cycle end) const = 0;
};

std::unique_ptr<Channel> make_channel(const DramRecord& record);

}  // namespace sojourn::dram
