// Grids and graphs of popnet-style routers.
//
//   all pairs: D(i,j) = min over k of D(i,k) + D(k,j) - s_k, with D of an edge = its delay + s_a + s_b and s = five
//   pipeline steps of a router, which would otherwise count twice at k.
//
// Assumption: of equally short ways the one found first stays; k, i and j run in `order`, and finding a way from i to j
// also sets the first hop of the way back. Those are popnet's ties (docs/popnet.md). Source: Floyd, Warshall, 1962.
#include "network/popnet/config.h"

#include <fmt/format.h>

#include <limits>

namespace sojourn::popnet {

PopnetConfig grid(int k, Routing routing) {
  PopnetConfig c;
  c.routing = routing;
  c.k = k;
  c.routers = k * k;
  c.period.assign(static_cast<std::size_t>(c.routers), 1.0);
  c.first_port.push_back(0);
  for (int r = 0; r < c.routers; ++r) {
    const int x = r / k, y = r % k;
    c.ports.push_back({});
    for (int p = 1; p <= 4; ++p) {  // x down, x up, y down, y up
      const int step = p % 2 == 0 ? 1 : k - 1;
      const bool edge = (p % 2 == 0 ? k - 1 : 0) == (p <= 2 ? x : y);
      if (edge && routing == Routing::mesh) {
        c.ports.push_back({});
        continue;
      }
      const int to = p <= 2 ? (x + step) % k * k + y : x * k + (y + step) % k;
      c.ports.push_back({to, p % 2 == 0 ? p - 1 : p + 1, 0.9});
    }
    c.first_port.push_back(static_cast<int>(c.ports.size()));
  }
  return c;
}

PopnetConfig graph(int routers, const std::vector<Edge>& edges, const std::vector<double>& period,
                   const std::vector<int>& order) {
  PopnetConfig c;
  c.routing = Routing::table;
  c.routers = routers;
  c.period = period;
  const auto n = static_cast<std::size_t>(routers);
  std::vector<std::vector<Port>> ports(n, {Port{}});
  std::vector<int> to_port(n * n, 0), next(n * n, -1);
  std::vector<double> distance(n * n, std::numeric_limits<double>::infinity());
  constexpr double kSteps = 5;
  for (std::size_t i = 0; i < n; ++i) {
    distance[i * n + i] = 0;
    next[i * n + i] = static_cast<int>(i);
  }
  for (const Edge& e : edges) {
    const auto a = static_cast<std::size_t>(e.a), b = static_cast<std::size_t>(e.b);
    const int pa = static_cast<int>(ports[a].size()), pb = static_cast<int>(ports[b].size());
    ports[a].push_back({e.b, pb, e.delay});
    ports[b].push_back({e.a, pa, e.delay});
    to_port[a * n + b] = pa;  // of parallel edges the last one is used
    to_port[b * n + a] = pb;
    distance[a * n + b] = distance[b * n + a] = e.delay + period[a] * kSteps + period[b] * kSteps;
    next[a * n + b] = e.b;
    next[b * n + a] = e.a;
  }
  for (const int k0 : order) {
    const auto k = static_cast<std::size_t>(k0);
    for (const int i0 : order) {
      const auto i = static_cast<std::size_t>(i0);
      const double head = distance[i * n + k];
      if (i == k || head == std::numeric_limits<double>::infinity()) continue;
      for (const int j0 : order) {
        const auto j = static_cast<std::size_t>(j0);
        if (j == i || j == k) continue;
        const double through = head + distance[k * n + j] - period[k] * kSteps;
        if (!(through < distance[i * n + j])) continue;
        distance[i * n + j] = through;
        next[i * n + j] = next[i * n + k];
        next[j * n + i] = next[j * n + k];
      }
    }
  }
  c.table.assign(n * n, -1);
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t d = 0; d < n; ++d)
      if (r != d && next[r * n + d] >= 0)
        c.table[r * n + d] = to_port[r * n + static_cast<std::size_t>(next[r * n + d])];
  c.first_port.push_back(0);
  for (const auto& list : ports) {
    c.ports.insert(c.ports.end(), list.begin(), list.end());
    c.first_port.push_back(static_cast<int>(c.ports.size()));
  }
  return c;
}

Result<void> check(const PopnetConfig& c) {
  Diagnostics problems;
  const auto within = [&](const char* key, std::int64_t v, std::int64_t low, std::int64_t high) {
    if (v < low || v > high) problems.error({}, key, fmt::format("{}: must be {} to {}", v, low, high));
  };
  within("routers", c.routers, 1, c.routing == Routing::table ? kMostRouters : kLargestSide * kLargestSide);
  within("virtual channels", c.vcs, 1, kMostVcs);
  within("input buffer", c.in_buffer, 1, 1 << 20);
  within("output buffer", c.out_buffer, 1, 1 << 20);
  within("flit size", c.flit_words, 0, std::int64_t{1} << 32);
  within("routers x ports x virtual channels", static_cast<std::int64_t>(c.ports.size()) * c.vcs, 1, kMostChannels);
  if (c.routing == Routing::torus && c.vcs < 2)
    problems.error({}, "virtual channels", "1: the torus needs two", "give at least 2");
  if (problems.has_errors()) return fail(std::move(problems));
  return {};
}

}  // namespace sojourn::popnet
