// A width x height mesh; chiplet y * width + x. XY routing: along x first, then y.
#include "package/topologies.h"

namespace sojourn {
namespace {

TopologyGraph build_mesh(const ParamSet& params, const SourceSpan& where, const std::string& key,
                         Diagnostics& problems) {
  const std::int64_t width = params.integer("width"), height = params.integer("height");
  TopologyGraph out;
  if (width * height > kMaxChiplets) {
    problems.error(where, key, "more than " + std::to_string(kMaxChiplets) + " chiplets", "use a smaller grid");
    return out;
  }
  out.width = static_cast<int>(width);
  out.height = static_cast<int>(height);
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const int c = y * out.width + x;
      out.positions.push_back({x, y});
      if (x > 0) out.edges.push_back({c, c - 1, 1});
      if (x + 1 < out.width) out.edges.push_back({c, c + 1, 1});
      if (y > 0) out.edges.push_back({c, c - out.width, 1});
      if (y + 1 < out.height) out.edges.push_back({c, c + out.width, 1});
    }
  }
  out.next_xy = [w = out.width](int at, int to) {
    const int dx = to % w - at % w;
    if (dx != 0) return at + (dx > 0 ? 1 : -1);
    return at + (to > at ? w : -w);
  };
  return out;
}

}  // namespace

void register_topologies_mesh(TopologyRegistry& registry) {
  const std::int64_t one = 1;
  registry.add({"mesh",
                "width x height grid of chiplets, neighbours linked",
                {{"width", Unit::none, one, 1, kMaxChiplets, {}, "chiplets a row", "HCRMap Table 1: 4", true},
                 {"height", Unit::none, one, 1, kMaxChiplets, {}, "chiplets a column", "HCRMap Table 1: 4", true}}},
               build_mesh);
}

}  // namespace sojourn
