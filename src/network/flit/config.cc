// Grids, shortest-path tables, and the check for circles in the channel dependency graph.
//
//   channel a = (r, s) depends on b = (s, t) if some packet takes b right after a. A circle of such dependencies lets
//   packets wait for one another for ever; without one, wormhole routing cannot deadlock. A channel is a link and a VC
//   class. With adaptive routing, b follows a also if a packet that took the escape channel a may come, over adaptive
//   channels, to where b is its escape; without a circle among escape channels it cannot deadlock either.
//
// Sources: Dally, Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", 1987; Duato, "A
// new theory of deadlock-free adaptive routing in wormhole networks", 1993.
#include "network/flit/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>

#include "network/flit/limits.h"

namespace sojourn::flit {

int FlitConfig::add_link(int from, int to, int latency) {
  Link link{from, 0, to, 0, latency, kFullRate, 0};
  for (const Link& l : links) {
    if (l.from == from) link.from_port = std::max(link.from_port, l.from_port + 1);
    if (l.to == to) link.to_port = std::max(link.to_port, l.to_port + 1);
  }
  links.push_back(link);
  return static_cast<int>(links.size()) - 1;
}

FlitConfig grid(int width, int height, int latency) {
  FlitConfig c;
  c.routers = width * height;
  constexpr int kDx[] = {1, -1, 0, 0}, kDy[] = {0, 0, 1, -1};
  std::vector<int> out(static_cast<std::size_t>(c.routers) * 4, -1);
  for (int r = 0; r < c.routers; ++r) {
    c.terminals.push_back(r);
    for (int d = 0; d < 4; ++d) {
      const int x = r % width + kDx[d], y = r / width + kDy[d];
      if (x < 0 || x >= width || y < 0 || y >= height) continue;
      out[static_cast<std::size_t>(r * 4 + d)] = static_cast<int>(c.links.size());
      c.links.push_back({r, d, y * width + x, d ^ 1, latency, kFullRate, 0});
    }
  }
  c.routes.resize(static_cast<std::size_t>(c.routers) * c.terminals.size(), -1);
  for (int r = 0; r < c.routers; ++r)
    for (int t = 0; t < c.routers; ++t) {
      const int dx = t % width - r % width, dy = t / width - r / width;
      if (dx == 0 && dy == 0) continue;
      const int d = dx > 0 ? 0 : dx < 0 ? 1 : dy > 0 ? 2 : 3;
      c.routes[static_cast<std::size_t>(r * c.routers + t)] = out[static_cast<std::size_t>(r * 4 + d)];
    }
  return c;
}

FlitConfig torus(int width, int height, int latency) {
  FlitConfig c;
  c.routers = width * height;
  c.classes = 2;
  c.vcs = 2;
  const int size[] = {width, height};
  std::vector<int> out(static_cast<std::size_t>(c.routers) * 4, -1);
  for (int r = 0; r < c.routers; ++r) {
    c.terminals.push_back(r);
    for (int d = 0; d < 4; ++d) {
      const int axis = d / 2, step = d % 2 == 0 ? 1 : size[axis] - 1;
      if (size[axis] < 2) continue;
      const int x = axis == 0 ? (r % width + step) % width : r % width;
      const int y = axis == 1 ? (r / width + step) % height : r / width;
      out[static_cast<std::size_t>(r * 4 + d)] = static_cast<int>(c.links.size());
      c.links.push_back({r, d, y * width + x, d ^ 1, latency, kFullRate, 0});
    }
  }
  c.routes.resize(static_cast<std::size_t>(c.routers) * c.terminals.size(), -1);
  c.vc_class.resize(c.routes.size(), 0);
  for (int r = 0; r < c.routers; ++r)
    for (int t = 0; t < c.routers; ++t) {
      if (r == t) continue;
      const int axis = r % width != t % width ? 0 : 1;
      const int from = axis == 0 ? r % width : r / width, to = axis == 0 ? t % width : t / width;
      const int ahead = (to - from + size[axis]) % size[axis];
      const bool plus = 2 * ahead <= size[axis], wraps = plus ? to < from : to > from;
      const auto i = static_cast<std::size_t>(r * c.routers + t);
      c.routes[i] = out[static_cast<std::size_t>(r * 4 + 2 * axis + (plus ? 0 : 1))];
      c.vc_class[i] = wraps ? 0 : 1;
    }
  return c;
}

namespace {

constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

/// A router costs as much as two cycles of link (allocation and traversal).
std::int64_t cost(const Link& link) { return link.latency + 2; }

std::vector<std::vector<int>> links_by(const FlitConfig& c, int Link::*end) {
  std::vector<std::vector<int>> out(static_cast<std::size_t>(c.routers));
  for (std::size_t l = 0; l < c.links.size(); ++l)
    out[static_cast<std::size_t>(c.links[l].*end)].push_back(static_cast<int>(l));
  return out;
}

/// Least cost from every router to `target`.
std::vector<std::int64_t> distances(const FlitConfig& c, const std::vector<std::vector<int>>& into, int target) {
  std::vector<std::int64_t> distance(static_cast<std::size_t>(c.routers), kFar);
  using Entry = std::pair<std::int64_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  distance[static_cast<std::size_t>(target)] = 0;
  open.push({0, target});
  while (!open.empty()) {
    const auto [d, r] = open.top();
    open.pop();
    if (d != distance[static_cast<std::size_t>(r)]) continue;
    for (const int l : into[static_cast<std::size_t>(r)]) {
      const Link& link = c.links[static_cast<std::size_t>(l)];
      const std::int64_t through = d + cost(link);
      if (through >= distance[static_cast<std::size_t>(link.from)]) continue;
      distance[static_cast<std::size_t>(link.from)] = through;
      open.push({through, link.from});
    }
  }
  return distance;
}

}  // namespace

std::vector<std::uint64_t> productive_ports(const FlitConfig& c) {
  const std::size_t terminals = c.terminals.size();
  const auto into = links_by(c, &Link::to);
  std::vector<std::uint64_t> out(static_cast<std::size_t>(c.routers) * terminals, 0);
  for (std::size_t t = 0; t < terminals; ++t) {
    const std::vector<std::int64_t> distance = distances(c, into, c.terminals[t]);
    for (const Link& l : c.links) {
      const std::int64_t here = distance[static_cast<std::size_t>(l.from)],
                         there = distance[static_cast<std::size_t>(l.to)];
      if (there == kFar || here == 0 || there + cost(l) != here) continue;
      out[static_cast<std::size_t>(l.from) * terminals + t] |= std::uint64_t{1} << l.from_port;
    }
  }
  return out;
}

void route_shortest(FlitConfig& c) {
  const std::size_t n = static_cast<std::size_t>(c.routers), terminals = c.terminals.size();
  c.routes.assign(n * terminals, -1);
  const auto into = links_by(c, &Link::to), out = links_by(c, &Link::from);
  for (std::size_t t = 0; t < terminals; ++t) {
    const std::vector<std::int64_t> distance = distances(c, into, c.terminals[t]);
    for (std::size_t r = 0; r < n; ++r) {
      if (distance[r] == 0 || distance[r] == kFar) continue;
      for (const int l : out[r]) {
        const Link& link = c.links[static_cast<std::size_t>(l)];
        const std::int64_t rest = distance[static_cast<std::size_t>(link.to)];
        if (rest == kFar || rest + cost(link) != distance[r]) continue;
        c.routes[r * terminals + t] = l;
        break;
      }
    }
  }
}

namespace {

using Channels = std::vector<std::vector<int>>;

void depend(Channels& next, int a, int b) {
  std::vector<int>& list = next[static_cast<std::size_t>(a)];
  if (std::find(list.begin(), list.end(), b) == list.end()) list.push_back(b);
}

/// Channels taken one right after the other by packets for terminal t that follow the table.
void follow_table(const FlitConfig& c, int t, std::vector<char>& visited, Channels& next) {
  std::fill(visited.begin(), visited.end(), 0);
  for (const int source : c.terminals)
    for (int r = source; visited[static_cast<std::size_t>(r)] == 0;) {
      visited[static_cast<std::size_t>(r)] = 1;
      const int l = c.route(r, t);
      if (l < 0) break;
      const int channel = l * c.classes + c.class_of(r, t);
      r = c.links[static_cast<std::size_t>(l)].to;
      if (c.route(r, t) < 0) break;
      depend(next, channel, c.route(r, t) * c.classes + c.class_of(r, t));
    }
}

/// Escape channels for t that may follow one another with any way over productive links between them.
void follow_adaptive(const FlitConfig& c, int t, const std::vector<std::vector<int>>& out,
                     const std::vector<std::uint64_t>& productive, std::vector<char>& visited, Channels& next) {
  for (int r = 0; r < c.routers; ++r) {
    const int l = c.route(r, t);
    if (l < 0) continue;
    const int channel = l * c.classes + c.class_of(r, t);
    std::fill(visited.begin(), visited.end(), 0);
    std::vector<int> open{c.links[static_cast<std::size_t>(l)].to};
    visited[static_cast<std::size_t>(open.back())] = 1;
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      if (const int after = c.route(at, t); after >= 0) depend(next, channel, after * c.classes + c.class_of(at, t));
      const std::uint64_t ports =
          productive[static_cast<std::size_t>(at) * c.terminals.size() + static_cast<std::size_t>(t)];
      for (const int o : out[static_cast<std::size_t>(at)]) {
        const Link& link = c.links[static_cast<std::size_t>(o)];
        if ((ports >> link.from_port & 1) == 0 || visited[static_cast<std::size_t>(link.to)] != 0) continue;
        visited[static_cast<std::size_t>(link.to)] = 1;
        open.push_back(link.to);
      }
    }
  }
}

}  // namespace

std::vector<int> dependency_cycle(const FlitConfig& c) {
  const std::size_t n = c.links.size() * static_cast<std::size_t>(c.classes);
  Channels next(n);
  std::vector<char> visited(static_cast<std::size_t>(c.routers), 0);
  const auto out = links_by(c, &Link::from);
  const std::vector<std::uint64_t> productive = c.adaptive ? productive_ports(c) : std::vector<std::uint64_t>{};
  for (int t = 0; t < static_cast<int>(c.terminals.size()); ++t) {
    if (c.adaptive)
      follow_adaptive(c, t, out, productive, visited, next);
    else
      follow_table(c, t, visited, next);
  }
  // Depth-first search; a channel still open that is met again closes the circle.
  enum : char { kNew, kOpen, kDone };
  std::vector<char> state(n, kNew);
  std::vector<std::size_t> tried(n, 0);
  std::vector<int> stack;
  for (std::size_t start = 0; start < n; ++start) {
    if (state[start] != kNew) continue;
    stack = {static_cast<int>(start)};
    state[start] = kOpen;
    while (!stack.empty()) {
      const auto l = static_cast<std::size_t>(stack.back());
      if (tried[l] == next[l].size()) {
        state[l] = kDone;
        stack.pop_back();
        continue;
      }
      const int to = next[l][tried[l]++];
      if (state[static_cast<std::size_t>(to)] == kOpen) {
        std::vector<int> circle;
        for (auto i = std::find(stack.begin(), stack.end(), to); i != stack.end(); ++i)
          circle.push_back(c.links[static_cast<std::size_t>(*i / c.classes)].from);
        circle.push_back(circle.front());
        return circle;
      }
      if (state[static_cast<std::size_t>(to)] == kNew) {
        state[static_cast<std::size_t>(to)] = kOpen;
        stack.push_back(to);
      }
    }
  }
  return {};
}

Result<void> check(const FlitConfig& c) {
  Diagnostics problems;
  const auto error = [&](std::string key, std::string message, std::string remedy = {}) {
    problems.error({}, std::move(key), std::move(message), std::move(remedy));
  };
  const auto router = [&](int r) { return r >= 0 && r < c.routers; };
  if (c.routers < 1) error("routers", "none");
  if (c.terminals.empty()) error("terminals", "none");
  if (c.vcs < 1 || c.vcs > kMostVcs) error("vcs", fmt::format("{}: must be 1 to {}", c.vcs, kMostVcs));
  if (c.buffer < 1 || c.buffer > kDeepestBuffer)
    error("buffer", fmt::format("{}: must be 1 to {} flits", c.buffer, kDeepestBuffer));
  if (c.router_delay < 0 || c.router_delay > kLongestLatency)
    error("router_delay", fmt::format("{}: must be 0 to {} cycles", c.router_delay, kLongestLatency));
  if (c.classes < 1 || c.classes > c.vcs - (c.adaptive ? 1 : 0))
    error("vcs",
          fmt::format("{} for {} VC class{}{}", c.vcs, c.classes, c.classes == 1 ? "" : "es",
                      c.adaptive ? " and adaptive VCs" : ""),
          "give each class at least one VC, and adaptive routing one more");
  const auto check_link = [&](const std::string& key, int latency, int interval, int buffer) {
    if (latency < 1 || latency > kLongestLatency)
      error(key, fmt::format("latency {}: must be 1 to {} cycles", latency, kLongestLatency));
    if (interval < kFullRate || interval > kLongestLatency * kFullRate)
      error(key, fmt::format("interval {}: must be {} to {} (1/1024 cycles a flit)", interval, kFullRate,
                             kLongestLatency * kFullRate));
    if (buffer < 0 || buffer > kDeepestBuffer)
      error(key, fmt::format("buffer {}: must be 1 to {} flits, or 0", buffer, kDeepestBuffer));
  };
  if (!c.terminal_links.empty() && c.terminal_links.size() != c.terminals.size())
    error("terminal_links", "must be one a terminal, or none");
  for (std::size_t t = 0; t < c.terminal_links.size(); ++t) {
    const TerminalLink& l = c.terminal_links[t];
    check_link(fmt::format("terminal_links[{}]", t), l.in_latency, l.in_interval, l.buffer);
    check_link(fmt::format("terminal_links[{}]", t), l.out_latency, l.out_interval, 0);
  }
  if (c.terminal_latency < 1 || c.terminal_latency > kLongestLatency)
    error("terminal_latency", fmt::format("{}: must be 1 to {} cycles", c.terminal_latency, kLongestLatency));
  std::vector<std::uint64_t> out(static_cast<std::size_t>(std::max(c.routers, 0))), in(out.size());
  for (std::size_t i = 0; i < c.links.size(); ++i) {
    const Link& l = c.links[i];
    const std::string key = fmt::format("links[{}]", i);
    if (!router(l.from) || !router(l.to)) {
      error(key, fmt::format("{} -> {}: no such router", l.from, l.to));
      continue;
    }
    check_link(key, l.latency, l.interval, l.buffer);
    const auto claim = [&](std::vector<std::uint64_t>& used, int r, int port, const char* side) {
      if (port < 0 || port >= 64) return error(key, fmt::format("{} port {}: must be 0 to 63", side, port));
      std::uint64_t& mask = used[static_cast<std::size_t>(r)];
      if (mask >> port & 1) error(key, fmt::format("{} port {} of router {} is taken", side, port, r));
      mask |= std::uint64_t{1} << port;
    };
    claim(out, l.from, l.from_port, "output");
    claim(in, l.to, l.to_port, "input");
  }
  std::vector<int> hung(out.size(), 0);
  for (const int r : c.terminals) {
    if (router(r))
      ++hung[static_cast<std::size_t>(r)];
    else
      error("terminals", fmt::format("{}: no such router", r));
  }
  for (std::size_t r = 0; r < out.size(); ++r) {
    const int ports = 64 - std::min(out[r] ? __builtin_clzll(out[r]) : 64, in[r] ? __builtin_clzll(in[r]) : 64);
    if ((ports + hung[r]) * c.vcs > kMostPortVcs)
      error("routers",
            fmt::format("router {} has {} ports x {} VCs: at most {}", r, ports + hung[r], c.vcs, kMostPortVcs),
            "fewer VCs, or a router in two");
  }
  if (!c.vc_class.empty() && c.vc_class.size() != c.routes.size())
    error("vc_class", "must have as many entries as routes, or none");
  if (c.routes.size() != static_cast<std::size_t>(std::max(c.routers, 0)) * c.terminals.size())
    error("routes", "must have routers x terminals entries", "call route_shortest");
  if (problems.has_errors()) return fail(std::move(problems));

  for (int r = 0; r < c.routers; ++r)
    for (int t = 0; t < static_cast<int>(c.terminals.size()); ++t) {
      const int l = c.route(r, t);
      if (l >= static_cast<int>(c.links.size()) || (l >= 0 && c.links[static_cast<std::size_t>(l)].from != r))
        error("routes", fmt::format("router {} to terminal {}: link {} does not leave it", r, t, l));
      else if (l >= 0 && c.class_of(r, t) >= c.classes)
        error("vc_class", fmt::format("router {} to terminal {}: class {} of {}", r, t, c.class_of(r, t), c.classes));
    }
  if (problems.has_errors()) return fail(std::move(problems));
  for (int t = 0; t < static_cast<int>(c.terminals.size()); ++t)
    for (const int source : c.terminals) {
      int r = source, steps = 0;
      while (c.route(r, t) >= 0 && steps++ <= c.routers) r = c.links[static_cast<std::size_t>(c.route(r, t))].to;
      if (r == c.terminals[static_cast<std::size_t>(t)] && c.route(r, t) < 0) continue;
      error("routes", fmt::format("a packet from router {} to terminal {} {}", source, t,
                                  steps > c.routers ? "goes round for ever" : fmt::format("is lost at router {}", r)));
      return fail(std::move(problems));
    }
  if (c.adaptive) {
    const std::vector<std::uint64_t> productive = productive_ports(c);
    for (std::size_t i = 0; i < c.routes.size(); ++i) {
      const int l = c.routes[i];
      if (l < 0 || (productive[i] >> c.links[static_cast<std::size_t>(l)].from_port & 1) != 0) continue;
      error("routes",
            fmt::format("router {} to terminal {}: its escape does not bring a packet nearer", i / c.terminals.size(),
                        i % c.terminals.size()),
            "adaptive routing needs a table of shortest paths");
      return fail(std::move(problems));
    }
  }
  const std::vector<int> circle = dependency_cycle(c);
  if (!circle.empty()) {
    std::string names;
    for (const int r : circle) names += fmt::format("{}{}", names.empty() ? "" : " -> ", r);
    error("routes", "may deadlock: channels wait for one another round routers " + names,
          "use a routing without that circle, such as X first, then Y on a mesh, or up and down on a tree");
    return fail(std::move(problems));
  }
  return {};
}

}  // namespace sojourn::flit
