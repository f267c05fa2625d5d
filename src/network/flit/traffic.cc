// Drivers of a flit network. Bernoulli trials are not drawn one by one: over the trials (cycle, node) in order, the gap
// to the next success is geometric, so that a packet costs one random number and an idle cycle nothing.
//
//   P(gap = g) = p (1 - p)^g,   g = floor(ln(1 - u) / ln(1 - p))
#include "network/flit/traffic.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace sojourn::flit {

std::vector<Delivery> replay(FlitNetwork& network, const std::vector<TracePacket>& packets) {
  std::vector<Delivery> out(packets.size());
  std::size_t next = 0;
  for (;;) {
    const Cycle work = network.next_work();
    const Cycle ready = next < packets.size() ? packets[next].ready : kNever;
    if (work == kNever && ready == kNever) return out;
    network.skip_to(std::min(work, ready));
    for (; next < packets.size() && packets[next].ready == network.now(); ++next)
      network.send(packets[next].source, packets[next].destination, packets[next].flits, next);
    network.step();
    for (const Delivery& d : network.delivered()) out[d.tag] = d;
    network.delivered().clear();
  }
}

std::optional<Pattern> pattern_named(std::string_view name) {
  if (name == "uniform") return Pattern::uniform;
  if (name == "transpose") return Pattern::transpose;
  if (name == "neighbor") return Pattern::neighbor;
  if (name == "hotspot1") return Pattern::hotspot1;
  if (name == "hotspot4") return Pattern::hotspot4;
  return std::nullopt;
}

int destination(Pattern pattern, int k, int source, Rng& rng) {
  const int x = source % k, y = source / k;
  switch (pattern) {
    case Pattern::uniform:
      return static_cast<int>(rng.below(static_cast<std::uint64_t>(k * k)));
    case Pattern::transpose:
      return x * k + y;
    case Pattern::neighbor:
      return (y + 1) % k * k + (x + 1) % k;
    case Pattern::hotspot1:
      return 0;
    case Pattern::hotspot4: {
      const int corner = static_cast<int>(rng.below(4));
      return (corner / 2) * (k - 1) * k + corner % 2 * (k - 1);
    }
  }
  return source;
}

OpenLoopResult open_loop(FlitNetwork& network, const OpenLoop& run) {
  const int nodes = run.k * run.k;
  const double p = std::min(1.0, run.offered / run.flits);
  Rng arrivals(run.seed, "flit arrivals"), targets(run.seed, "flit destinations");
  const double log_miss = p < 1 ? std::log1p(-p) : 0;
  const auto gap = [&]() -> std::int64_t {
    if (p >= 1) return 0;
    const double g = std::floor(std::log1p(-arrivals.uniform()) / log_miss);
    return g < 1e15 ? static_cast<std::int64_t>(g) : std::int64_t{1} << 50;
  };
  const Cycle end = run.warm_up + run.measured;
  std::int64_t trial = p > 0 ? gap() : kNever, created = 0, arrived = 0;
  Cycle ready = p > 0 ? trial / nodes : kNever;
  OpenLoopResult r;
  double latency = 0, network_latency = 0;
  std::int64_t hops = 0, injected = 0, ejected = 0;
  bool opened = false, closed = false;
  for (;;) {
    const Cycle t = std::min({network.next_work(), ready, opened ? kNever : run.warm_up, closed ? kNever : end});
    if (t == kNever) break;
    network.skip_to(t);
    if (!opened && t >= run.warm_up) {
      opened = true;
      injected = network.flits_injected();
      ejected = network.flits_ejected();
    }
    if (!closed && t >= end) {
      closed = true;
      injected = network.flits_injected() - injected;
      ejected = network.flits_ejected() - ejected;
    }
    if (closed && (!run.drain || arrived == created)) break;
    for (; ready == t; ready = trial / nodes) {
      const int source = static_cast<int>(trial % nodes);
      const bool counts = t >= run.warm_up && t < end;
      created += counts ? 1 : 0;
      network.send(source, destination(run.pattern, run.k, source, targets), run.flits, counts ? 1 : 0);
      trial += 1 + gap();
    }
    network.step();
    if (network.delivered().empty()) continue;
    for (const Delivery& d : network.delivered()) {
      if (d.tag == 0) continue;
      ++arrived;
      latency += static_cast<double>(d.tail - d.ready);
      network_latency += static_cast<double>(d.tail - d.inject);
      hops +=
          1 + std::abs(d.source % run.k - d.destination % run.k) + std::abs(d.source / run.k - d.destination / run.k);
    }
    network.delivered().clear();
    if (run.give_up > 0 && arrived >= 200 && latency > run.give_up * static_cast<double>(arrived)) {
      r.stopped = true;
      break;
    }
  }
  r.packets = arrived;
  if (arrived > 0) {
    const auto n = static_cast<double>(arrived);
    r.latency = latency / n;
    r.network_latency = network_latency / n;
    r.hops = static_cast<double>(hops) / n;
  }
  const double node_cycles = static_cast<double>(nodes) * static_cast<double>(run.measured);
  if (closed) {
    r.injected = static_cast<double>(injected) / node_cycles;
    r.accepted = static_cast<double>(ejected) / node_cycles;
  }
  r.cycles = network.now();
  return r;
}

std::vector<TracePacket> burst(Pattern pattern, int k, int flits, int packets_per_node, std::uint64_t seed) {
  std::vector<TracePacket> out;
  Rng rng(seed, "flit burst");
  for (int i = 0; i < packets_per_node; ++i)
    for (int n = 0; n < k * k; ++n) out.push_back({n, destination(pattern, k, n, rng), flits, 0});
  return out;
}

}  // namespace sojourn::flit
