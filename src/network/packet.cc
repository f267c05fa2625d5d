// Packet network: see packet.h for the equations.
#include "network/packet.h"

#include <algorithm>
#include <string_view>

namespace sojourn {
namespace {

constexpr std::string_view kTrafficNames[kTraffic] = {"dispatch", "gather", "weights", "migration"};

}  // namespace

PacketNetwork::PacketNetwork(const Package& package, Engine& engine, Ledger& ledger, NetworkSink& sink)
    : package_(package), engine_(engine), ledger_(ledger), sink_(sink), links_(package.links.size()) {}

std::uint32_t PacketNetwork::new_chunk() {
  if (free_chunks_.empty()) {
    chunks_.emplace_back();
    return static_cast<std::uint32_t>(chunks_.size() - 1);
  }
  const std::uint32_t id = free_chunks_.back();
  free_chunks_.pop_back();
  return id;
}

void PacketNetwork::send(const Message& m) {
  const auto cls = static_cast<std::size_t>(m.traffic);
  ledger_.requested[cls] += m.bytes;
  ledger_.requested_hops[cls] += m.bytes * static_cast<Bytes>(m.path.size());
  for (int u : m.path) ledger_.links[static_cast<std::size_t>(u)].bytes[cls] += m.bytes;
  if (m.path.empty()) {
    sink_.on_delivered(m.traffic, m.tag, m.bytes, m.tail);
    return;
  }
  if (m.whole || m.bytes <= package_.chunk_bytes) {
    const std::uint32_t id = new_chunk();
    chunks_[id] = {m.path.data(), static_cast<std::uint16_t>(m.path.size()), 0, m.traffic, m.tag, kNone, 0, m.bytes,
                   m.tail};
    if (m.head > engine_.now())
      engine_.schedule(m.head, kHop, id);
    else
      hop(id);
    return;
  }
  std::uint32_t id;
  if (free_flows_.empty()) {
    flows_.emplace_back();
    id = static_cast<std::uint32_t>(flows_.size() - 1);
  } else {
    id = free_flows_.back();
    free_flows_.pop_back();
  }
  // Enough chunks in flight to cover the path's latency at full rate, and one to wait at the bottleneck.
  Ps latency = 0, narrowest = 1;
  for (int u : m.path) {
    const Link& link = package_.links[static_cast<std::size_t>(u)];
    latency += link.latency;
    narrowest = std::max(narrowest, link.bandwidth.time(package_.chunk_bytes));
  }
  flows_[id] = {m.path, m.bytes, 0, m.traffic, m.tag, 0, static_cast<int>(3 + latency / narrowest), false};
  send_next(id);
}

void PacketNetwork::send_next(std::uint32_t flow_id) {
  Flow& f = flows_[flow_id];
  if (f.in_flight >= f.window) {
    f.blocked = true;
    return;
  }
  f.blocked = false;
  const Bytes bytes = std::min(package_.chunk_bytes, f.bytes - f.sent);
  const std::uint32_t id = new_chunk();
  chunks_[id] = {f.path.data(), static_cast<std::uint16_t>(f.path.size()), 0, f.traffic, f.tag, flow_id, f.sent, bytes,
                 engine_.now()};
  f.sent += bytes;
  ++f.in_flight;
  hop(id);
}

void PacketNetwork::on_event(const Event& event) {
  if (event.kind == kHop)
    hop(event.index);
  else if (event.kind == kNext)
    send_next(event.index);
  else
    served(event.index);
}

void PacketNetwork::served(std::uint32_t flow_id) {
  Flow& f = flows_[flow_id];
  --f.in_flight;
  if (f.blocked)
    send_next(flow_id);
  else if (f.sent == f.bytes && f.in_flight == 0)
    free_flows_.push_back(flow_id);
}

void PacketNetwork::hop(std::uint32_t id) {
  Chunk& c = chunks_[id];
  const int u = c.path[c.hop];
  const Link& link = package_.links[static_cast<std::size_t>(u)];
  // Differences of the cumulative time keep the sum over chunks equal to the whole message's serialisation.
  const Ps serialise = link.bandwidth.time(c.offset + c.bytes) - link.bandwidth.time(c.offset);
  const FifoServer::Slot slot = links_[static_cast<std::size_t>(u)].reserve(engine_.now(), serialise);
  ledger_.links[static_cast<std::size_t>(u)].busy += serialise;
  if (spans_)
    spans_->span(package_index_, SpanTrack::link, u, slot.start, slot.end,
                 kTrafficNames[static_cast<std::size_t>(c.traffic)]);
  c.tail = std::max(slot.end, c.tail) + link.latency;
  const bool first = c.hop == 0;
  const std::uint32_t flow = c.flow;
  if (++c.hop < c.hops) {
    engine_.schedule_in_lane(lane(u, kHop), slot.start + link.latency, kHop, id);
  } else {
    const Traffic traffic = c.traffic;
    const std::uint32_t tag = c.tag;
    const Bytes delivered = c.offset + c.bytes;
    const Ps at = c.tail;
    free_chunks_.push_back(id);
    if (flow != kNone) {  // a chunk is in flight until its last link serves it, else it would fill that link's queue
      if (slot.start > engine_.now())
        engine_.schedule_in_lane(lane(u, kServed), slot.start, kServed, flow);
      else
        --flows_[flow].in_flight;
    }
    sink_.on_delivered(traffic, tag, delivered, at);  // may grow chunks_: `c` is dead from here
  }
  if (flow == kNone) return;
  Flow& f = flows_[flow];
  if (first && f.sent < f.bytes) {
    engine_.schedule_in_lane(lane(u, kNext), slot.end, kNext, flow);
  } else if (f.blocked) {
    send_next(flow);
  } else if (f.sent == f.bytes && f.in_flight == 0) {
    free_flows_.push_back(flow);
  }
}

}  // namespace sojourn
