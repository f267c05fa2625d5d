// The cycle of the flit network: arrivals, credits and ends of pauses, sources, then every router that is awake.
#include "network/flit/core.h"

#include <stdexcept>

namespace sojourn::flit {

namespace {

std::uint32_t lowest(std::uint64_t m) { return static_cast<std::uint32_t>(__builtin_ctzll(m)); }
std::uint32_t lowest(unsigned __int128 m) {
  const auto low = static_cast<std::uint64_t>(m);
  return low != 0 ? lowest(low) : 64 + lowest(static_cast<std::uint64_t>(m >> 64));
}
/// The first set bit from `pointer` on, going round.
template <class Mask>
std::uint32_t round_robin(Mask m, std::uint32_t pointer) {
  const Mask ahead = pointer < sizeof(Mask) * 8 ? m >> pointer << pointer : Mask{0};
  return lowest(ahead != 0 ? ahead : m);
}
std::uint8_t byte(std::uint32_t v) { return static_cast<std::uint8_t>(v); }

/// Books a flit on a slow link in cycle `now` and returns the cycle from which on it takes the next one. A link used
/// without a gap keeps the fraction of a cycle that was left.
Cycle occupy(std::int64_t& free_at, std::int32_t interval, Cycle now) {
  const std::int64_t here = now * kFullRate;
  free_at = (here - free_at < kFullRate ? free_at : here) + interval;
  return (free_at + kFullRate - 1) / kFullRate;
}

}  // namespace

template <class Mask>
void RouterCore<Mask>::send(int source, int destination, int flits, std::uint64_t tag) {
  std::uint32_t p = free_packet_;
  if (p == kNone) {
    p = static_cast<std::uint32_t>(packets_.size());
    packets_.emplace_back();
  } else {
    free_packet_ = packets_[p].next;
  }
  const auto s = static_cast<std::uint32_t>(source);
  packets_[p] = {tag, sent_++, s, static_cast<std::uint32_t>(destination), static_cast<std::uint32_t>(flits), 0, kNone,
                 now, 0,       0};
  Source& queue = sources_[s];
  (queue.first == kNone ? queue.first : packets_[queue.last].next) = p;
  queue.last = p;
  ++packets_held;
  wake(parts_[queue.owner].awake_sources, s);
}

template <class Mask>
Cycle RouterCore<Mask>::next_work() const {
  std::int64_t scheduled = 0;
  for (const Part& p : parts_) {
    for (const std::uint64_t m : p.awake_routers)
      if (m != 0) return now;
    for (const std::uint64_t m : p.awake_sources)
      if (m != 0) return now;
    scheduled += p.pushed - p.popped;
  }
  if (scheduled == 0) return kNever;
  for (Cycle t = now;; ++t)
    for (const Part& p : parts_)
      for (std::size_t w = 0; w < parts_.size(); ++w)
        if (!p.calendar[(static_cast<std::size_t>(t) & calendar_mask_) * parts_.size() + w].empty()) return t;
}

template <class Mask>
void RouterCore<Mask>::step() {
  if (parts_.size() == 1) {
    run(parts_[0]);
  } else {
    std::size_t awake = 0;
    for (const Part& p : parts_)
      for (const std::uint64_t m : p.awake_routers) awake += static_cast<std::size_t>(__builtin_popcountll(m));
    if (awake < pays_from_) {
      run(parts_[0]);
      run(parts_[1]);
    } else {
      pair_.run([this] { run(parts_[0]); });
    }
  }
  ++now;
  const std::size_t before = delivered.size();
  for (Part& p : parts_) {
    for (const std::uint32_t packet : p.finished) {
      packets_[packet].next = free_packet_;
      free_packet_ = packet;
    }
    packets_held -= static_cast<std::int64_t>(p.finished.size());
    p.finished.clear();
    delivered.insert(delivered.end(), p.delivered.begin(), p.delivered.end());
    p.delivered.clear();
  }
  if (delivered.size() > before + 1)
    std::sort(delivered.begin() + static_cast<std::ptrdiff_t>(before), delivered.end(),
              [](const Delivery& a, const Delivery& b) { return a.destination < b.destination; });
}

template <class Mask>
void RouterCore<Mask>::run(Part& part) {
  receive(part);
  const auto sweep = [](std::vector<std::uint64_t>& awake, const auto& step_one) {
    for (std::size_t w = 0; w < awake.size(); ++w)
      for (std::uint64_t m = awake[w]; m != 0; m &= m - 1) {
        const std::uint32_t bit = lowest(m);
        if (!step_one(static_cast<std::uint32_t>(w * 64) + bit)) awake[w] &= ~(std::uint64_t{1} << bit);
      }
  };
  sweep(part.awake_sources, [&](std::uint32_t t) { return step_source(part, t); });
  sweep(part.awake_routers, [&](std::uint32_t r) { return step_router(part, r); });
}

template <class Mask>
void RouterCore<Mask>::receive(Part& part) {
  Slot* slots = &part.calendar[(static_cast<std::size_t>(now) & calendar_mask_) * parts_.size()];
  for (std::size_t writer = 0; writer < parts_.size(); ++writer) {
    Slot& s = slots[writer];
    part.popped += static_cast<std::int64_t>(s.arrivals.size() + s.credits.size() + s.resumes.size());
    for (const std::uint32_t target : s.credits) {
      if ((target & kTerminal) != 0) {
        const std::uint32_t i = target & ~kTerminal;
        ++source_credits_[i];
        if (sources_[i / vcs_].first != kNone) wake(part.awake_sources, i / vcs_);
        continue;
      }
      const std::uint32_t r = router_of_input_[target];
      Router& router = routers_[r];
      const std::uint32_t bit = target - r * stride_;
      if (++outputs_[target].credits == 1) router.credit |= Mask{1} << bit;
      if (adaptive_ && outputs_[target].credits == output_capacity_[at(r) * ports_ + port_of_[bit]])
        router.empty |= Mask{1} << bit;
      if ((router.waiting | router.active) != 0) wake(part.awake_routers, r);
    }
    s.credits.clear();
    for (const std::uint32_t target : s.resumes) {
      if ((target & kTerminal) != 0) {
        const std::uint32_t t = (target & ~kTerminal) / vcs_;
        if (sources_[t].first != kNone) wake(part.awake_sources, t);
        continue;
      }
      const std::uint32_t r = router_of_input_[target];
      routers_[r].paused &= ~(((Mask{1} << vcs_) - 1) << (target - r * stride_));
      if ((routers_[r].waiting | routers_[r].active) != 0) wake(part.awake_routers, r);
    }
    s.resumes.clear();
    for (const Arrival& a : s.arrivals) receive_flit(part, a);
    s.arrivals.clear();
  }
}

template <class Mask>
void RouterCore<Mask>::receive_flit(Part& part, const Arrival& a) {
  if ((a.target & kTerminal) != 0) return sink(part, a.target & ~kTerminal, a.flit);
  InputVc& in = inputs_[a.target];
  std::uint32_t position = std::uint32_t{in.first} + in.count;
  if (position >= depth_) position -= depth_;
  slots_[at(a.target) * depth_ + position] = a.flit;
  if (in.count++ != 0) return;
  const std::uint32_t r = router_of_input_[a.target], bit = a.target - r * stride_;
  Router& router = routers_[r];
  if ((router.held >> bit & 1) != 0)
    router.active |= Mask{1} << bit;
  else
    expose(router, r, bit, a.flit.packet);
  wake(part.awake_routers, r);
}

template <class Mask>
void RouterCore<Mask>::expose(Router& r, std::uint32_t router, std::uint32_t input, std::uint32_t packet) {
  InputVc& in = inputs_[at(router) * stride_ + input];
  const std::size_t entry = at(router) * terminals_ + packets_[packet].destination;
  in.port = route_[entry];
  in.cls = class_[entry];
  (look_ahead_ ? r.waiting : r.routing) |= Mask{1} << input;
}

template <class Mask>
void RouterCore<Mask>::sink(Part& part, std::uint32_t terminal_vc, Flit flit) {
  const std::uint32_t terminal = terminal_vc / vcs_;
  Packet& p = packets_[flit.packet];
  if ((flit.sequence & ~kTail) != p.received || p.destination != terminal)
    throw std::logic_error("flit network: a flit out of order, or at the wrong sink");
  if (p.received++ == 0) p.head = now;
  ++part.ejected;
  slot(part, part.id, now + ejection_delay_[terminal]).credits.push_back(ejection_[terminal] + terminal_vc % vcs_);
  ++part.pushed;
  if ((flit.sequence & kTail) == 0) return;
  part.delivered.push_back({p.tag, static_cast<int>(p.source), static_cast<int>(p.destination),
                            static_cast<int>(p.flits), p.ready, p.inject, p.head, now});
  part.finished.push_back(flit.packet);
}

template <class Mask>
bool RouterCore<Mask>::step_source(Part& part, std::uint32_t terminal) {
  Source& s = sources_[terminal];
  if (s.free_at > now * kFullRate) return false;  // a resume is on its way
  std::uint16_t* credits = &source_credits_[at(terminal) * vcs_];
  Packet& p = packets_[s.first];
  if (s.sent == 0) {
    std::uint32_t vc = s.vc, tried = 0;
    do {
      vc = vc + 1 == vcs_ ? 0 : vc + 1;
    } while (credits[vc] == 0 && ++tried < vcs_);
    if (credits[vc] == 0) return false;
    s.vc = byte(vc);
    p.inject = now;
  }
  if (credits[s.vc] == 0) return false;
  --credits[s.vc];
  const bool tail = s.sent + 1 == p.flits;
  slot(part, part.id, now + s.delay).arrivals.push_back({s.input + s.vc, {s.first, s.sent | (tail ? kTail : 0)}});
  ++part.pushed;
  ++part.injected;
  ++s.sent;
  bool more = true;
  if (tail) {
    s.sent = 0;
    s.first = p.next;
    more = s.first != kNone;
  }
  if (s.interval == kFullRate) return more;
  const Cycle next = occupy(s.free_at, s.interval, now);
  if (next <= now + 1) return more;
  slot(part, part.id, next).resumes.push_back(kTerminal | (terminal * vcs_));
  ++part.pushed;
  return false;
}

template <class Mask>
std::uint32_t RouterCore<Mask>::oldest(Mask inputs, std::uint32_t base) const {
  std::uint32_t best = lowest(inputs);
  std::uint64_t order = packets_[packet_at(base + best)].order;
  for (Mask m = inputs & (inputs - 1); m != 0; m &= m - 1) {
    const std::uint32_t i = lowest(m);
    const std::uint64_t other = packets_[packet_at(base + i)].order;
    if (other >= order) continue;
    best = i;
    order = other;
  }
  return best;
}

template <class Mask>
void RouterCore<Mask>::choose_ports(Router& r, std::uint32_t router) {
  const std::uint32_t base = router * stride_;
  const Mask vcs = class_vcs_[adaptive_class_];
  for (Mask m = r.waiting; m != 0; m &= m - 1) {
    InputVc& in = inputs_[base + lowest(m)];
    const std::size_t entry = at(router) * terminals_ + packets_[packet_at(base + lowest(m))].destination;
    std::uint32_t most = 0;
    in.port = route_[entry];
    in.cls = class_[entry];
    for (std::uint64_t ports = productive_[entry]; ports != 0; ports &= ports - 1) {
      const std::uint32_t port = lowest(ports), first = port * vcs_;
      if (((~r.busy & r.empty) >> first & vcs) == 0) continue;
      std::uint32_t credits = 1;
      for (Mask v = vcs; v != 0; v &= v - 1) credits += outputs_[base + first + lowest(v)].credits;
      if (credits <= most) continue;
      most = credits;
      in.port = byte(port);
      in.cls = adaptive_class_;
    }
  }
}

template <class Mask>
Mask RouterCore<Mask>::allocate_vcs(Router& r, std::uint32_t base, std::uint8_t* granted) {
  Mask requests[kBits];
  Mask requested = 0, winners = 0;
  for (Mask m = r.waiting; m != 0; m &= m - 1) {
    const std::uint32_t i = lowest(m);
    const InputVc& in = inputs_[base + i];
    const std::uint32_t first = in.port * vcs_, pointer = in.pointer;
    const Mask open = open_vcs(r, in);
    if (open == 0) continue;
    const bool inside = pointer > first && pointer < first + vcs_;
    const std::uint32_t o = first + (inside ? round_robin(open, pointer - first) : lowest(open));
    if ((requested >> o & 1) == 0) requests[o] = 0;
    requested |= Mask{1} << o;
    requests[o] |= Mask{1} << i;
  }
  for (; requested != 0; requested &= requested - 1) {
    const std::uint32_t o = lowest(requested);
    const std::uint32_t i =
        oldest_first_ ? oldest(requests[o], base) : round_robin(requests[o], outputs_[base + o].pointer);
    outputs_[base + o].pointer = byte(i + 1 == stride_ ? 0 : i + 1);
    inputs_[base + i].pointer = byte(o + 1 == stride_ ? 0 : o + 1);
    granted[i] = byte(o);
    winners |= Mask{1} << i;
  }
  return winners;
}

template <class Mask>
bool RouterCore<Mask>::step_router(Part& part, std::uint32_t router) {
  Router& r = routers_[router];
  const std::uint32_t base = router * stride_;
  const Mask all = (Mask{1} << vcs_) - 1;
  std::uint8_t granted[kBits];
  if (adaptive_ && r.waiting != 0) choose_ports(r, router);
  const Mask got_vc = r.waiting != 0 ? allocate_vcs(r, base, granted) : Mask{0};

  const Mask credit = r.credit & ~r.paused;
  Mask firm = 0, speculative = 0;
  for (Mask m = r.active; m != 0; m &= m - 1)
    if ((credit >> inputs_[base + lowest(m)].out_vc & 1) != 0) firm |= m & -m;
  if (speculative_)
    for (Mask m = r.waiting; m != 0; m &= m - 1) {
      const InputVc& in = inputs_[base + lowest(m)];
      if ((credit >> (in.port * vcs_) & open_vcs(r, in)) != 0) speculative |= m & -m;
    }

  // Input side: one request an input port. Bit p of requests[class][output] is input port p.
  Pointers* pointers = &pointers_[at(router) * ports_];
  std::uint8_t chosen[kBits];
  Mask requests[2][kBits];
  Mask requested = 0;
  for (Mask left = firm | speculative; left != 0;) {
    const std::uint32_t port = port_of_[lowest(left)], first = port * vcs_;
    left &= ~(all << first);
    const bool is_firm = (firm >> first & all) != 0;
    Mask vcs = (is_firm ? firm : speculative) >> first & all;
    std::uint32_t vc = lowest(vcs), output = inputs_[base + first + vc].port;
    if ((vcs & (vcs - 1)) != 0) {
      if (oldest_first_) {
        vc = oldest(vcs, base + first);
        output = inputs_[base + first + vc].port;
      } else {
        Mask asked = 0;
        for (Mask m = vcs; m != 0; m &= m - 1) asked |= Mask{1} << inputs_[base + first + lowest(m)].port;
        output = round_robin(asked, pointers[port].output);
        for (Mask m = vcs; m != 0; m &= m - 1)
          if (inputs_[base + first + lowest(m)].port != output) vcs &= ~(m & -m);
        vc = round_robin(vcs, pointers[port].vc);
      }
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
    const Mask asking = requests[is_firm ? 1 : 0][output];
    std::uint32_t port = 0;
    if (oldest_first_) {
      Mask inputs = 0;
      for (Mask m = asking; m != 0; m &= m - 1) inputs |= Mask{1} << chosen[lowest(m)];
      port = port_of_[oldest(inputs, base)];
    } else {
      port = round_robin(asking, pointers[output].input);
    }
    const std::uint32_t input = chosen[port];
    pointers[output].input = byte(port + 1 == ports_ ? 0 : port + 1);
    pointers[port].output = byte(output + 1 == ports_ ? 0 : output + 1);
    const std::uint32_t vc = input - port * vcs_;
    pointers[port].vc = byte(vc + 1 == vcs_ ? 0 : vc + 1);
    if (!is_firm && ((got_vc >> input & 1) == 0 || (credit >> granted[input] & 1) == 0)) continue;
    traverse(part, r, router, input);
  }
  return !stuck && (r.waiting | r.active | r.routing) != 0;
}

template <class Mask>
void RouterCore<Mask>::traverse(Part& part, Router& r, std::uint32_t router, std::uint32_t input) {
  const std::uint32_t base = router * stride_;
  InputVc& in = inputs_[base + input];
  const Flit* ring = &slots_[at(base + input) * depth_];
  const Flit flit = ring[in.first];
  in.first = static_cast<std::uint16_t>(in.first + 1u == depth_ ? 0 : in.first + 1u);
  --in.count;
  ++part.hops;

  const std::uint32_t o = in.out_vc;
  if (--outputs_[base + o].credits == 0) r.credit &= ~(Mask{1} << o);
  r.empty &= ~(Mask{1} << o);
  const End& down = downstream_[at(router) * ports_ + in.port];
  slot(part, down.owner, now + down.delay).arrivals.push_back({down.target + o - in.port * vcs_, flit});
  const std::uint32_t port = port_of_[input];
  const End& up = upstream_[at(router) * ports_ + port];
  slot(part, up.owner, now + up.delay).credits.push_back(up.target + input - port * vcs_);
  part.pushed += 2;
  if (down.slow) {
    Pace& pace = paces_[at(router) * ports_ + in.port];
    const Cycle next = occupy(pace.free_at, pace.interval, now);
    if (next > now + 1) {
      r.paused |= ((Mask{1} << vcs_) - 1) << (in.port * vcs_);
      slot(part, part.id, next).resumes.push_back(base + in.port * vcs_);
      ++part.pushed;
    }
  }

  const bool tail = (flit.sequence & kTail) != 0;
  if (tail) {
    r.busy &= ~(Mask{1} << o);
    r.held &= ~(Mask{1} << input);
  }
  if (tail || in.count == 0) r.active &= ~(Mask{1} << input);
  if (tail && in.count != 0) expose(r, router, input, ring[in.first].packet);
}

template class RouterCore<std::uint64_t>;
template class RouterCore<unsigned __int128>;

}  // namespace sojourn::flit
