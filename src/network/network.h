// One interface for every event-driven network model of a package's graph.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "engine/engine.h"
#include "engine/ledger.h"
#include "engine/span_sink.h"
#include "sojourn/package.h"

namespace sojourn {

/// h = (s_h, d_h, D_h, P_h): a transfer along a fixed path.
struct Message {
  std::span<const int> path;  ///< link ids; must outlive the transfer
  Bytes bytes = 0;
  Traffic traffic = Traffic::dispatch;
  std::uint32_t tag = 0;  ///< given back on delivery
  Ps head = 0;            ///< when the first byte is ready at the source (>= now)
  Ps tail = 0;            ///< when the last byte is; later than head if a bank feeds it
  bool whole = false;     ///< send as one chunk (the caller has cut it already)
};

class NetworkSink {
 public:
  virtual ~NetworkSink() = default;
  /// The first `delivered` bytes of message `tag` will all have arrived at time `at` (>= now). Called in order.
  virtual void on_delivered(Traffic traffic, std::uint32_t tag, Bytes delivered, Ps at) = 0;
};

/// Event kinds below this number belong to the network.
inline constexpr std::uint16_t kFirstUserEvent = 16;

class Network {
 public:
  virtual ~Network() = default;
  virtual void send(const Message& message) = 0;
  virtual void on_event(const Event& event) = 0;
};

}  // namespace sojourn
