// Translation of a package into routers, links and terminals; see flit_package.h for the equations.
#include "network/flit_package.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "network/flit/limits.h"

namespace sojourn {
namespace {

using Index = std::size_t;

int cycles_of(Ps time, Ps cycle, int already, int least) {
  return static_cast<int>(std::max<Ps>(least, (time + cycle / 2) / cycle - already));
}

/// The router that each node's terminal hangs on: the other end of a compute chiplet's two NoC links, or the node.
struct Nodes {
  std::vector<int> router;         ///< of a node
  std::vector<char> leaf;          ///< the node is a terminal, not a router
  std::vector<int> inject, eject;  ///< its two links, if leaf
  explicit Nodes(const Package& p)
      : router(static_cast<Index>(p.nodes), -1), leaf(router.size(), 0), inject(router.size(), -1), eject(inject) {
    std::vector<int> out(router.size(), 0), in(router.size(), 0);
    for (Index u = 0; u < p.links.size(); ++u) {
      const auto from = static_cast<Index>(p.links[u].from), to = static_cast<Index>(p.links[u].to);
      ++out[from];
      ++in[to];
      inject[from] = eject[to] = static_cast<int>(u);
    }
    for (const Chiplet& c : p.chiplets) {
      const auto n = static_cast<Index>(c.node);
      if (out[n] != 1 || in[n] != 1) continue;
      const Link &a = p.links[static_cast<Index>(inject[n])], &b = p.links[static_cast<Index>(eject[n])];
      leaf[n] = a.cls == LinkClass::noc && b.cls == LinkClass::noc && a.to == b.from;
    }
    int next = 0;
    for (Index n = 0; n < router.size(); ++n)
      if (leaf[n] == 0) router[n] = next++;
    for (Index n = 0; n < router.size(); ++n)
      if (leaf[n] != 0) router[n] = router[static_cast<Index>(p.links[static_cast<Index>(inject[n])].to)];
    count = next;
  }
  int count = 0;
};

}  // namespace

FlitTiming::FlitTiming(const Package& package) : flit(std::max<Bytes>(1, package.flit.bytes)) {
  std::uint64_t fastest = 1;
  for (const Link& l : package.links) fastest = std::max(fastest, l.bandwidth.per_second());
  cycle = std::max<Ps>(1, static_cast<Ps>(static_cast<__int128>(flit) * kPsPerS / fastest));
}

int FlitTiming::latency(const Link& link) const { return cycles_of(link.latency, cycle, 2, 1); }

int FlitTiming::buffer(const Package& package, const Link& link) const {
  return package.flit.buffer > 0 ? package.flit.buffer : 2 * latency(link) + 3;
}

namespace {

/// Cycles between flits on a link, in 1/1024, rounded up: never faster than the link.
int interval_of(const FlitTiming& timing, const Link& link) {
  const __int128 scaled = static_cast<__int128>(timing.flit) * kPsPerS * flit::kFullRate;
  const __int128 per = static_cast<__int128>(link.bandwidth.per_second()) * timing.cycle;
  const __int128 interval = (scaled + per - 1) / per;
  return static_cast<int>(std::min<__int128>(std::max<__int128>(interval, flit::kFullRate), 1 << 30));
}

/// dependency_cycle of a configuration that is otherwise sound enough to look at.
std::vector<int> circle_of(const flit::FlitConfig& config) {
  const bool sound = config.classes + (config.adaptive ? 1 : 0) <= config.vcs;
  return sound ? flit::dependency_cycle(config) : std::vector<int>{};
}

/// Classes for a torus: 0 for a link whose packet has the wrap-around link of that row or column still to come.
void wrap_classes(const Package& package, flit::FlitConfig& config, const std::vector<int>& chiplet_at) {
  const auto axis_of = [&](const flit::Link& l, bool& wraps) {
    const int a = chiplet_at[static_cast<Index>(l.from)], b = chiplet_at[static_cast<Index>(l.to)];
    if (a < 0 || b < 0) return -1;
    const Chiplet &p = package.chiplets[static_cast<Index>(a)], &q = package.chiplets[static_cast<Index>(b)];
    wraps = std::abs(p.x - q.x) > 1 || std::abs(p.y - q.y) > 1;
    return p.compute && q.compute ? (p.x != q.x ? 0 : 1) : -1;
  };
  config.classes = 2;
  config.vc_class.assign(config.routes.size(), 1);
  for (int r = 0; r < config.routers; ++r)
    for (int t = 0; t < static_cast<int>(config.terminals.size()); ++t) {
      int axis = -2, at = r;
      for (int steps = 0; steps < config.routers && config.route(at, t) >= 0; ++steps) {
        const flit::Link& l = config.links[static_cast<Index>(config.route(at, t))];
        bool wraps = false;
        const int here = axis_of(l, wraps);
        if (axis == -2) axis = here;
        if (here != axis) break;
        if (wraps) config.vc_class[static_cast<Index>(r) * config.terminals.size() + static_cast<Index>(t)] = 0;
        at = l.to;
      }
    }
}

}  // namespace

Result<FlitMap> flit_map(const Package& package) {
  const SourceSpan where{package.name, 0, 0};
  const FlitSettings& settings = package.flit;
  FlitMap map;
  map.flit_bytes = settings.bytes;
  map.packet_bytes = std::max(settings.packet, settings.bytes);
  const FlitTiming timing(package);
  map.cycle = timing.cycle;

  const Nodes nodes(package);
  flit::FlitConfig& config = map.config;
  config.routers = nodes.count;
  config.vcs = settings.vcs;
  config.speculative = settings.speculative;
  config.oldest_first = settings.oldest_first;
  config.adaptive = settings.adaptive;
  int deepest = 1;
  map.source_of.assign(package.links.size(), -1);
  map.sink_of.assign(package.links.size(), -1);

  std::vector<int> link_of(package.links.size(), -1);  // package link -> flit link
  for (Index u = 0; u < package.links.size(); ++u) {
    const Link& l = package.links[u];
    if (nodes.leaf[static_cast<Index>(l.from)] || nodes.leaf[static_cast<Index>(l.to)]) continue;
    link_of[u] = config.add_link(nodes.router[static_cast<Index>(l.from)], nodes.router[static_cast<Index>(l.to)],
                                 timing.latency(l));
    config.links.back().interval = interval_of(timing, l);
    config.links.back().buffer = timing.buffer(package, l);
    deepest = std::max(deepest, config.links.back().buffer);
  }
  std::vector<std::vector<int>> terminals_of(package.chiplets.size());
  std::vector<int> chiplet_at(static_cast<Index>(nodes.count), -1);  // of a router
  int sink_buffer = 5;
  for (Index c = 0; c < package.chiplets.size(); ++c) {
    const auto n = static_cast<Index>(package.chiplets[c].node);
    chiplet_at[static_cast<Index>(nodes.router[n])] = static_cast<int>(c);
    const auto add = [&] {
      const int t = static_cast<int>(config.terminals.size());
      config.terminals.push_back(nodes.router[n]);
      config.terminal_links.emplace_back();
      terminals_of[c].push_back(t);
      return t;
    };
    if (nodes.leaf[n] != 0) {
      const int t = add();
      map.source_of[static_cast<Index>(nodes.inject[n])] = t;
      map.sink_of[static_cast<Index>(nodes.eject[n])] = t;
      const Link &in = package.links[static_cast<Index>(nodes.inject[n])],
                 &out = package.links[static_cast<Index>(nodes.eject[n])];
      flit::TerminalLink& link = config.terminal_links.back();
      link.in_latency = cycles_of(in.latency, map.cycle, 1, 1);
      link.out_latency = timing.latency(out);
      link.in_interval = interval_of(timing, in);
      link.out_interval = interval_of(timing, out);
      link.buffer = settings.buffer > 0 ? settings.buffer : 2 * link.in_latency + 2;
      sink_buffer = std::max(sink_buffer, timing.buffer(package, out));
      deepest = std::max(deepest, link.buffer);
      continue;
    }
    std::vector<int> out, in;
    for (Index u = 0; u < package.links.size(); ++u) {
      if (package.links[u].from == static_cast<int>(n)) out.push_back(static_cast<int>(u));
      if (package.links[u].to == static_cast<int>(n)) in.push_back(static_cast<int>(u));
    }
    for (Index i = 0; i < std::max(out.size(), in.size()); ++i) {
      const int t = add();
      flit::TerminalLink& link = config.terminal_links.back();
      if (i < out.size()) {
        map.source_of[static_cast<Index>(out[i])] = t;
        link.in_interval = interval_of(timing, package.links[static_cast<Index>(out[i])]);
      }
      if (i < in.size()) {
        map.sink_of[static_cast<Index>(in[i])] = t;
        link.out_interval = interval_of(timing, package.links[static_cast<Index>(in[i])]);
      }
    }
  }
  config.routes.assign(static_cast<Index>(config.routers) * config.terminals.size(), -1);
  for (Index a = 0; a < package.chiplets.size(); ++a)
    for (Index b = 0; b < package.chiplets.size(); ++b)
      for (const int u : package.route_chiplets(static_cast<int>(a), static_cast<int>(b))) {
        const int l = link_of[static_cast<Index>(u)];
        if (l < 0) continue;
        const auto r = static_cast<Index>(config.links[static_cast<Index>(l)].from);
        for (const int t : terminals_of[b]) {
          int& entry = config.routes[r * config.terminals.size() + static_cast<Index>(t)];
          if (entry >= 0 && entry != l)
            return fail(
                where, "network",
                fmt::format("flit: the way from {} to {} differs from that of another chiplet over the same router",
                            package.chiplets[a].name, package.chiplets[b].name),
                "use routing = \"table\", or --network packet");
          entry = l;
        }
      }
  config.buffer = settings.buffer > 0 ? settings.buffer : sink_buffer;
  if (std::max(deepest, config.buffer) > flit::kDeepestBuffer)
    return fail(where, "flit.buffer",
                fmt::format("a link needs {} flits a virtual channel to run at full rate; at most {}",
                            std::max(deepest, config.buffer), flit::kDeepestBuffer),
                "set [flit] bytes higher (fewer, larger flits), or buffer");
  if (package.topology == "torus") wrap_classes(package, config, chiplet_at);
  if (auto fine = flit::check(config); !fine) {
    if (const std::vector<int> circle = circle_of(config); !circle.empty()) {
      std::string names;
      for (const int r : circle) {
        const int c = chiplet_at[static_cast<Index>(r)];
        names += (names.empty() ? "" : " -> ") +
                 (c < 0 ? fmt::format("router {}", r) : package.chiplets[static_cast<Index>(c)].name);
      }
      return fail(where, "flit", "may deadlock: channels wait for one another round " + names,
                  "use routes without that circle (XY on a mesh, up and down on a tree), or --network packet");
    }
    Diagnostics out;
    for (const Diagnostic& d : fine.error().diagnostics.items())
      out.error(where, "flit." + d.key, d.message, d.remedy.empty() ? "use --network packet" : d.remedy);
    return fail(std::move(out));
  }
  return map;
}

}  // namespace sojourn
