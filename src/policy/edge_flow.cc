// LPLB's linear program on CLP; see edge_flow.h.
#include "policy/edge_flow.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "solver/lp.h"

namespace sojourn {
namespace {

size_t z(int i) { return static_cast<size_t>(i); }

/// Both programs: rows of devices, then of experts with edges. `cap` < 0: minimise t, column 0.
struct Program {
  LinearProgram lp;
  std::vector<int> replica_of;  ///< [column] -1: t

  Program(int devices, const ReplicaTable& table, const std::vector<int>& units, const std::vector<int>& base,
          double cap) {
    if (cap < 0) {
      lp.add_column(1.0);
      replica_of.push_back(-1);
    }
    for (int d = 0; d < devices; ++d) {
      lp.add_row(-kLpInfinity, std::max(cap, 0.0) - base[z(d)]);
      if (cap < 0) lp.add(d, 0, -1.0);
    }
    for (int e = 0; e < table.experts(); ++e) {
      const int first = table.first[z(e)], last = table.first[z(e) + 1];
      if (last - first < 2 || units[z(e)] == 0) continue;
      const int row = lp.add_row(-kLpInfinity, units[z(e)]);
      for (int r = first + 1; r < last; ++r) {
        const int from = table.device[z(first)], to = table.device[z(r)];
        if (from == to) continue;
        const int column = lp.add_column(cap < 0 ? 0.0 : 1.0, 0.0, units[z(e)]);
        replica_of.push_back(r);
        lp.add(row, column, 1.0);
        lp.add(from, column, -1.0);
        lp.add(to, column, 1.0);
      }
    }
  }
};

}  // namespace

EdgeFlow level_by_edges(int devices, const ReplicaTable& table, std::span<const int> tokens, int unit) {
  EdgeFlow out;
  out.quota.assign(table.device.size(), 0);
  std::vector<int> base(z(devices), 0), units;
  for (int e = 0; e < table.experts(); ++e) {
    units.push_back((tokens[z(e)] + unit - 1) / unit);
    if (tokens[z(e)] == 0) continue;
    out.quota[z(table.first[z(e)])] = tokens[z(e)];
    base[z(table.device[z(table.first[z(e)])])] += units[z(e)];
  }
  out.bound = *std::max_element(base.begin(), base.end());
  const Program relaxed(devices, table, units, base, -1.0);
  if (relaxed.lp.columns() == 1) return out;
  const LpSolution least = solve(relaxed.lp);
  assert(least.solved());
  if (!least.solved()) return out;
  out.bound = std::max(least.objective, 0.0);
  const Program whole(devices, table, units, base, std::ceil(out.bound - 1e-6));
  const LpSolution flows = solve(whole.lp);
  assert(flows.solved());
  if (!flows.solved()) return out;
  for (int column = 0; column < whole.lp.columns(); ++column) {
    const int r = whole.replica_of[z(column)];
    const auto e = std::upper_bound(table.first.begin(), table.first.end(), r) - table.first.begin() - 1;
    int& native = out.quota[z(table.first[static_cast<size_t>(e)])];
    // The broken unit stays native unless the native replica gives all it has.
    const int n = std::min(static_cast<int>(std::lround(flows.x[z(column)])) * unit, native);
    out.quota[z(r)] = n;
    native -= n;
  }
  return out;
}

}  // namespace sojourn
