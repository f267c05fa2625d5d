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
  /// Event lanes it uses, from 0.
  [[nodiscard]] virtual std::uint32_t lanes() const = 0;
  virtual void set_spans(SpanSink* spans, int package_index) = 0;
};

/// closed is no event model: the paper's equations (moe/closed_form.h).
enum class NetworkKind : std::uint8_t { closed, packet, flit };
inline constexpr const char* kNetworkNames[] = {"closed", "packet", "flit"};

/// The event model of that kind; closed has none and gets packet, for what still passes in time. A package that the
/// flit model refuses (flit_map) must not come here.
std::unique_ptr<Network> make_network(NetworkKind kind, const Package& package, Engine& engine, Ledger& ledger,
                                      NetworkSink& sink);

}  // namespace sojourn
