// The cycle of the flit network: arrivals and credits, sources, then every router that is awake. Routers speak to each
// other only through the calendar, at least one cycle ahead, so their order within a cycle does not matter.
#include "network/flit/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "network/flit/limits.h"

namespace sojourn::flit {

namespace {

using Mask = std::uint64_t;

std::uint32_t lowest(Mask m) { return static_cast<std::uint32_t>(__builtin_ctzll(m)); }
/// The first set bit from `pointer` on, going round.
std::uint32_t round_robin(Mask m, std::uint32_t pointer) {
  const Mask ahead = pointer < 64 ? m >> pointer << pointer : 0;
  return lowest(ahead != 0 ? ahead : m);
}
std::uint8_t byte(std::uint32_t v) { return static_cast<std::uint8_t>(v); }

}  // namespace

FlitNetwork::FlitNetwork(const FlitConfig& c)
    : vcs_(static_cast<std::uint32_t>(c.vcs)),
      buffer_(static_cast<std::uint32_t>(c.buffer)),
      terminals_(static_cast<std::uint32_t>(c.terminals.size())),
      speculative_(c.speculative),
      look_ahead_(c.look_ahead),
      terminal_latency_(c.terminal_latency) {
  const auto n = static_cast<std::size_t>(c.routers);
  std::vector<std::uint32_t> free_port(n, 0);
  int longest = c.terminal_latency;
  for (const Link& l : c.links) {
    std::uint32_t &from = free_port[static_cast<std::size_t>(l.from)], &to = free_port[static_cast<std::size_t>(l.to)];
    from = std::max(from, static_cast<std::uint32_t>(l.from_port) + 1);
    to = std::max(to, static_cast<std::uint32_t>(l.to_port) + 1);
    longest = std::max(longest, l.latency);
  }
  std::vector<std::uint32_t> terminal_port;
  for (const int r : c.terminals) terminal_port.push_back(free_port[static_cast<std::size_t>(r)]++);
  ports_ = *std::max_element(free_port.begin(), free_port.end());
  stride_ = ports_ * vcs_;
  if (stride_ > static_cast<std::uint32_t>(kMostPortVcs)) throw std::logic_error("flit network: too many port VCs");
  for (std::uint32_t i = 0; i < stride_; ++i) port_of_[i] = byte(i / vcs_);

  routers_.resize(n);
  inputs_.resize(n * stride_);
  outputs_.resize(n * stride_);
  slots_.resize(n * stride_ * buffer_);
  pointers_.resize(n * ports_);
  downstream_.resize(n * ports_);
  upstream_.resize(n * ports_);
  router_of_input_.resize(n * stride_);
  for (std::size_t i = 0; i < router_of_input_.size(); ++i)
    router_of_input_[i] = static_cast<std::uint32_t>(i / stride_);
  const auto vc0 = [&](int router, std::uint32_t port) {
    return static_cast<std::uint32_t>(router) * stride_ + port * vcs_;
  };
  const auto give_credits = [&](int router, std::uint32_t port) {
    for (std::uint32_t v = 0; v < vcs_; ++v) {
      outputs_[vc0(router, port) + v].credits = byte(buffer_);
      routers_[static_cast<std::size_t>(router)].credit |= Mask{1} << (port * vcs_ + v);
    }
  };
  for (const Link& l : c.links) {
    const auto from = static_cast<std::uint32_t>(l.from_port), to = static_cast<std::uint32_t>(l.to_port);
    downstream_[static_cast<std::size_t>(l.from) * ports_ + from] = {vc0(l.to, to), l.latency};
    upstream_[static_cast<std::size_t>(l.to) * ports_ + to] = {vc0(l.from, from), l.latency};
    give_credits(l.from, from);
  }
  sources_.resize(terminals_);
  ejection_.resize(terminals_);
  source_credits_.assign(terminals_ * vcs_, byte(buffer_));
  for (std::uint32_t t = 0; t < terminals_; ++t) {
    const int r = c.terminals[t];
    const std::size_t port = static_cast<std::size_t>(r) * ports_ + terminal_port[t];
    downstream_[port] = upstream_[port] = {kTerminal | (t * vcs_), terminal_latency_};
    ejection_[t] = sources_[t].input = vc0(r, terminal_port[t]);
    sources_[t].vc = byte(vcs_ - 1);
    give_credits(r, terminal_port[t]);
  }
  route_.resize(n * terminals_);
  for (int r = 0; r < c.routers; ++r)
    for (std::uint32_t t = 0; t < terminals_; ++t) {
      const int l = c.route(r, static_cast<int>(t));
      route_[static_cast<std::size_t>(r) * terminals_ + t] =
          l < 0 ? byte(terminal_port[t])
                : byte(static_cast<std::uint32_t>(c.links[static_cast<std::size_t>(l)].from_port));
    }
  awake_routers_.resize((n + 63) / 64);
  awake_sources_.resize((terminals_ + 63) / 64);
  std::size_t slots = 4;
  while (slots < static_cast<std::size_t>(longest) + 3) slots *= 2;
  calendar_.resize(slots);
  calendar_mask_ = slots - 1;
}

void FlitNetwork::send(int source, int destination, int flits, std::uint64_t tag) {
  std::uint32_t p = free_packet_;
  if (p == kNone) {
    p = static_cast<std::uint32_t>(packets_.size());
    packets_.emplace_back();
  } else {
    free_packet_ = packets_[p].next;
  }
  const auto s = static_cast<std::uint32_t>(source);
  packets_[p] = {tag, s, static_cast<std::uint32_t>(destination), static_cast<std::uint32_t>(flits), 0, kNone, now_,
                 0,   0};
  Source& queue = sources_[s];
  (queue.first == kNone ? queue.first : packets_[queue.last].next) = p;
  queue.last = p;
  ++packets_held_;
  wake(awake_sources_, s);
}

Cycle FlitNetwork::next_work() const {
  for (const Mask m : awake_routers_)
    if (m != 0) return now_;
  for (const Mask m : awake_sources_)
    if (m != 0) return now_;
  if (scheduled_ == 0) return kNever;
  for (Cycle t = now_;; ++t) {
    const Slot& s = calendar_[static_cast<std::size_t>(t) & calendar_mask_];
    if (!s.arrivals.empty() || !s.credits.empty()) return t;
  }
}

void FlitNetwork::step() {
  receive();
  const auto sweep = [](std::vector<Mask>& awake, const auto& step_one) {
    for (std::size_t w = 0; w < awake.size(); ++w)
      for (Mask m = awake[w]; m != 0; m &= m - 1) {
        const std::uint32_t bit = lowest(m);
        if (!step_one(static_cast<std::uint32_t>(w * 64) + bit)) awake[w] &= ~(Mask{1} << bit);
      }
  };
  sweep(awake_sources_, [&](std::uint32_t t) { return step_source(t); });
  sweep(awake_routers_, [&](std::uint32_t r) { return step_router(r); });
  ++now_;
}

void FlitNetwork::receive() {
  Slot& s = slot(now_);
  scheduled_ -= static_cast<std::int64_t>(s.arrivals.size() + s.credits.size());
  for (const std::uint32_t target : s.credits) {
    if ((target & kTerminal) != 0) {
      const std::uint32_t i = target & ~kTerminal;
      ++source_credits_[i];
      if (sources_[i / vcs_].first != kNone) wake(awake_sources_, i / vcs_);
      continue;
    }
    const std::uint32_t r = router_of_input_[target];
    Router& router = routers_[r];
    if (++outputs_[target].credits == 1) router.credit |= Mask{1} << (target - r * stride_);
    if ((router.waiting | router.active) != 0) wake(awake_routers_, r);
  }
  s.credits.clear();
  for (const Arrival& a : s.arrivals) receive_flit(a);
  s.arrivals.clear();
}

void FlitNetwork::receive_flit(const Arrival& a) {
  if ((a.target & kTerminal) != 0) return sink(a.target & ~kTerminal, a.flit);
  InputVc& in = inputs_[a.target];
  std::uint32_t position = in.first + in.count;
  if (position >= buffer_) position -= buffer_;
  slots_[at(a.target) * buffer_ + position] = a.flit;
  if (in.count++ != 0) return;
  const std::uint32_t r = router_of_input_[a.target], bit = a.target - r * stride_;
  Router& router = routers_[r];
  if ((router.held >> bit & 1) != 0)
    router.active |= Mask{1} << bit;
  else
    expose(router, r, bit, a.flit.packet);
  wake(awake_routers_, r);
}

void FlitNetwork::expose(Router& r, std::uint32_t router, std::uint32_t input, std::uint32_t packet) {
  inputs_[at(router) * stride_ + input].port = route_[at(router) * terminals_ + packets_[packet].destination];
  (look_ahead_ ? r.waiting : r.routing) |= Mask{1} << input;
}

void FlitNetwork::sink(std::uint32_t terminal_vc, Flit flit) {
  const std::uint32_t terminal = terminal_vc / vcs_;
  Packet& p = packets_[flit.packet];
  if ((flit.sequence & ~kTail) != p.received || p.destination != terminal)
    throw std::logic_error("flit network: a flit out of order, or at the wrong sink");
  if (p.received++ == 0) p.head = now_;
  ++flits_ejected_;
  slot(now_ + 1 + terminal_latency_).credits.push_back(ejection_[terminal] + terminal_vc % vcs_);
  ++scheduled_;
  if ((flit.sequence & kTail) == 0) return;
  delivered_.push_back({p.tag, static_cast<int>(p.source), static_cast<int>(p.destination), static_cast<int>(p.flits),
                        p.ready, p.inject, p.head, now_});
  p.next = free_packet_;
  free_packet_ = flit.packet;
  --packets_held_;
}

bool FlitNetwork::step_source(std::uint32_t terminal) {
  Source& s = sources_[terminal];
  std::uint8_t* credits = &source_credits_[at(terminal) * vcs_];
  Packet& p = packets_[s.first];
  if (s.sent == 0) {
    std::uint32_t vc = s.vc, tried = 0;
    do {
      vc = vc + 1 == vcs_ ? 0 : vc + 1;
    } while (credits[vc] == 0 && ++tried < vcs_);
    if (credits[vc] == 0) return false;
    s.vc = byte(vc);
    p.inject = now_;
  }
  if (credits[s.vc] == 0) return false;
  --credits[s.vc];
  const bool tail = s.sent + 1 == p.flits;
  slot(now_ + 1 + terminal_latency_).arrivals.push_back({s.input + s.vc, {s.first, s.sent | (tail ? kTail : 0)}});
  ++scheduled_;
  ++flits_injected_;
  ++s.sent;
  if (!tail) return true;
  s.sent = 0;
  s.first = p.next;
  return s.first != kNone;
}

Mask FlitNetwork::allocate_vcs(Router& r, std::uint32_t base, std::uint8_t* granted) {
  const Mask all = (Mask{1} << vcs_) - 1;
  Mask requests[64];
  Mask requested = 0, winners = 0;
  for (Mask m = r.waiting; m != 0; m &= m - 1) {
    const std::uint32_t i = lowest(m), first = inputs_[base + i].port * vcs_, pointer = inputs_[base + i].pointer;
    const Mask open = ~r.busy >> first & all;
    if (open == 0) continue;
    const bool inside = pointer > first && pointer < first + vcs_;
    const std::uint32_t o = first + (inside ? round_robin(open, pointer - first) : lowest(open));
    if ((requested >> o & 1) == 0) requests[o] = 0;
    requested |= Mask{1} << o;
    requests[o] |= Mask{1} << i;
  }
  for (; requested != 0; requested &= requested - 1) {
    const std::uint32_t o = lowest(requested);
    const std::uint32_t i = round_robin(requests[o], outputs_[base + o].pointer);
    outputs_[base + o].pointer = byte(i + 1 == stride_ ? 0 : i + 1);
    inputs_[base + i].pointer = byte(o + 1 == stride_ ? 0 : o + 1);
    granted[i] = byte(o);
    winners |= Mask{1} << i;
  }
  return winners;
}

bool FlitNetwork::step_router(std::uint32_t router) {
  Router& r = routers_[router];
  const std::uint32_t base = router * stride_;
  const Mask all = (Mask{1} << vcs_) - 1;
  std::uint8_t granted[64];
  const Mask got_vc = r.waiting != 0 ? allocate_vcs(r, base, granted) : 0;

  Mask firm = 0, speculative = 0;
  for (Mask m = r.active; m != 0; m &= m - 1)
    if ((r.credit >> inputs_[base + lowest(m)].out_vc & 1) != 0) firm |= m & -m;
  if (speculative_)
    for (Mask m = r.waiting; m != 0; m &= m - 1)
      if (((r.credit & ~r.busy) >> (inputs_[base + lowest(m)].port * vcs_) & all) != 0) speculative |= m & -m;

  // Input side: one request an input port. Bit p of requests[class][output] is input port p.
  Pointers* pointers = &pointers_[at(router) * ports_];
  std::uint8_t chosen[64];
  Mask requests[2][64];
  Mask requested = 0;
  for (Mask left = firm | speculative; left != 0;) {
    const std::uint32_t port = port_of_[lowest(left)], first = port * vcs_;
    left &= ~(all << first);
    const bool is_firm = (firm >> first & all) != 0;
    Mask vcs = (is_firm ? firm : speculative) >> first & all;
    std::uint32_t vc = lowest(vcs), output = inputs_[base + first + vc].port;
    if ((vcs & (vcs - 1)) != 0) {
      Mask asked = 0;
      for (Mask m = vcs; m != 0; m &= m - 1) asked |= Mask{1} << inputs_[base + first + lowest(m)].port;
      output = round_robin(asked, pointers[port].output);
      for (Mask m = vcs; m != 0; m &= m - 1)
        if (inputs_[base + first + lowest(m)].port != output) vcs &= ~(m & -m);
      vc = round_robin(vcs, pointers[port].vc);
    }
    chosen[port] = byte(first + vc);
    if ((requested >> output & 1) == 0) requests[0][output] = requests[1][output] = 0;
    requested |= Mask{1} << output;
    requests[is_firm ? 1 : 0][output] |= Mask{1} << port;
  }
  const bool stuck = requested == 0 && got_vc == 0 && r.routing == 0;

  // VC grants take effect before flits move, both after every decision is made from the old state.
  for (Mask m = got_vc; m != 0; m &= m - 1) {
    const std::uint32_t i = lowest(m);
    inputs_[base + i].out_vc = granted[i];
    r.busy |= Mask{1} << granted[i];
  }
  r.waiting &= ~got_vc;
  r.held |= got_vc;
  r.active |= got_vc;
  r.waiting |= r.routing;
  r.routing = 0;

  for (; requested != 0; requested &= requested - 1) {
    const std::uint32_t output = lowest(requested);
    const bool is_firm = requests[1][output] != 0;
    const std::uint32_t port = round_robin(requests[is_firm ? 1 : 0][output], pointers[output].input);
    const std::uint32_t input = chosen[port];
    pointers[output].input = byte(port + 1 == ports_ ? 0 : port + 1);
    pointers[port].output = byte(output + 1 == ports_ ? 0 : output + 1);
    const std::uint32_t vc = input - port * vcs_;
    pointers[port].vc = byte(vc + 1 == vcs_ ? 0 : vc + 1);
    if (!is_firm && ((got_vc >> input & 1) == 0 || (r.credit >> granted[input] & 1) == 0)) continue;
    traverse(r, router, input);
  }
  return !stuck && (r.waiting | r.active | r.routing) != 0;
}

void FlitNetwork::traverse(Router& r, std::uint32_t router, std::uint32_t input) {
  const std::uint32_t base = router * stride_;
  InputVc& in = inputs_[base + input];
  const Flit* ring = &slots_[at(base + input) * buffer_];
  const Flit flit = ring[in.first];
  in.first = in.first + 1u == buffer_ ? 0 : byte(in.first + 1u);
  --in.count;
  ++router_hops_;

  const std::uint32_t o = in.out_vc;
  if (--outputs_[base + o].credits == 0) r.credit &= ~(Mask{1} << o);
  const End& down = downstream_[at(router) * ports_ + in.port];
  slot(now_ + 2 + down.latency).arrivals.push_back({down.target + o - in.port * vcs_, flit});
  const std::uint32_t port = port_of_[input];
  const End& up = upstream_[at(router) * ports_ + port];
  slot(now_ + 1 + up.latency).credits.push_back(up.target + input - port * vcs_);
  scheduled_ += 2;

  const bool tail = (flit.sequence & kTail) != 0;
  if (tail) {
    r.busy &= ~(Mask{1} << o);
    r.held &= ~(Mask{1} << input);
  }
  if (tail || in.count == 0) r.active &= ~(Mask{1} << input);
  if (tail && in.count != 0) expose(r, router, input, ring[in.first].packet);
}

std::string FlitNetwork::inconsistency() const {
  // Every credit of an output VC is in its counter, on its way back, or stands for a flit on the link or in the buffer.
  const std::size_t channels = outputs_.size();
  std::vector<std::uint32_t> sum(channels + source_credits_.size(), 0);
  for (std::size_t i = 0; i < channels; ++i) sum[i] += outputs_[i].credits;
  for (std::size_t i = 0; i < source_credits_.size(); ++i) sum[channels + i] += source_credits_[i];
  const auto feeder = [&](std::uint32_t input) -> std::size_t {
    const std::uint32_t router = router_of_input_[input], bit = input - router * stride_, port = port_of_[bit];
    const std::uint32_t target = upstream_[at(router) * ports_ + port].target + bit - port * vcs_;
    return (target & kTerminal) != 0 ? channels + (target & ~kTerminal) : target;
  };
  std::int64_t inside = 0;
  for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].count == 0) continue;
    if (inputs_[i].count > buffer_) return fmt::format("input VC {} holds {} flits", i, inputs_[i].count);
    sum[feeder(i)] += inputs_[i].count;
    inside += inputs_[i].count;
  }
  for (const Slot& s : calendar_) {
    for (const std::uint32_t c : s.credits) ++sum[(c & kTerminal) != 0 ? channels + (c & ~kTerminal) : c];
    for (const Arrival& a : s.arrivals) {
      const std::uint32_t t = a.target & ~kTerminal;
      ++sum[(a.target & kTerminal) != 0 ? ejection_[t / vcs_] + t % vcs_ : feeder(a.target)];
      ++inside;
    }
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const bool connected = i >= channels || downstream_[i / stride_ * ports_ + port_of_[i % stride_]].target != kNone;
    if (connected && sum[i] != buffer_) return fmt::format("channel {} has {} of {} credits", i, sum[i], buffer_);
  }
  if (flits_injected_ != flits_ejected_ + inside)
    return fmt::format("{} flits in, {} out, {} inside", flits_injected_, flits_ejected_, inside);
  return {};
}

}  // namespace sojourn::flit
