// Packet network: contended, cut-through, in units of some packets.
//
//   head at link u:   start = max(head, free_u);  free_u = start + D/B_u
//   to the next link: head' = start + lambda_u;   tail' = max(start + D/B_u, tail) + lambda_u
//
// so that one message alone takes sum(lambda_u) + D / min(B_u), and bytes on a link are served in the order in which
// their heads arrive.
//
// Sources block, as wormhole sources do. A source (a first link) keeps a queue for every destination; these take turns
// unit by unit (eight packets, or a sixty-fourth of a long message), beginning with the source itself. A unit holds its
// source until its last byte could leave it: when it crosses its last link, less the latency of the way there and less
// what the buffers on the way take in. While a source is held, it may send on only as far as those buffers have room:
//
//   buffer(path) = sum_u V b_u F        V virtual channels of b_u flits of F bytes at the end of link u
//   ahead        = buffer(path) / 16    calibrated: a source's share of buffers that all others fill, too
//
// Assumption: links are shared in order of arrival instead of flit by flit, a blocked unit does not hold links in the
// middle of its path (other virtual channels pass it), and arbitration loses no cycles. docs/validation.md has the
// error of each against the flit model.
#pragma once
#include <vector>

#include "network/flit_package.h"
#include "network/network.h"

namespace sojourn {

class PacketNetwork final : public Network {
 public:
  PacketNetwork(const Package& package, Engine& engine, Ledger& ledger, NetworkSink& sink);
  void send(const Message& message) override;
  void on_event(const Event& event) override;
  [[nodiscard]] std::uint32_t lanes() const override { return 3 * static_cast<std::uint32_t>(links_.size()); }
  void set_spans(SpanSink* spans, int package_index) override {
    spans_ = spans;
    package_index_ = package_index;
  }

 private:
  enum Kind : std::uint16_t { kHop, kOffer, kServed };
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Chunk {
    const int* path = nullptr;
    std::uint16_t hops = 0, hop = 0;
    Traffic traffic = Traffic::dispatch;
    std::uint32_t tag = 0;
    Bytes offset = 0, bytes = 0;
    Ps tail = 0, latency = 0;  ///< latency: of the links passed
    Bytes ahead = 0;
  };
  struct Flow {
    std::span<const int> path;
    Bytes bytes = 0, sent = 0, chunk = 0;
    Traffic traffic = Traffic::dispatch;
    std::uint32_t tag = 0;
    std::uint32_t next = kNone;  ///< in its queue
    Ps tail = 0;
    Bytes buffer = 0;  ///< of its path
  };
  struct Queue {
    std::uint32_t first = kNone, last = kNone;
  };
  /// Whoever sends over a first link: a queue for every last link, served in turn.
  struct Source {
    std::vector<Queue> queues;        ///< [last link]
    std::vector<std::uint64_t> some;  ///< bit: queue not empty
    std::uint32_t turn = 0;
    Bytes in_flight = 0;  ///< of units that hold the source
  };
  void offer(std::uint32_t flow_id);
  void feed(Source& source);
  void hop(std::uint32_t chunk_id);
  std::uint32_t new_chunk();
  /// Starts of service, and so each kind of event, follow one another on a link.
  static std::uint32_t lane(int link, Kind kind) { return 3 * static_cast<std::uint32_t>(link) + kind; }

  const Package& package_;
  Engine& engine_;
  Ledger& ledger_;
  NetworkSink& sink_;
  SpanSink* spans_ = nullptr;
  int package_index_ = 0;
  Bytes unit_;  ///< largest chunk, except of messages to be sent as one
  std::vector<FifoServer> links_;
  std::vector<Source> sources_;    ///< [first link]
  std::vector<Bytes> hop_buffer_;  ///< V b_u F
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> free_chunks_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
};

}  // namespace sojourn
