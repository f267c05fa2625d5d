// Reachability, XY routes and shortest-path routes. Everything is ordered by ids, so that routes never depend on the
// order in which containers happen to iterate.
#include "package/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace sojourn {
namespace {

using Index = std::size_t;

/// Links by the node they leave (or enter), in id order.
std::vector<std::vector<int>> links_at(const Package& package, bool leaving) {
  std::vector<std::vector<int>> out(static_cast<Index>(package.nodes));
  for (Index u = 0; u < package.links.size(); ++u)
    out[static_cast<Index>(leaving ? package.links[u].from : package.links[u].to)].push_back(static_cast<int>(u));
  return out;
}

/// Nodes reached from chiplet 0 (forward) or from which chiplet 0 is reached.
std::vector<char> reached(const Package& package, bool forward) {
  const auto links = links_at(package, forward);
  std::vector<char> seen(static_cast<Index>(package.nodes), 0);
  std::vector<int> todo{package.chiplets.front().node};
  seen[static_cast<Index>(todo.back())] = 1;
  while (!todo.empty()) {
    const int node = todo.back();
    todo.pop_back();
    for (const int u : links[static_cast<Index>(node)]) {
      const Link& link = package.links[static_cast<Index>(u)];
      const int next = forward ? link.to : link.from;
      if (seen[static_cast<Index>(next)]) continue;
      seen[static_cast<Index>(next)] = 1;
      todo.push_back(next);
    }
  }
  return seen;
}

/// A route's cost: latency, then hops.
using Cost = std::pair<Ps, int>;
constexpr Cost kFar{std::numeric_limits<Ps>::max(), std::numeric_limits<int>::max()};

/// Least cost from every node to `target`.
std::vector<Cost> costs_to(const Package& package, const std::vector<std::vector<int>>& entering, int target) {
  std::vector<Cost> cost(static_cast<Index>(package.nodes), kFar);
  using Entry = std::pair<Cost, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  cost[static_cast<Index>(target)] = {0, 0};
  queue.push({{0, 0}, target});
  while (!queue.empty()) {
    const auto [at, node] = queue.top();
    queue.pop();
    if (at != cost[static_cast<Index>(node)]) continue;
    for (const int u : entering[static_cast<Index>(node)]) {
      const Link& link = package.links[static_cast<Index>(u)];
      const Cost next{at.first + link.latency, at.second + 1};
      if (next >= cost[static_cast<Index>(link.from)]) continue;
      cost[static_cast<Index>(link.from)] = next;
      queue.push({next, link.from});
    }
  }
  return cost;
}

class Router {
 public:
  Router(const Package& package, const TopologyGraph& topology) : package_(package), topology_(topology) {
    for (Index u = 0; u < package.links.size(); ++u)
      between_.emplace(pair_key(package.links[u].from, package.links[u].to), static_cast<int>(u));
    attached_.resize(package.chiplets.size());
    const int chiplets = static_cast<int>(package.chiplets.size());
    for (int io = package.compute_count; io < chiplets; ++io)
      for (int c = 0; c < package.compute_count; ++c)
        if (find(router_node(package, io), router_node(package, c)) >= 0 &&
            find(router_node(package, c), router_node(package, io)) >= 0)
          attached_[static_cast<Index>(io)].push_back(c);
  }

  /// The XY route between two different chiplets.
  std::vector<int> xy(int from, int to) const {
    std::vector<int> best;
    Cost best_cost = kFar;
    for (const int first : gates(from)) {
      for (const int last : gates(to)) {
        std::vector<int> links = via(from, first, last, to);
        Cost cost{0, static_cast<int>(links.size())};
        for (const int u : links) cost.first += package_.links[static_cast<Index>(u)].latency;
        if (cost < best_cost) {
          best_cost = cost;
          best = std::move(links);
        }
      }
    }
    return best;
  }

 private:
  static std::uint64_t pair_key(int from, int to) {
    return static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to);
  }
  int find(int from, int to) const {
    const auto it = between_.find(pair_key(from, to));
    return it == between_.end() ? -1 : it->second;
  }
  /// Compute chiplets through which a chiplet meets the grid: itself, or those an IO chiplet is attached to.
  std::vector<int> gates(int chiplet) const {
    if (chiplet < package_.compute_count) return {chiplet};
    return attached_[static_cast<Index>(chiplet)];
  }
  void append(std::vector<int>& links, int from_node, int to_node) const {
    const int u = find(from_node, to_node);
    assert(u >= 0 && "a topology routed over a link it did not declare");
    if (u >= 0) links.push_back(u);
  }
  std::vector<int> via(int from, int first, int last, int to) const {
    std::vector<int> links;
    const auto router = [&](int c) { return router_node(package_, c); };
    append(links, from < package_.compute_count ? from : router(from), router(first));
    for (int at = first, steps = 0; at != last && steps < kMaxChiplets; ++steps) {
      const int next = topology_.next_xy(at, last);
      append(links, router(at), router(next));
      at = next;
    }
    append(links, router(last), to < package_.compute_count ? to : router(to));
    return links;
  }

  const Package& package_;
  const TopologyGraph& topology_;
  std::unordered_map<std::uint64_t, int> between_;
  std::vector<std::vector<int>> attached_;
};

std::string some_names(const Package& package, const std::vector<int>& chiplets) {
  constexpr Index kShown = 6;
  std::string out;
  for (Index i = 0; i < std::min(kShown, chiplets.size()); ++i)
    out += (i == 0 ? "" : ", ") + package.chiplets[static_cast<Index>(chiplets[i])].name;
  if (chiplets.size() > kShown) out += fmt::format(" and {} more", chiplets.size() - kShown);
  return out;
}

}  // namespace

void check_reachable(const Package& package, const SourceSpan& where, Diagnostics& problems) {
  for (const bool forward : {true, false}) {
    const std::vector<char> seen = reached(package, forward);
    std::vector<int> lost, found;
    for (Index c = 0; c < package.chiplets.size(); ++c)
      (seen[static_cast<Index>(package.chiplets[c].node)] ? found : lost).push_back(static_cast<int>(c));
    if (lost.empty()) continue;
    const std::string& near = package.chiplets[static_cast<Index>(found.back())].name;
    const std::string& far = package.chiplets[static_cast<Index>(lost.front())].name;
    problems.error(
        where, "link",
        forward ? fmt::format("{} cannot be reached from {}: no link {}->{} or the like", some_names(package, lost),
                              package.chiplets.front().name, near, far)
                : fmt::format("{} cannot reach {}: no link {}->{} or the like", some_names(package, lost),
                              package.chiplets.front().name, far, near),
        fmt::format("add [[link]] with from = \"{}\" and to = \"{}\"", forward ? near : far, forward ? far : near));
  }
}

Ps route_latency(const Package& package, int from_chiplet, int to_chiplet) {
  Ps sum = 0;
  for (const int u : package.route_chiplets(from_chiplet, to_chiplet))
    sum += package.links[static_cast<Index>(u)].latency;
  return sum;
}

void fill_routes(Package& package, const TopologyGraph& topology, std::int64_t most_entries, const SourceSpan& where,
                 Diagnostics& problems) {
  const Index nodes = static_cast<Index>(package.nodes), chiplets = package.chiplets.size();
  std::vector<std::vector<Cost>> costs;
  std::vector<std::vector<int>> leaving;
  const bool table = package.routing == "table";
  if (table) {
    leaving = links_at(package, true);
    const auto entering = links_at(package, false);
    for (const Chiplet& c : package.chiplets) costs.push_back(costs_to(package, entering, c.node));
  }
  const Router router(package, topology);
  package.route_links.clear();
  package.route_first.assign(nodes * nodes + 1, 0);
  for (Index a = 0; a < nodes; ++a) {
    for (Index b = 0; b < nodes; ++b) {
      package.route_first[a * nodes + b] = package.route_links.size();
      if (a >= chiplets || b >= chiplets || a == b) continue;  // a chiplet's node has the chiplet's number
      if (!table) {
        const std::vector<int> links = router.xy(static_cast<int>(a), static_cast<int>(b));
        package.route_links.insert(package.route_links.end(), links.begin(), links.end());
      } else {
        const std::vector<Cost>& to_b = costs[b];
        for (int at = static_cast<int>(a); at != static_cast<int>(b);) {
          const Cost here = to_b[static_cast<Index>(at)];
          int next = -1;
          for (const int u : leaving[static_cast<Index>(at)]) {
            const Link& link = package.links[static_cast<Index>(u)];
            const Cost rest = to_b[static_cast<Index>(link.to)];
            if (rest == kFar || Cost{rest.first + link.latency, rest.second + 1} != here) continue;
            package.route_links.push_back(u);
            next = link.to;
            break;
          }
          assert(next >= 0 && "check_reachable passed an unreachable chiplet");
          if (next < 0) break;
          at = next;
        }
      }
      if (static_cast<std::int64_t>(package.route_links.size()) > most_entries) {
        problems.error(where, "topology", fmt::format("routes are too long: more than {} links in all", most_entries),
                       "use fewer chiplets or a topology with a smaller diameter");
        package.route_links.clear();
        package.route_first.assign(nodes * nodes + 1, 0);
        return;
      }
    }
  }
  package.route_first[nodes * nodes] = package.route_links.size();
}

}  // namespace sojourn
