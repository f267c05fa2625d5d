// Building the flit network's tables from a configuration, and the walk that checks its books.
#include <fmt/format.h>

#include <stdexcept>

#include "network/flit/core.h"

namespace sojourn::flit {

namespace {

std::uint8_t byte(std::uint32_t v) { return static_cast<std::uint8_t>(v); }
/// Cycles that a flit needs beyond the first to have crossed a link of that interval.
std::int32_t crossing(int interval) { return (interval + kFullRate - 1) / kFullRate - 1; }

}  // namespace

template <class Mask>
RouterCore<Mask>::RouterCore(const FlitConfig& c, int threads, int pays_from)
    : vcs_(static_cast<std::uint32_t>(c.vcs)),
      terminals_(static_cast<std::uint32_t>(c.terminals.size())),
      speculative_(c.speculative),
      look_ahead_(c.look_ahead),
      oldest_first_(c.oldest_first),
      adaptive_(c.adaptive),
      router_delay_(c.router_delay),
      pays_from_(static_cast<std::size_t>(pays_from)),
      pair_([this] { run(parts_[1]); }) {
  const auto n = static_cast<std::size_t>(c.routers);
  parts_.resize(threads > 1 && n > 1 ? 2 : 1);
  part_of_router_.resize(n);
  for (std::size_t r = 0; r < n; ++r) part_of_router_[r] = static_cast<std::uint16_t>(r * parts_.size() / n);
  build_ports(c);
  build_routes(c);
  std::int32_t longest = 1;
  for (const End& e : downstream_) longest = std::max<std::int32_t>(longest, e.delay);
  for (const End& e : upstream_) longest = std::max<std::int32_t>(longest, e.delay);
  for (const Pace& p : paces_) longest = std::max(longest, p.interval / kFullRate + 2);
  for (const Source& s : sources_) longest = std::max({longest, s.delay, s.interval / kFullRate + 2});
  for (const std::int32_t d : ejection_delay_) longest = std::max(longest, d);
  std::size_t slots = 4;
  while (slots < static_cast<std::size_t>(longest) + 1) slots *= 2;
  calendar_mask_ = slots - 1;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].id = static_cast<std::uint32_t>(i);
    parts_[i].awake_routers.resize((n + 63) / 64);
    parts_[i].awake_sources.resize((terminals_ + 63) / 64);
    parts_[i].calendar.resize(slots * parts_.size());
  }
}

template <class Mask>
void RouterCore<Mask>::build_ports(const FlitConfig& c) {
  const auto n = static_cast<std::size_t>(c.routers);
  std::vector<std::uint32_t> free_port(n, 0);
  const auto depth_of = [&](int buffer) { return static_cast<std::uint32_t>(buffer > 0 ? buffer : c.buffer); };
  depth_ = static_cast<std::uint32_t>(c.buffer);
  for (const Link& l : c.links) {
    std::uint32_t &from = free_port[at(l.from)], &to = free_port[at(l.to)];
    from = std::max(from, static_cast<std::uint32_t>(l.from_port) + 1);
    to = std::max(to, static_cast<std::uint32_t>(l.to_port) + 1);
    depth_ = std::max(depth_, depth_of(l.buffer));
  }
  std::vector<std::uint32_t> terminal_port;
  for (std::uint32_t t = 0; t < terminals_; ++t) {
    terminal_port.push_back(free_port[at(c.terminals[t])]++);
    depth_ = std::max(depth_, depth_of(c.terminal_link(static_cast<int>(t)).buffer));
  }
  ports_ = *std::max_element(free_port.begin(), free_port.end());
  stride_ = ports_ * vcs_;
  if (stride_ > kBits) throw std::logic_error("flit network: too many port VCs");
  for (std::uint32_t i = 0; i < stride_; ++i) port_of_[i] = byte(i / vcs_);

  routers_.resize(n);
  inputs_.resize(n * stride_);
  outputs_.resize(n * stride_);
  slots_.resize(n * stride_ * depth_);
  pointers_.resize(n * ports_);
  downstream_.resize(n * ports_);
  upstream_.resize(n * ports_);
  paces_.resize(n * ports_);
  output_capacity_.resize(n * ports_);
  input_capacity_.resize(n * ports_);
  router_of_input_.resize(n * stride_);
  for (std::size_t i = 0; i < router_of_input_.size(); ++i)
    router_of_input_[i] = static_cast<std::uint32_t>(i / stride_);
  const auto vc0 = [&](int router, std::uint32_t port) {
    return static_cast<std::uint32_t>(router) * stride_ + port * vcs_;
  };
  const auto give_credits = [&](int router, std::uint32_t port, std::uint32_t depth) {
    output_capacity_[at(router) * ports_ + port] = static_cast<std::uint16_t>(depth);
    for (std::uint32_t v = 0; v < vcs_; ++v) {
      outputs_[vc0(router, port) + v].credits = static_cast<std::uint16_t>(depth);
      routers_[at(router)].credit |= Mask{1} << (port * vcs_ + v);
      routers_[at(router)].empty |= Mask{1} << (port * vcs_ + v);
    }
  };
  for (const Link& l : c.links) {
    const auto from = static_cast<std::uint32_t>(l.from_port), to = static_cast<std::uint32_t>(l.to_port);
    End &down = downstream_[at(l.from) * ports_ + from], &up = upstream_[at(l.to) * ports_ + to];
    down.target = vc0(l.to, to);
    down.delay = static_cast<std::uint16_t>(2 + l.latency + crossing(l.interval) + router_delay_);
    down.slow = l.interval > kFullRate;
    paces_[at(l.from) * ports_ + from].interval = l.interval;
    down.owner = byte(part_of_router_[at(l.to)]);
    up.target = vc0(l.from, from);
    up.delay = static_cast<std::uint16_t>(1 + l.latency);
    up.owner = byte(part_of_router_[at(l.from)]);
    give_credits(l.from, from, depth_of(l.buffer));
  }
  sources_.resize(terminals_);
  ejection_.resize(terminals_);
  ejection_delay_.resize(terminals_);
  source_credits_.resize(at(terminals_) * vcs_);
  for (std::uint32_t t = 0; t < terminals_; ++t) {
    const int r = c.terminals[t];
    const TerminalLink l = c.terminal_link(static_cast<int>(t));
    const std::size_t port = at(r) * ports_ + terminal_port[t];
    End &down = downstream_[port], &up = upstream_[port];
    down.target = up.target = kTerminal | (t * vcs_);
    down.delay = static_cast<std::uint16_t>(2 + l.out_latency + crossing(l.out_interval));
    down.slow = l.out_interval > kFullRate;
    paces_[port].interval = l.out_interval;
    up.delay = static_cast<std::uint16_t>(1 + l.in_latency);
    down.owner = up.owner = byte(part_of_router_[at(r)]);
    ejection_delay_[t] = 1 + l.out_latency;
    Source& s = sources_[t];
    ejection_[t] = s.input = vc0(r, terminal_port[t]);
    s.delay = 1 + l.in_latency + crossing(l.in_interval) + router_delay_;
    s.interval = l.in_interval;
    s.owner = part_of_router_[at(r)];
    s.vc = byte(vcs_ - 1);
    input_capacity_[port] = static_cast<std::uint16_t>(depth_of(l.buffer));
    for (std::uint32_t v = 0; v < vcs_; ++v) source_credits_[at(t) * vcs_ + v] = input_capacity_[port];
    give_credits(r, terminal_port[t], static_cast<std::uint32_t>(c.buffer));
  }
}

template <class Mask>
void RouterCore<Mask>::build_routes(const FlitConfig& c) {
  const auto n = static_cast<std::size_t>(c.routers);
  const auto classes = static_cast<std::uint32_t>(c.classes);
  for (std::uint32_t k = 0; k < classes; ++k) {
    const std::uint32_t first = adaptive_ ? k : k * vcs_ / classes, end = adaptive_ ? k + 1 : (k + 1) * vcs_ / classes;
    class_vcs_.push_back(((Mask{1} << end) - 1) & ~((Mask{1} << first) - 1));
  }
  const Mask all = (Mask{1} << vcs_) - 1;
  if (adaptive_) {
    adaptive_class_ = byte(classes);
    class_vcs_.push_back(all & ~((Mask{1} << classes) - 1));
    productive_ = productive_ports(c);
  }
  class_vcs_.push_back(all);
  const std::uint8_t any = byte(static_cast<std::uint32_t>(class_vcs_.size()) - 1);
  route_.resize(n * terminals_);
  class_.resize(n * terminals_);
  for (int r = 0; r < c.routers; ++r)
    for (std::uint32_t t = 0; t < terminals_; ++t) {
      const int l = c.route(r, static_cast<int>(t));
      const std::size_t i = at(r) * terminals_ + t;
      // Where no packet for t comes by, the entry is never read.
      route_[i] =
          l < 0 ? byte(ejection_[t] % stride_ / vcs_) : byte(static_cast<std::uint32_t>(c.links[at(l)].from_port));
      class_[i] = l < 0 ? any : byte(static_cast<std::uint32_t>(c.class_of(r, static_cast<int>(t))));
      if (adaptive_ && l < 0) productive_[i] = 0;
    }
}

template <class Mask>
std::string RouterCore<Mask>::inconsistency() const {
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
    if (inputs_[i].count > depth_) return fmt::format("input VC {} holds {} flits", i, inputs_[i].count);
    sum[feeder(i)] += inputs_[i].count;
    inside += inputs_[i].count;
  }
  for (const Part& part : parts_)
    for (const Slot& s : part.calendar) {
      for (const std::uint32_t c : s.credits) ++sum[(c & kTerminal) != 0 ? channels + (c & ~kTerminal) : c];
      for (const Arrival& a : s.arrivals) {
        const std::uint32_t t = a.target & ~kTerminal;
        ++sum[(a.target & kTerminal) != 0 ? ejection_[t / vcs_] + t % vcs_ : feeder(a.target)];
        ++inside;
      }
    }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    std::uint32_t capacity = 0;
    if (i < channels) {
      const std::size_t port = i / stride_ * ports_ + port_of_[i % stride_];
      if (downstream_[port].target == kNone) continue;
      capacity = output_capacity_[port];
    } else {
      const std::uint32_t input = sources_[(i - channels) / vcs_].input;
      capacity = input_capacity_[input / stride_ * ports_ + port_of_[input % stride_]];
    }
    if (sum[i] != capacity) return fmt::format("channel {} has {} of {} credits", i, sum[i], capacity);
  }
  if (flits_injected() != flits_ejected() + inside)
    return fmt::format("{} flits in, {} out, {} inside", flits_injected(), flits_ejected(), inside);
  return {};
}

template void RouterCore<std::uint64_t>::build_ports(const FlitConfig&);
template void RouterCore<unsigned __int128>::build_ports(const FlitConfig&);
template void RouterCore<std::uint64_t>::build_routes(const FlitConfig&);
template void RouterCore<unsigned __int128>::build_routes(const FlitConfig&);
template RouterCore<std::uint64_t>::RouterCore(const FlitConfig&, int, int);
template RouterCore<unsigned __int128>::RouterCore(const FlitConfig&, int, int);
template std::string RouterCore<std::uint64_t>::inconsistency() const;
template std::string RouterCore<unsigned __int128>::inconsistency() const;

}  // namespace sojourn::flit
