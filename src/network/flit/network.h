// Cycle-accurate network of input-queued virtual-channel routers with credit flow control.
//
// Rules, for a flit that wins the switch in cycle a over a link of latency l (T = cycle of an allocation):
//   next router        may allocate it in a + 2 + l     (switch traversal, then the link)
//   credit             usable upstream in a + 1 + l     (a slot is free in the cycle its flit wins the switch)
//   sink               takes it in a + 2 + l and returns the credit at once
//   source, cycle c    the first router may allocate the flit in c + 1 + l
// so that one packet of L flits over D links of one cycle, alone, takes 3 D + 5 + (L - 1) + floor((L - 1) / 4) cycles
// with 4-flit buffers (a loop of five cycles over four credits), one cycle more a router without speculation.
//
// Allocation, every cycle, all decisions from the state at its start:
//   VC      separable, input first. A waiting head asks for one free VC of its output port (round robin over all output
//           VCs), every output VC takes one head (round robin over all input VCs). A VC without credit may be given.
//   switch  separable, input first. Non-speculative requests (head with a VC, or body, with credit) before speculative
//           ones (head still waiting while some free VC of its port has credit). An input picks an output (round
//           robin), for it a VC (round robin from the VC after the last one that won); an output picks an input (round
//           robin).
//   A pointer moves past the winner only on a grant by both sides. A speculative winner that did not get a VC with
//   credit in the same cycle wastes its slot, and the pointers stay moved.
//   An output VC is free again in the cycle after its tail won the switch.
// Assumptions: one flit a cycle a link; no pipeline stalls but those above; sinks never refuse.
// Sources: Dally, Towles, "Principles and Practices of Interconnection Networks", 2004, ch. 16-19; Peh, Dally, "A delay
// model and speculative architecture for pipelined routers", HPCA 2001. Pointer and speculation rules are confirmed by
// replaying packet traces of a public simulator (tests/reference).
//
// State is kept in flat arrays, request sets in one machine word a router. A router, or a source, that can do nothing
// sleeps until a flit or a credit reaches it: a cycle without requests changes no state.
#pragma once
#include <cstdint>
#include <limits>
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

class FlitNetwork {
 public:
  /// `config` must have passed check().
  explicit FlitNetwork(const FlitConfig& config);

  /// Queues a packet at terminal `source` in the present cycle, which it may enter the network in.
  void send(int source, int destination, int flits, std::uint64_t tag);
  /// Simulates the present cycle.
  void step();
  /// The first cycle from now on in which something happens, or kNever when the network is empty.
  [[nodiscard]] Cycle next_work() const;
  /// Jumps over idle time; `to` must not be later than next_work().
  void skip_to(Cycle to) { now_ = to; }
  [[nodiscard]] Cycle now() const { return now_; }

  /// In order of arrival; the caller may clear it.
  [[nodiscard]] std::vector<Delivery>& delivered() { return delivered_; }
  /// No packet waits or is being sent at that source: a packet given now enters without a gap.
  [[nodiscard]] bool source_idle(int terminal) const {
    return sources_[static_cast<std::size_t>(terminal)].first == kNone;
  }
  [[nodiscard]] std::int64_t packets_held() const { return packets_held_; }  ///< queued at sources or in the network
  [[nodiscard]] std::int64_t flits_injected() const { return flits_injected_; }
  [[nodiscard]] std::int64_t flits_ejected() const { return flits_ejected_; }
  [[nodiscard]] std::int64_t router_hops() const { return router_hops_; }  ///< flits x routers passed
  /// What breaks the conservation of credits and flits, or empty. Walks everything: for tests.
  [[nodiscard]] std::string inconsistency() const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  static constexpr std::uint32_t kTail = 0x80000000, kTerminal = 0x80000000;
  using Mask = std::uint64_t;

  struct Flit {
    std::uint32_t packet = 0;
    std::uint32_t sequence = 0;  ///< from 0 for the head; kTail set on the last
  };
  /// Bits are numbered port * vcs + vc, of inputs for the first four and of outputs for the last two.
  struct Router {
    Mask routing = 0;  ///< heads whose route takes this cycle
    Mask waiting = 0;  ///< heads without an output VC
    Mask active = 0;   ///< with an output VC and a flit
    Mask held = 0;     ///< with an output VC
    Mask busy = 0;     ///< output VCs held
    Mask credit = 0;   ///< output VCs with credit
  };
  struct InputVc {
    std::uint8_t port = 0;    ///< output port of the packet in front
    std::uint8_t out_vc = 0;  ///< its output VC, as a bit number
    std::uint8_t first = 0, count = 0;
    std::uint8_t pointer = 0;  ///< VC allocation: the output VC to look at first
  };
  struct OutputVc {
    std::uint8_t credits = 0;
    std::uint8_t pointer = 0;  ///< VC allocation: the input VC to look at first
  };
  /// Switch allocation pointers of input port i and output port i.
  struct Pointers {
    std::uint8_t vc = 0, output = 0, input = 0;
  };
  /// The other end of a port: index of VC 0 of the port there, or of a terminal (kTerminal set).
  struct End {
    std::uint32_t target = kNone;
    std::int32_t latency = 0;
  };
  struct Source {
    std::uint32_t first = kNone, last = kNone;  ///< queue of packets
    std::uint32_t input = 0;                    ///< VC 0 of the port it feeds
    std::uint32_t sent = 0;                     ///< flits of the first packet
    std::uint8_t vc = 0;                        ///< of the first packet, or of the packet before it
  };
  struct Packet {
    std::uint64_t tag = 0;
    std::uint32_t source = 0, destination = 0, flits = 0, received = 0, next = kNone;
    Cycle ready = 0, inject = 0, head = 0;
  };
  struct Arrival {
    std::uint32_t target;  ///< input VC, or terminal * vcs + vc with kTerminal
    Flit flit;
  };
  struct Slot {
    std::vector<Arrival> arrivals;
    std::vector<std::uint32_t> credits;  ///< output VC, or terminal * vcs + vc with kTerminal
  };

  static std::size_t at(std::uint32_t i) { return static_cast<std::size_t>(i); }
  Slot& slot(Cycle at_cycle) { return calendar_[static_cast<std::size_t>(at_cycle) & calendar_mask_]; }
  void wake(std::vector<Mask>& set, std::uint32_t i) { set[i >> 6] |= Mask{1} << (i & 63); }
  void receive();
  void receive_flit(const Arrival& arrival);
  void sink(std::uint32_t terminal_vc, Flit flit);
  bool step_source(std::uint32_t terminal);
  bool step_router(std::uint32_t router);
  Mask allocate_vcs(Router& r, std::uint32_t base, std::uint8_t* granted);
  void traverse(Router& r, std::uint32_t router, std::uint32_t input);
  /// A head has come to the front of an input VC.
  void expose(Router& r, std::uint32_t router, std::uint32_t input, std::uint32_t packet);

  std::uint32_t vcs_, buffer_, stride_, ports_, terminals_;
  bool speculative_, look_ahead_;
  std::int32_t terminal_latency_;
  Cycle now_ = 0;
  std::vector<Router> routers_;
  std::vector<InputVc> inputs_;     ///< [router * stride + port * vcs + vc]
  std::vector<OutputVc> outputs_;   ///< likewise
  std::vector<Flit> slots_;         ///< [input VC * buffer + position], a ring each
  std::vector<Pointers> pointers_;  ///< [router * ports + port]
  std::vector<End> downstream_;     ///< of output ports, [router * ports + port]
  std::vector<End> upstream_;       ///< of input ports
  std::vector<std::uint32_t> router_of_input_;
  std::vector<std::uint8_t> route_;  ///< output port, [router * terminals + destination]
  std::uint8_t port_of_[64] = {};    ///< of a bit number
  std::vector<Source> sources_;
  std::vector<std::uint8_t> source_credits_;  ///< [terminal * vcs + vc]
  std::vector<std::uint32_t> ejection_;       ///< output VC 0 of the port that feeds a terminal
  std::vector<Mask> awake_routers_, awake_sources_;
  std::vector<Packet> packets_;
  std::uint32_t free_packet_ = kNone;
  std::vector<Slot> calendar_;
  std::size_t calendar_mask_ = 0;
  std::int64_t scheduled_ = 0;
  std::vector<Delivery> delivered_;
  std::int64_t packets_held_ = 0, flits_injected_ = 0, flits_ejected_ = 0, router_hops_ = 0;
};

}  // namespace sojourn::flit
