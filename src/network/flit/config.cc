// Grids, shortest-path tables, and the check for circles in the channel dependency graph.
//
//   channel a = (r, s) depends on b = (s, t) if some packet takes b right after a. A circle of such dependencies lets
//   packets wait for one another for ever; without one, wormhole routing cannot deadlock.
//
// Source: Dally, Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", 1987.
#include "network/flit/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>

#include "network/flit/limits.h"

namespace sojourn::flit {

int FlitConfig::add_link(int from, int to, int latency) {
  Link link{from, 0, to, 0, latency};
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
      c.links.push_back({r, d, y * width + x, d ^ 1, latency});
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

void route_shortest(FlitConfig& c) {
  const std::size_t n = static_cast<std::size_t>(c.routers), terminals = c.terminals.size();
  c.routes.assign(n * terminals, -1);
  std::vector<std::vector<int>> into(n), out(n);
  for (std::size_t l = 0; l < c.links.size(); ++l) {
    into[static_cast<std::size_t>(c.links[l].to)].push_back(static_cast<int>(l));
    out[static_cast<std::size_t>(c.links[l].from)].push_back(static_cast<int>(l));
  }
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> distance(n);
  for (std::size_t t = 0; t < terminals; ++t) {
    std::fill(distance.begin(), distance.end(), kFar);
    using Entry = std::pair<std::int64_t, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    distance[static_cast<std::size_t>(c.terminals[t])] = 0;
    open.push({0, c.terminals[t]});
    while (!open.empty()) {
      const auto [d, r] = open.top();
      open.pop();
      if (d != distance[static_cast<std::size_t>(r)]) continue;
      for (const int l : into[static_cast<std::size_t>(r)]) {
        const Link& link = c.links[static_cast<std::size_t>(l)];
        // A router costs as much as two cycles of link (allocation and traversal).
        const std::int64_t through = d + link.latency + 2;
        if (through >= distance[static_cast<std::size_t>(link.from)]) continue;
        distance[static_cast<std::size_t>(link.from)] = through;
        open.push({through, link.from});
      }
    }
    for (std::size_t r = 0; r < n; ++r) {
      if (distance[r] == 0 || distance[r] == kFar) continue;
      for (const int l : out[r]) {
        const Link& link = c.links[static_cast<std::size_t>(l)];
        const std::int64_t rest = distance[static_cast<std::size_t>(link.to)];
        if (rest == kFar || rest + link.latency + 2 != distance[r]) continue;
        c.routes[r * terminals + t] = l;
        break;
      }
    }
  }
}

std::vector<int> dependency_cycle(const FlitConfig& c) {
  const std::size_t n = c.links.size(), routers = static_cast<std::size_t>(c.routers);
  std::vector<std::vector<int>> next(n);
  std::vector<std::uint32_t> visited(routers, 0);
  std::uint32_t round = 0;
  for (int t = 0; t < static_cast<int>(c.terminals.size()); ++t) {
    ++round;
    for (const int source : c.terminals)
      for (int r = source; visited[static_cast<std::size_t>(r)] != round;) {
        visited[static_cast<std::size_t>(r)] = round;
        const int l = c.route(r, t);
        if (l < 0) break;
        r = c.links[static_cast<std::size_t>(l)].to;
        const int after = c.route(r, t);
        if (after < 0) break;
        std::vector<int>& list = next[static_cast<std::size_t>(l)];
        if (std::find(list.begin(), list.end(), after) == list.end()) list.push_back(after);
      }
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
          circle.push_back(c.links[static_cast<std::size_t>(*i)].from);
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
    if (l.latency < 1 || l.latency > kLongestLatency)
      error(key, fmt::format("latency {}: must be 1 to {} cycles", l.latency, kLongestLatency));
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
  if (c.routes.size() != static_cast<std::size_t>(std::max(c.routers, 0)) * c.terminals.size())
    error("routes", "must have routers x terminals entries", "call route_shortest");
  if (problems.has_errors()) return fail(std::move(problems));

  for (int r = 0; r < c.routers; ++r)
    for (int t = 0; t < static_cast<int>(c.terminals.size()); ++t) {
      const int l = c.route(r, t);
      if (l >= static_cast<int>(c.links.size()) || (l >= 0 && c.links[static_cast<std::size_t>(l)].from != r))
        error("routes", fmt::format("router {} to terminal {}: link {} does not leave it", r, t, l));
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
