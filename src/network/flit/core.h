// State of the flit network, for routers whose request sets fit one word (Mask = 64 bits) or two (128). Private to this
// folder; the rules are at the head of network.h.
//
// State is kept in flat arrays, request sets in one Mask a router. A router, or a source, that can do nothing sleeps
// until a flit, a credit or the end of a slow link's pause reaches it: a cycle without requests changes no state.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "network/flit/network.h"
#include "network/flit/pair.h"

namespace sojourn::flit {

class Core {
 public:
  virtual ~Core() = default;
  virtual void send(int source, int destination, int flits, std::uint64_t tag) = 0;
  virtual void step() = 0;
  [[nodiscard]] virtual Cycle next_work() const = 0;
  [[nodiscard]] virtual bool source_idle(int terminal) const = 0;
  [[nodiscard]] virtual std::int64_t flits_injected() const = 0;
  [[nodiscard]] virtual std::int64_t flits_ejected() const = 0;
  [[nodiscard]] virtual std::int64_t router_hops() const = 0;
  [[nodiscard]] virtual std::string inconsistency() const = 0;
  Cycle now = 0;
  std::vector<Delivery> delivered;
  std::int64_t packets_held = 0;
};

template <class Mask>
class RouterCore final : public Core {
 public:
  RouterCore(const FlitConfig& config, int threads, int pays_from);
  void send(int source, int destination, int flits, std::uint64_t tag) override;
  void step() override;
  [[nodiscard]] Cycle next_work() const override;
  [[nodiscard]] bool source_idle(int terminal) const override { return sources_[at(terminal)].first == kNone; }
  [[nodiscard]] std::int64_t flits_injected() const override { return total(&Part::injected); }
  [[nodiscard]] std::int64_t flits_ejected() const override { return total(&Part::ejected); }
  [[nodiscard]] std::int64_t router_hops() const override { return total(&Part::hops); }
  [[nodiscard]] std::string inconsistency() const override;

 private:
  static constexpr std::uint32_t kBits = sizeof(Mask) * 8;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  static constexpr std::uint32_t kTail = 0x80000000, kTerminal = 0x80000000;

  struct Flit {
    std::uint32_t packet = 0;
    std::uint32_t sequence = 0;  ///< from 0 for the head; kTail set on the last
  };
  /// Bits are numbered port * vcs + vc, of inputs for the first four and of outputs for the rest.
  struct Router {
    Mask routing = 0;  ///< heads whose route takes this cycle
    Mask waiting = 0;  ///< heads without an output VC
    Mask active = 0;   ///< with an output VC and a flit
    Mask held = 0;     ///< with an output VC
    Mask busy = 0;     ///< output VCs held
    Mask credit = 0;   ///< output VCs with credit
    Mask paused = 0;   ///< output VCs of links that are still busy with a flit
    Mask empty = 0;    ///< output VCs with nothing behind them, all credits home; kept with adaptive routing only
  };
  struct InputVc {
    std::uint8_t port = 0;     ///< output port of the packet in front
    std::uint8_t out_vc = 0;   ///< its output VC, as a bit number
    std::uint8_t pointer = 0;  ///< VC allocation: the output VC to look at first
    std::uint8_t cls = 0;      ///< VCs the packet in front may take, into class_vcs_
    std::uint16_t first = 0, count = 0;
  };
  struct OutputVc {
    std::uint16_t credits = 0;
    std::uint8_t pointer = 0;  ///< VC allocation: the input VC to look at first
  };
  /// Switch allocation pointers of input port i and output port i.
  struct Pointers {
    std::uint8_t vc = 0, output = 0, input = 0;
  };
  /// The other end of a port: index of VC 0 of the port there, or of a terminal (kTerminal set).
  struct End {
    std::uint32_t target = kNone;
    std::uint16_t delay = 0;  ///< cycles from the allocation to the arrival (of a flit, or of a credit)
    std::uint8_t owner = 0;   ///< part that simulates the other end
    bool slow = false;        ///< an output port whose link has a Pace
  };
  struct Pace {
    std::int64_t free_at = 0;  ///< 1/1024 cycles: the link takes its next flit then
    std::int32_t interval = kFullRate;
  };
  struct Source {
    std::uint32_t first = kNone, last = kNone;  ///< queue of packets
    std::uint32_t input = 0;                    ///< VC 0 of the port it feeds
    std::uint32_t sent = 0;                     ///< flits of the first packet
    std::int32_t delay = 0, interval = kFullRate;
    std::int64_t free_at = 0;
    std::uint16_t owner = 0;
    std::uint8_t vc = 0;  ///< of the first packet, or of the packet before it
  };
  struct Packet {
    std::uint64_t tag = 0, order = 0;
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
    std::vector<std::uint32_t> resumes;  ///< VC 0 of an output port, or terminal * vcs with kTerminal: a pause ends
    [[nodiscard]] bool empty() const { return arrivals.empty() && credits.empty() && resumes.empty(); }
  };
  /// What one thread simulates: some routers with their terminals. calendar[cycle & mask][writer].
  struct Part {
    std::uint32_t id = 0;
    std::vector<std::uint64_t> awake_routers, awake_sources;
    std::vector<Slot> calendar;
    std::int64_t pushed = 0, popped = 0;  ///< entries of any calendar by this writer; of its own calendar as reader
    std::int64_t injected = 0, ejected = 0, hops = 0;
    std::vector<Delivery> delivered;
    std::vector<std::uint32_t> finished;  ///< packets to be used again
  };

  static std::size_t at(std::uint32_t i) { return static_cast<std::size_t>(i); }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] std::int64_t total(std::int64_t Part::*count) const {
    std::int64_t sum = 0;
    for (const Part& p : parts_) sum += p.*count;
    return sum;
  }
  Slot& slot(Part& writer, std::uint32_t owner, Cycle cycle) {
    return parts_[owner].calendar[(static_cast<std::size_t>(cycle) & calendar_mask_) * parts_.size() + writer.id];
  }
  static void wake(std::vector<std::uint64_t>& set, std::uint32_t i) { set[i >> 6] |= std::uint64_t{1} << (i & 63); }
  void build_ports(const FlitConfig& config);
  void build_routes(const FlitConfig& config);
  void run(Part& part);
  void receive(Part& part);
  void receive_flit(Part& part, const Arrival& arrival);
  void sink(Part& part, std::uint32_t terminal_vc, Flit flit);
  bool step_source(Part& part, std::uint32_t terminal);
  bool step_router(Part& part, std::uint32_t router);
  void choose_ports(Router& r, std::uint32_t router);
  /// Output VCs of its port that the packet in front of an input VC may be given, from bit 0 on.
  [[nodiscard]] Mask open_vcs(const Router& r, const InputVc& in) const {
    const Mask open = ~r.busy >> (in.port * vcs_) & class_vcs_[in.cls];
    return adaptive_ && in.cls == adaptive_class_ ? open & r.empty >> (in.port * vcs_) : open;
  }
  Mask allocate_vcs(Router& r, std::uint32_t base, std::uint8_t* granted);
  void traverse(Part& part, Router& r, std::uint32_t router, std::uint32_t input);
  /// A head has come to the front of an input VC.
  void expose(Router& r, std::uint32_t router, std::uint32_t input, std::uint32_t packet);
  [[nodiscard]] std::uint32_t packet_at(std::uint32_t input_vc) const {
    return slots_[at(input_vc) * depth_ + inputs_[input_vc].first].packet;
  }
  /// Of the input VCs whose bits are set, that with the oldest packet.
  [[nodiscard]] std::uint32_t oldest(Mask inputs, std::uint32_t base) const;

  std::uint32_t vcs_, depth_ = 1, stride_ = 0, ports_ = 0, terminals_;
  bool speculative_, look_ahead_, oldest_first_, adaptive_;
  std::int32_t router_delay_;
  std::size_t pays_from_;
  std::vector<Router> routers_;
  std::vector<InputVc> inputs_;                                  ///< [router * stride + port * vcs + vc]
  std::vector<OutputVc> outputs_;                                ///< likewise
  std::vector<Flit> slots_;                                      ///< [input VC * depth + position], a ring each
  std::vector<Pointers> pointers_;                               ///< [router * ports + port]
  std::vector<End> downstream_;                                  ///< of output ports, [router * ports + port]
  std::vector<End> upstream_;                                    ///< of input ports
  std::vector<Pace> paces_;                                      ///< of output ports
  std::vector<std::uint16_t> output_capacity_, input_capacity_;  ///< flits a VC behind an output port, of an input port
  std::vector<std::uint32_t> router_of_input_;
  std::vector<std::uint16_t> part_of_router_;
  std::vector<std::uint8_t> route_;        ///< output port, [router * terminals + destination]
  std::vector<std::uint8_t> class_;        ///< of that hop, into class_vcs_
  std::vector<std::uint64_t> productive_;  ///< output ports, likewise; adaptive only
  std::vector<Mask> class_vcs_;            ///< VCs of a class; the last entry is all VCs
  std::uint8_t adaptive_class_ = 0;
  std::uint8_t port_of_[kBits] = {};  ///< of a bit number
  std::vector<Source> sources_;
  std::vector<std::uint16_t> source_credits_;  ///< [terminal * vcs + vc]
  std::vector<std::uint32_t> ejection_;        ///< output VC 0 of the port that feeds a terminal
  std::vector<std::int32_t> ejection_delay_;   ///< of the credit from a sink
  std::vector<Packet> packets_;
  std::uint32_t free_packet_ = kNone;
  std::uint64_t sent_ = 0;
  std::vector<Part> parts_;
  std::size_t calendar_mask_ = 0;
  Pair pair_;
};

extern template class RouterCore<std::uint64_t>;
extern template class RouterCore<unsigned __int128>;

}  // namespace sojourn::flit
