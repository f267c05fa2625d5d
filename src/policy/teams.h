// Teams: compact sets of chiplets that share the shards of one expert.
//
// The compute chiplets are halved again and again along the longer side of what is left (grid positions), down to
// single ones. Every node of this tree is a team; all teams of one depth are a level, and a smaller team lies inside
// exactly one of the next size. Teams larger than kSlices chiplets cannot each hold a slice and are left out. A tree
// instead of free subsets keeps the choice small and leaves no chiplet behind: what any mix of levels puts on a package
// can be levelled by the levels below.
#pragma once
#include <span>
#include <vector>

#include "sojourn/package.h"
#include "sojourn/residency.h"

namespace sojourn {

class Teams {
 public:
  Teams() = default;
  explicit Teams(const Package& package);
  /// Levels, largest teams first; the last one has the single chiplets.
  [[nodiscard]] int levels() const { return static_cast<int>(levels_.size()); }
  [[nodiscard]] std::span<const std::vector<int>> level(int i) const { return levels_[static_cast<size_t>(i)]; }
  /// Chiplets of the smallest team of a level: the least number of shards an expert on that level has.
  [[nodiscard]] int degree(int i) const;
  /// The level with the smallest teams of at least `shards` chiplets; the largest teams if there are none.
  [[nodiscard]] int level_for(int shards) const;

 private:
  std::vector<std::vector<std::vector<int>>> levels_;
};

}  // namespace sojourn
