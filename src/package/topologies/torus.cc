// A width x height torus; chiplet y * width + x. XY routing takes the shorter way round each ring, x first; a tie goes
// to the + direction. A ring of two has no wrap link (its chiplets are neighbours already).
#include "package/topologies.h"

namespace sojourn {
namespace {

/// One step along a ring of n from `at` towards `to`.
int ring_step(int at, int to, int n) {
  if (n == 2) return to;
  const int forward = (to - at + n) % n;
  return forward <= n - forward ? (at + 1) % n : (at + n - 1) % n;
}

/// Length in pitches of the link between neighbours i and j of a ring of n: a folded ring has links of two pitches,
/// an unfolded one short links and one that spans the ring.
double ring_pitches(int i, int j, int n, bool folded) {
  if (n <= 2) return 1;
  if (folded) return 2;
  return i - j == 1 || j - i == 1 ? 1 : n - 1;
}

TopologyGraph build_torus(const ParamSet& params, const SourceSpan& where, const std::string& key,
                          Diagnostics& problems) {
  const std::int64_t width = params.integer("width"), height = params.integer("height");
  const bool folded = params.flag("folded");
  TopologyGraph out;
  if (width * height > kMaxChiplets) {
    problems.error(where, key, "more than " + std::to_string(kMaxChiplets) + " chiplets", "use a smaller grid");
    return out;
  }
  const int w = static_cast<int>(width), h = static_cast<int>(height);
  out.width = w;
  out.height = h;
  for (int y = 0; y < h; ++y) {
    for (int x = 0; x < w; ++x) {
      const int c = y * w + x;
      out.positions.push_back({x, y});
      const int left = (x + w - 1) % w, right = (x + 1) % w, up = (y + h - 1) % h, down = (y + 1) % h;
      if (w > 2) out.edges.push_back({c, y * w + left, ring_pitches(x, left, w, folded)});
      if (w > 1) out.edges.push_back({c, y * w + right, ring_pitches(x, right, w, folded)});
      if (h > 2) out.edges.push_back({c, up * w + x, ring_pitches(y, up, h, folded)});
      if (h > 1) out.edges.push_back({c, down * w + x, ring_pitches(y, down, h, folded)});
    }
  }
  out.next_xy = [w, h](int at, int to) {
    const int x = at % w, y = at / w;
    if (x != to % w) return y * w + ring_step(x, to % w, w);
    return ring_step(y, to / w, h) * w + x;
  };
  return out;
}

}  // namespace

void register_topologies_torus(TopologyRegistry& registry) {
  const std::int64_t one = 1;
  registry.add({"torus",
                "width x height grid whose rows and columns close into rings",
                {{"width", Unit::none, one, 1, kMaxChiplets, {}, "chiplets a row", "ours", true},
                 {"height", Unit::none, one, 1, kMaxChiplets, {}, "chiplets a column", "ours", true},
                 {"folded",
                  Unit::none,
                  true,
                  0,
                  1,
                  {},
                  "rings are folded: every link of a ring is two pitches long; false: one long link a ring",
                  "ours"}}},
               build_torus);
}

}  // namespace sojourn
