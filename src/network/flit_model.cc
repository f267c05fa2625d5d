// Flit network on the event engine; see flit_model.h for the rules.
#include "network/flit_model.h"

#include <algorithm>
#include <functional>

namespace sojourn {
namespace {

std::int64_t parts(Bytes whole, Bytes part) { return (whole + part - 1) / part; }

}  // namespace

FlitModel::FlitModel(const Package& package, FlitMap map, Engine& engine, Ledger& ledger, NetworkSink& sink)
    : package_(package),
      map_(std::move(map)),
      engine_(engine),
      ledger_(ledger),
      sink_(sink),
      network_(map_.config),
      terminals_(map_.config.terminals.size()) {
  for (std::size_t t = 0; t < terminals_.size(); ++t) {
    terminals_[t].ready.resize(terminals_.size());
    terminals_[t].turn = t;
  }
}

void FlitModel::send(const Message& m) {
  ledger_.request(m.traffic, m.path, m.bytes);
  for (const int u : m.path)
    ledger_.links[static_cast<std::size_t>(u)].busy +=
        package_.links[static_cast<std::size_t>(u)].bandwidth.time(m.bytes);
  if (m.path.empty() || m.bytes <= 0) {
    sink_.on_delivered(m.traffic, m.tag, m.bytes, m.tail);
    return;
  }
  std::uint32_t id = static_cast<std::uint32_t>(flows_.size());
  if (free_flows_.empty()) {
    flows_.emplace_back();
  } else {
    id = free_flows_.back();
    free_flows_.pop_back();
  }
  Flow& f = flows_[id];
  f.traffic = m.traffic;
  f.whole = m.whole;
  f.tag = m.tag;
  f.first_link = m.path.front();
  f.source = map_.source_of[static_cast<std::size_t>(m.path.front())];
  f.sink = map_.sink_of[static_cast<std::size_t>(m.path.back())];
  f.bytes = m.bytes;
  f.head = m.head;
  f.tail = m.tail;
  f.packets = parts(m.bytes, map_.packet_bytes);
  f.sent = f.prefix = 0;
  if (const Ps at = ready_at(f); at > engine_.now())
    engine_.schedule(at, kOffer, id);
  else
    offer(id);
}

/// The last byte of its next packet is there.
Ps FlitModel::ready_at(const Flow& f) const {
  if (f.tail <= f.head) return f.head;
  const Bytes end = std::min(f.bytes, (f.sent + 1) * map_.packet_bytes);
  return f.head + static_cast<Ps>(static_cast<__int128>(f.tail - f.head) * end / f.bytes);
}

void FlitModel::offer(std::uint32_t flow) {
  const int t = flows_[flow].source;
  Terminal& terminal = terminals_[static_cast<std::size_t>(t)];
  terminal.ready[static_cast<std::size_t>(flows_[flow].sink)].push_back(flow);
  ++terminal.waiting;
  // Every cycle that starts before this event has been simulated, so the network may stand at the next one.
  if (const flit::Cycle c = cycle_from(engine_.now()); c > network_.now()) network_.skip_to(c);
  feed(t);
  plan();
}

void FlitModel::feed(int terminal) {
  Terminal& t = terminals_[static_cast<std::size_t>(terminal)];
  if (t.busy || t.waiting == 0) return;
  while (t.ready[t.turn].empty()) t.turn = t.turn + 1 == t.ready.size() ? 0 : t.turn + 1;
  std::deque<std::uint32_t>& queue = t.ready[t.turn];
  t.turn = t.turn + 1 == t.ready.size() ? 0 : t.turn + 1;
  const std::uint32_t id = queue.front();
  Flow& f = flows_[id];
  const Bytes bytes = std::min(map_.packet_bytes, f.bytes - f.sent * map_.packet_bytes);
  network_.send(f.source, f.sink, static_cast<int>(parts(bytes, map_.flit_bytes)),
                static_cast<std::uint64_t>(id) << 32 | static_cast<std::uint64_t>(f.sent));
  t.busy = true;
  busy_.push_back(terminal);
  if (spans_) {
    t.span_start = network_.now() * map_.cycle;
    t.span_link = f.first_link;
    t.span_traffic = f.traffic;
  }
  ++f.sent;
  const bool more = f.sent < f.packets;
  if (more && ready_at(f) <= network_.now() * map_.cycle) return;
  queue.pop_front();
  --t.waiting;
  if (more) engine_.schedule(ready_at(f), kOffer, id);
}

void FlitModel::plan() {
  const flit::Cycle next = network_.next_work();
  if (running_ || next == flit::kNever) return;
  const Ps at = next * map_.cycle;
  if (at >= planned_) return;
  planned_ = at;
  engine_.schedule(at, kStep, ++plan_);
}

void FlitModel::on_event(const Event& event) {
  if (event.kind == kOffer) return offer(event.index);
  if (event.index != plan_) return;  // another step was planned after this one
  planned_ = kPsNever;
  run();
}

void FlitModel::run() {
  running_ = true;
  for (flit::Cycle next; (next = network_.next_work()) != flit::kNever;) {
    if (engine_.next_time() <= next * map_.cycle) break;
    network_.skip_to(next);
    network_.step();
    for (std::size_t i = 0; i < busy_.size();) {
      const int terminal = busy_[i];
      if (!network_.source_idle(terminal)) {
        ++i;
        continue;
      }
      Terminal& t = terminals_[static_cast<std::size_t>(terminal)];
      t.busy = false;
      busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(i));
      if (spans_)
        spans_->span(package_index_, SpanTrack::link, t.span_link, t.span_start, network_.now() * map_.cycle,
                     kTrafficNames[static_cast<std::size_t>(t.span_traffic)]);
      feed(terminal);
    }
    if (network_.delivered().empty()) continue;
    arrived_.swap(network_.delivered());
    for (const flit::Delivery& d : arrived_) deliver(d);
    arrived_.clear();
  }
  running_ = false;
  plan();
}

void FlitModel::deliver(const flit::Delivery& d) {
  const auto id = static_cast<std::uint32_t>(d.tag >> 32);
  const auto packet = static_cast<std::int64_t>(d.tag & 0xFFFFFFFF);
  Flow& f = flows_[id];
  if (packet != f.prefix) {  // another virtual channel was faster
    f.early.insert(std::lower_bound(f.early.begin(), f.early.end(), packet, std::greater<>()), packet);
    return;
  }
  ++f.prefix;
  while (!f.early.empty() && f.early.back() == f.prefix) {
    f.early.pop_back();
    ++f.prefix;
  }
  const bool done = f.prefix == f.packets;
  const Traffic traffic = f.traffic;
  const std::uint32_t tag = f.tag;
  const Bytes delivered = std::min(f.bytes, f.prefix * map_.packet_bytes);
  const bool tell = done || !f.whole;
  if (done) free_flows_.push_back(id);
  if (tell) sink_.on_delivered(traffic, tag, delivered, (d.tail + 1) * map_.cycle);  // may grow flows_: `f` is dead
}

}  // namespace sojourn
