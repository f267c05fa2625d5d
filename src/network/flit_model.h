// Flit network of a package on the event engine: messages become packets, packets go through flit::FlitNetwork.
//
//   cycle c covers [c T, (c + 1) T). Events up to and at c T come before cycle c; a message sent at time t enters in
//   the first cycle that starts at t or later; a flit at its sink in cycle c is delivered at (c + 1) T.
//
// The network runs ahead on its own, cycle by cycle, until the next event of the engine is due, and jumps over cycles
// in which nothing moves. A terminal sends one packet after another and has a queue for every destination; these take
// turns packet by packet, each terminal beginning with itself, so that sources do not all turn to one destination at
// once. A message fed by a bank offers a packet once its bytes are there (evenly between head and tail).
#pragma once
#include <deque>
#include <vector>

#include "network/flit/network.h"
#include "network/flit_package.h"
#include "network/network.h"

namespace sojourn {

class FlitModel final : public Network {
 public:
  /// `map` is flit_map(package), which the caller has found good.
  FlitModel(const Package& package, FlitMap map, Engine& engine, Ledger& ledger, NetworkSink& sink);
  void send(const Message& message) override;
  void on_event(const Event& event) override;
  [[nodiscard]] std::uint32_t lanes() const override { return 0; }
  void set_spans(SpanSink* spans, int package_index) override {
    spans_ = spans;
    package_index_ = package_index;
  }

 private:
  enum Kind : std::uint16_t { kStep, kOffer };
  struct Flow {
    Traffic traffic = Traffic::dispatch;
    bool whole = false;
    std::uint32_t tag = 0;
    int source = 0, sink = 0;  ///< terminals
    int first_link = 0;
    Bytes bytes = 0;
    Ps head = 0, tail = 0;
    std::int64_t packets = 0, sent = 0, prefix = 0;  ///< prefix: packets 0 .. prefix - 1 have all arrived
    std::vector<std::int64_t> early;                 ///< arrived beyond the prefix
  };
  struct Terminal {
    std::vector<std::deque<std::uint32_t>> ready;  ///< flows with a packet to send, by sink
    std::size_t waiting = 0;                       ///< flows in them
    std::size_t turn = 0;                          ///< sink to look at first
    bool busy = false;                             ///< a packet is waiting or under way at the source
    Ps span_start = 0;
    int span_link = 0;
    Traffic span_traffic = Traffic::dispatch;
  };
  [[nodiscard]] Ps ready_at(const Flow& f) const;
  void offer(std::uint32_t flow);
  void feed(int terminal);
  void run();
  void plan();
  void deliver(const flit::Delivery& d);
  [[nodiscard]] flit::Cycle cycle_from(Ps t) const { return (t + map_.cycle - 1) / map_.cycle; }

  const Package& package_;
  FlitMap map_;
  Engine& engine_;
  Ledger& ledger_;
  NetworkSink& sink_;
  SpanSink* spans_ = nullptr;
  int package_index_ = 0;
  flit::FlitNetwork network_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  std::vector<Terminal> terminals_;
  std::vector<int> busy_;  ///< busy terminals, in the order in which they became so
  std::vector<flit::Delivery> arrived_;
  // Only the last kStep planned counts. It goes by number: two of the same time would each wait for the other for ever.
  std::uint32_t plan_ = 0;
  Ps planned_ = kPsNever;
  bool running_ = false;
};

}  // namespace sojourn
