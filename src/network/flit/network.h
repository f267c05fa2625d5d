// Cycle-accurate network of input-queued virtual-channel routers with credit flow control.
//
// Rules, for a flit that wins the switch in cycle a over a link of latency l (T = cycle of an allocation):
//   next router        may allocate it in a + 2 + l + d (switch traversal, then the link; d: FlitConfig::router_delay)
//   credit             usable upstream in a + 1 + l     (a slot is free in the cycle its flit wins the switch)
//   sink               takes it in a + 2 + l and returns the credit at once
//   source, cycle c    the first router may allocate the flit in c + 1 + l + d
// so that one packet of L flits over D links of one cycle, alone, takes 3 D + 5 + (L - 1) + floor((L - 1) / 4) cycles
// with 4-flit buffers (a loop of five cycles over four credits), one cycle more a router without speculation.
// A link of interval i (in cycles, i >= 1, a multiple of 1/1024) takes a flit at most every i cycles, and a flit needs
// ceil(i) - 1 cycles more to have crossed it whole.
//
// Allocation, every cycle, all decisions from the state at its start:
//   VC      separable, input first. A waiting head asks for one free VC of its output port and class (round robin over
//           all output VCs), every output VC takes one head (round robin over all input VCs). A VC without credit may
//           be given. Adaptive routing chooses the port anew every cycle: of the links that bring the packet nearer,
//           the one with a free adaptive VC whose adaptive VCs have most credits (then the lowest port), else the
//           escape VC of the table's link.
//   switch  separable, input first. Non-speculative requests (head with a VC, or body, with credit) before speculative
//           ones (head still waiting while some free VC of its port and class has credit). An input picks an output
//           (round robin), for it a VC (round robin from the VC after the last one that won); an output picks an input
//           (round robin).
//   A pointer moves past the winner only on a grant by both sides. A speculative winner that did not get a VC with
//   credit in the same cycle wastes its slot, and the pointers stay moved. With oldest_first, "round robin" reads: the
//   packet handed to its source first.
//   An output VC is free again in the cycle after its tail won the switch.
// Assumptions: one flit a cycle a link at most; no pipeline stalls but those above; sinks never refuse.
// Sources: Dally, Towles, "Principles and Practices of Interconnection Networks", 2004, ch. 14, 16-19; Peh, Dally, "A
// delay model and speculative architecture for pipelined routers", HPCA 2001. Pointer and speculation rules are
// confirmed by replaying packet traces of a public simulator (tests/reference).
//
// Two threads may share the routers: they speak to each other only through the calendar, at least a cycle ahead, so the
// order within a cycle does not matter and the result is the same bit by bit.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "network/flit/config.h"

namespace sojourn::flit {

using Cycle = std::int64_t;
inline constexpr Cycle kNever = std::numeric_limits<Cycle>::max();

/// A packet whose tail has reached its sink.
struct Delivery {
  std::uint64_t tag = 0;
  int source = 0, destination = 0, flits = 0;
  Cycle ready = 0;   ///< handed to the source
  Cycle inject = 0;  ///< head on the injection link
  Cycle head = 0;    ///< head at the sink
  Cycle tail = 0;    ///< tail at the sink
};

class Core;

class FlitNetwork {
 public:
  /// `config` must have passed check(). `threads`: 1 or 2; the second helps in cycles in which at least `pays_from`
  /// routers are awake.
  explicit FlitNetwork(const FlitConfig& config, int threads = 1, int pays_from = 128);
  ~FlitNetwork();
  FlitNetwork(FlitNetwork&&) noexcept;

  /// Queues a packet at terminal `source` in the present cycle, which it may enter the network in.
  void send(int source, int destination, int flits, std::uint64_t tag);
  /// Simulates the present cycle.
  void step();
  /// The first cycle from now on in which something happens, or kNever when the network is empty.
  [[nodiscard]] Cycle next_work() const;
  /// Jumps over idle time; `to` must not be later than next_work().
  void skip_to(Cycle to);
  [[nodiscard]] Cycle now() const;

  /// By cycle of arrival, then by terminal; the caller may clear it.
  [[nodiscard]] std::vector<Delivery>& delivered();
  /// No packet waits or is being sent at that source: a packet given now enters without a gap.
  [[nodiscard]] bool source_idle(int terminal) const;
  [[nodiscard]] std::int64_t packets_held() const;  ///< queued at sources or in the network
  [[nodiscard]] std::int64_t flits_injected() const;
  [[nodiscard]] std::int64_t flits_ejected() const;
  [[nodiscard]] std::int64_t router_hops() const;  ///< flits x routers passed
  /// What breaks the conservation of credits and flits, or empty. Walks everything: for tests.
  [[nodiscard]] std::string inconsistency() const;

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace sojourn::flit
