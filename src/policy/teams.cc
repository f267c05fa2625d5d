// Halving of a package into teams; rule in teams.h.
#include "policy/teams.h"

#include <algorithm>
#include <tuple>

namespace sojourn {

Teams::Teams(const Package& package) {
  std::vector<std::vector<int>> now(1);
  for (int c = 0; c < package.compute_count; ++c) now.front().push_back(c);
  for (bool more = true; more;) {
    size_t largest = 0;
    for (const auto& team : now) largest = std::max(largest, team.size());
    more = largest > 1;
    if (largest <= static_cast<size_t>(kSlices)) levels_.push_back(now);
    std::vector<std::vector<int>> next;
    for (auto& team : now) {
      if (team.size() < 2) {
        next.push_back(team);
        continue;
      }
      const auto at = [&](int c) { return package.chiplets[static_cast<size_t>(c)]; };
      const auto [left, right] =
          std::minmax_element(team.begin(), team.end(), [&](int a, int b) { return at(a).x < at(b).x; });
      const auto [top, bottom] =
          std::minmax_element(team.begin(), team.end(), [&](int a, int b) { return at(a).y < at(b).y; });
      const bool by_x = at(*right).x - at(*left).x >= at(*bottom).y - at(*top).y;
      std::sort(team.begin(), team.end(), [&](int a, int b) {
        const Chiplet &p = at(a), &q = at(b);
        return by_x ? std::tie(p.x, p.y, a) < std::tie(q.x, q.y, b) : std::tie(p.y, p.x, a) < std::tie(q.y, q.x, b);
      });
      const auto middle = team.begin() + static_cast<std::ptrdiff_t>(team.size() / 2);
      next.emplace_back(team.begin(), middle);
      next.emplace_back(middle, team.end());
      std::sort(next[next.size() - 2].begin(), next[next.size() - 2].end());
      std::sort(next.back().begin(), next.back().end());
    }
    now = std::move(next);
  }
}

int Teams::degree(int i) const {
  size_t least = levels_[static_cast<size_t>(i)].front().size();
  for (const auto& team : levels_[static_cast<size_t>(i)]) least = std::min(least, team.size());
  return static_cast<int>(least);
}

int Teams::level_for(int shards) const {
  for (int i = levels() - 1; i > 0; --i)
    if (degree(i) >= shards) return i;
  return 0;
}

}  // namespace sojourn
