// Linear and mixed-integer programs, solved by CLP and CBC (COIN-OR), which stay behind this header:
//
//   minimise  sum_j c_j x_j   subject to  rl_i <= sum_j a_ij x_j <= ru_i,  l_j <= x_j <= u_j,  x_j whole for some j.
//
// A program is a value: build it, solve it, keep or copy it. Solving is silent, on the calling thread, and repeatable
// unless a limit in seconds cuts it short.
#pragma once
#include <limits>
#include <vector>

namespace sojourn {

inline constexpr double kLpInfinity = std::numeric_limits<double>::infinity();

class LinearProgram {
 public:
  /// Returns the column's index. An integer column makes the program one for branch and bound.
  int add_column(double cost, double lower = 0, double upper = kLpInfinity, bool integer = false);
  /// lower <= row <= upper; equal for an equation. Returns the row's index.
  int add_row(double lower, double upper);
  /// Adds `value` to the coefficient of a column in a row.
  void add(int row, int column, double value);

  struct Entry {
    int row, column;
    double value;
  };
  [[nodiscard]] int columns() const { return static_cast<int>(cost.size()); }
  [[nodiscard]] int rows() const { return static_cast<int>(row_lower.size()); }

  std::vector<double> cost, lower, upper;    ///< [column]
  std::vector<char> integer;                 ///< [column]
  std::vector<double> row_lower, row_upper;  ///< [row]
  std::vector<Entry> entries;                ///< in any order; repeated positions add up
};

struct LpLimits {
  double seconds = 0;       ///< wall time; 0 = none. Results under this limit depend on the machine.
  int nodes = 0;            ///< of branch and bound; 0 = none
  double relative_gap = 0;  ///< branch and bound may stop when (objective - bound) / |objective| is this small
};

enum class LpStatus {
  optimal,     ///< proven within tolerances (and `relative_gap`)
  feasible,    ///< a solution, cut short by a limit
  infeasible,  ///< proven: no solution
  unbounded,   ///< proven: no least value
  unknown      ///< a limit or numerical trouble before any solution
};
[[nodiscard]] const char* lp_status_name(LpStatus s);

struct LpSolution {
  LpStatus status = LpStatus::unknown;
  double objective = kLpInfinity;  ///< of `x`; infinity without one
  /// No solution is better than this. For a linear program it is evaluated here from the row prices (weak duality), so
  /// it holds for whatever prices the solver ended with, up to rounding; for branch and bound it is CBC's.
  double bound = -kLpInfinity;
  std::vector<double> x;      ///< [column]; empty without a solution
  std::vector<double> price;  ///< [row] dual values; linear programs only
  [[nodiscard]] bool solved() const { return status == LpStatus::optimal; }
};

[[nodiscard]] LpSolution solve(const LinearProgram& program, const LpLimits& limits = {});

/// Weak duality: for any prices y, min c x >= sum_i y_i (rl_i if y_i > 0 else ru_i) + sum_j d_j (l_j if d_j > 0 else
/// u_j) with d = c - y A. A price that leans on a side without a limit counts as zero; a reduced cost that does so
/// makes the sum minus infinity, unless it is within `tolerance` (relative to the largest cost) of zero.
[[nodiscard]] double dual_bound(const LinearProgram& program, const std::vector<double>& price,
                                double tolerance = 1e-9);

}  // namespace sojourn
