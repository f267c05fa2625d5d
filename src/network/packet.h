// Packet network: contended, cut-through, chunked.
//
//   head at link u:   start = max(head, free_u);  free_u = start + D/B_u
//   to the next link: head' = start + lambda_u;   tail' = max(start + D/B_u, tail) + lambda_u
//
// so that one message alone takes sum(lambda_u) + D / min(B_u), and bytes on a link are served in the order in which
// their heads arrive. A message longer than `chunk_bytes` is cut; its next chunk asks for the first link when the chunk
// before has left it, so messages that meet on a link take turns, and a window of chunks in flight keeps one message
// from filling the queue of a link downstream.
// Assumption: no finite buffers (no head-of-line blocking across links); the flit model has them.
#pragma once
#include <vector>

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
  enum Kind : std::uint16_t { kHop, kNext, kServed };
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Chunk {
    const int* path = nullptr;
    std::uint16_t hops = 0, hop = 0;
    Traffic traffic = Traffic::dispatch;
    std::uint32_t tag = 0, flow = kNone;
    Bytes offset = 0, bytes = 0;
    Ps tail = 0;
  };
  struct Flow {
    std::span<const int> path;
    Bytes bytes = 0, sent = 0;
    Traffic traffic = Traffic::dispatch;
    std::uint32_t tag = 0;
    int in_flight = 0, window = 0;
    bool blocked = false;
  };
  void send_next(std::uint32_t flow_id);
  void hop(std::uint32_t chunk_id);
  void served(std::uint32_t flow_id);
  std::uint32_t new_chunk();
  /// Starts of service, and so each kind of event, follow one another on a link.
  static std::uint32_t lane(int link, Kind kind) { return 3 * static_cast<std::uint32_t>(link) + kind; }

  const Package& package_;
  Engine& engine_;
  Ledger& ledger_;
  NetworkSink& sink_;
  SpanSink* spans_ = nullptr;
  int package_index_ = 0;
  std::vector<FifoServer> links_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> free_chunks_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
};

}  // namespace sojourn
