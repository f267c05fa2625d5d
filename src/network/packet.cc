// Packet network: see packet.h for the equations.
#include "network/packet.h"

#include <algorithm>

namespace sojourn {
namespace {

constexpr Bytes kPacketsPerUnit = 8;
constexpr Bytes kShare = 16;
constexpr Bytes kUnits = 64;  // of a long message: more would cost time and change little

}  // namespace

PacketNetwork::PacketNetwork(const Package& package, Engine& engine, Ledger& ledger, NetworkSink& sink)
    : package_(package),
      engine_(engine),
      ledger_(ledger),
      sink_(sink),
      unit_(std::min(package.chunk_bytes, kPacketsPerUnit * package.flit.packet)),
      links_(package.links.size()),
      sources_(package.links.size()) {
  const FlitTiming timing(package);
  for (const Link& l : package.links) hop_buffer_.push_back(timing.buffer(package, l) * package.flit.vcs * timing.flit);
}

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
  ledger_.request(m.traffic, m.path, m.bytes);
  if (m.path.empty()) {
    sink_.on_delivered(m.traffic, m.tag, m.bytes, m.tail);
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
  flows_[id] = {
      m.path,    m.bytes,
      0,         m.whole ? m.bytes : std::clamp(m.bytes / kUnits, unit_, std::max(unit_, package_.chunk_bytes)),
      m.traffic, m.tag,
      kNone,     m.tail,
      0};
  for (const int u : m.path) flows_[id].buffer += hop_buffer_[static_cast<std::size_t>(u)];
  if (m.head > engine_.now())
    engine_.schedule(m.head, kOffer, id);
  else
    offer(id);
}

void PacketNetwork::offer(std::uint32_t flow_id) {
  const Flow& f = flows_[flow_id];
  Source& source = sources_[static_cast<std::size_t>(f.path.front())];
  if (source.queues.empty()) {
    source.queues.resize(links_.size());
    source.some.resize((links_.size() + 63) / 64);
    source.turn = static_cast<std::uint32_t>(f.path.front());
  }
  const std::uint32_t sink = static_cast<std::uint32_t>(f.path.back());
  Queue& q = source.queues[sink];
  if (q.first == kNone) {
    q.first = q.last = flow_id;
    source.some[sink / 64] |= std::uint64_t{1} << (sink % 64);
  } else {
    flows_[q.last].next = flow_id;
    q.last = flow_id;
  }
  feed(source);
}

void PacketNetwork::feed(Source& source) {
  for (;;) {
    // The first queue with something from `turn` on, going round.
    std::uint32_t word = source.turn / 64;
    std::uint64_t bits = source.some[word] & (~std::uint64_t{0} << (source.turn % 64));
    for (std::size_t tried = 0; bits == 0 && tried < source.some.size(); ++tried) {
      word = word + 1 == source.some.size() ? 0 : word + 1;
      bits = source.some[word];
    }
    if (bits == 0) return;
    const std::uint32_t sink = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits));
    Queue& q = source.queues[sink];
    const std::uint32_t flow_id = q.first;
    Flow& f = flows_[flow_id];
    const Bytes bytes = std::min(f.chunk, f.bytes - f.sent);
    if (source.in_flight > 0 && source.in_flight + bytes > f.buffer) return;
    const std::uint32_t id = new_chunk();
    chunks_[id] = {f.path.data(), static_cast<std::uint16_t>(f.path.size()), 0, f.traffic,        f.tag, f.sent,
                   bytes,         std::max(f.tail, engine_.now()),           0, f.buffer / kShare};
    f.sent += bytes;
    source.turn = sink + 1 == links_.size() ? 0 : sink + 1;
    source.in_flight += bytes;
    if (f.sent == f.bytes) {
      q.first = f.next;
      if (q.first == kNone) source.some[sink / 64] &= ~(std::uint64_t{1} << (sink % 64));
      f.next = kNone;
      free_flows_.push_back(flow_id);
    }
    hop(id);
  }
}

void PacketNetwork::on_event(const Event& event) {
  if (event.kind == kHop) return hop(event.index);
  if (event.kind == kOffer) return offer(event.index);
  Chunk& c = chunks_[event.index];
  Source& source = sources_[static_cast<std::size_t>(c.path[0])];
  source.in_flight -= c.bytes;
  free_chunks_.push_back(event.index);
  feed(source);
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
  c.latency += link.latency;
  if (++c.hop < c.hops) {
    engine_.schedule_in_lane(lane(u, kHop), slot.start + link.latency, kHop, id);
  } else {
    // Its last byte leaves the source when it crosses this link, less the way here and what the buffers take in.
    const Ps release = slot.end + link.latency - c.latency - link.bandwidth.time(c.ahead);
    engine_.schedule_in_lane(lane(u, kServed), std::max(engine_.now(), release), kServed, id);
    sink_.on_delivered(c.traffic, c.tag, c.offset + c.bytes, c.tail);  // may grow chunks_: `c` is dead from here
  }
}

}  // namespace sojourn
