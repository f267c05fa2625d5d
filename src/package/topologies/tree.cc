// A tree of compute chiplets: chiplet 0 is the root, the parent of chiplet i is (i - 1) / arity. Table routing only.
#include <algorithm>

#include "package/topologies.h"

namespace sojourn {
namespace {

TopologyGraph build_tree(const ParamSet& params, const SourceSpan&, const std::string&, Diagnostics&) {
  const int count = static_cast<int>(params.integer("chiplets")), arity = static_cast<int>(params.integer("arity"));
  TopologyGraph out;
  int level = 0, first = 0;  // of the level being filled
  for (int c = 0, size = 1; c < count; ++c) {
    if (c == first + size) {
      first = c;
      size = std::min(size * arity, kMaxChiplets);
      ++level;
    }
    out.positions.push_back({c - first, level});
    out.width = std::max(out.width, c - first + 1);
    if (c == 0) continue;
    const int parent = (c - 1) / arity;
    out.edges.push_back({parent, c, 1});
    out.edges.push_back({c, parent, 1});
  }
  out.height = level + 1;
  return out;
}

}  // namespace

void register_topologies_tree(TopologyRegistry& registry) {
  const std::int64_t one = 1, two = 2;
  registry.add(
      {"tree",
       "a tree of chiplets filled level by level",
       {{"chiplets", Unit::none, one, 1, kMaxChiplets, {}, "compute chiplets, the root included", "ours", true},
        {"arity", Unit::none, two, 1, kMaxChiplets, {}, "children a chiplet", "ours"}}},
      build_tree);
}

}  // namespace sojourn
