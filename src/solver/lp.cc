// The calls to CLP's and CBC's C interfaces; see lp.h. A price that leans on an open side is set to zero before the
// weak-duality sum: the sum holds for any prices, so it holds for those.
#include "solver/lp.h"

#include <Cbc_C_Interface.h>
#include <Clp_C_Interface.h>
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>
#include <mutex>

namespace sojourn {

const char* lp_status_name(LpStatus s) {
  static constexpr const char* kNames[] = {"optimal", "feasible", "infeasible", "unbounded", "unknown"};
  return kNames[static_cast<std::size_t>(s)];
}

int LinearProgram::add_column(double c, double l, double u, bool whole) {
  cost.push_back(c);
  lower.push_back(l);
  upper.push_back(u);
  integer.push_back(whole ? 1 : 0);
  return columns() - 1;
}

int LinearProgram::add_row(double l, double u) {
  row_lower.push_back(l);
  row_upper.push_back(u);
  return rows() - 1;
}

void LinearProgram::add(int row, int column, double value) {
  assert(row >= 0 && row < rows() && column >= 0 && column < columns());
  if (value != 0) entries.push_back({row, column, value});
}

double dual_bound(const LinearProgram& p, const std::vector<double>& price, double tolerance) {
  double scale = 1;
  for (double c : p.cost) scale = std::max(scale, std::abs(c));
  const double small = tolerance * scale;
  std::vector<double> y = price;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double side = y[i] > 0 ? p.row_lower[i] : p.row_upper[i];
    if (std::isinf(side)) y[i] = 0;
  }
  std::vector<double> reduced = p.cost;
  for (const LinearProgram::Entry& e : p.entries)
    reduced[static_cast<std::size_t>(e.column)] -= y[static_cast<std::size_t>(e.row)] * e.value;
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i)
    if (y[i] != 0) sum += y[i] * (y[i] > 0 ? p.row_lower[i] : p.row_upper[i]);
  for (std::size_t j = 0; j < reduced.size(); ++j) {
    const double d = reduced[j], side = d > 0 ? p.lower[j] : p.upper[j];
    if (d == 0 || (std::isinf(side) && std::abs(d) <= small)) continue;
    sum += d * side;
  }
  return std::isnan(sum) ? -kLpInfinity : sum;
}

namespace {

/// Column-major matrix as both libraries take it.
struct Matrix {
  std::vector<CoinBigIndex> start;
  std::vector<int> row;
  std::vector<double> value;
};

Matrix by_column(const LinearProgram& p) {
  std::vector<LinearProgram::Entry> sorted = p.entries;
  std::stable_sort(sorted.begin(), sorted.end(), [](const LinearProgram::Entry& a, const LinearProgram::Entry& b) {
    return a.column != b.column ? a.column < b.column : a.row < b.row;
  });
  Matrix m;
  m.start.assign(static_cast<std::size_t>(p.columns()) + 1, 0);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const LinearProgram::Entry& e = sorted[i];
    if (i > 0 && sorted[i - 1].row == e.row && sorted[i - 1].column == e.column) {
      m.value.back() += e.value;
      continue;
    }
    m.row.push_back(e.row);
    m.value.push_back(e.value);
    ++m.start[static_cast<std::size_t>(e.column) + 1];
  }
  for (std::size_t j = 1; j < m.start.size(); ++j) m.start[j] += m.start[j - 1];
  return m;
}

std::vector<double> finite(const std::vector<double>& v) {
  std::vector<double> out = v;
  for (double& x : out) x = std::clamp(x, -1e60, 1e60);  // both libraries read 1e30 and more as infinite
  return out;
}

double value_of(const LinearProgram& p, const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j) sum += p.cost[j] * x[j];
  return sum;
}

LpSolution solve_linear(const LinearProgram& p, const LpLimits& limits) {
  const Matrix m = by_column(p);
  const std::unique_ptr<Clp_Simplex, decltype(&Clp_deleteModel)> model(Clp_newModel(), &Clp_deleteModel);
  Clp_setLogLevel(model.get(), 0);
  Clp_loadProblem(model.get(), p.columns(), p.rows(), m.start.data(), m.row.data(), m.value.data(),
                  finite(p.lower).data(), finite(p.upper).data(), p.cost.data(), finite(p.row_lower).data(),
                  finite(p.row_upper).data());
  if (limits.seconds > 0) Clp_setMaximumSeconds(model.get(), limits.seconds);
  // Small programs spend most of their time in presolve; the dual simplex starts at once where costs are not negative.
  const bool small = p.columns() <= 500 && std::all_of(p.cost.begin(), p.cost.end(), [](double c) { return c >= 0; });
  if (small)
    Clp_dual(model.get(), 0);
  else
    Clp_initialSolve(model.get());
  LpSolution s;
  const int status = Clp_status(model.get());
  if (Clp_isProvenPrimalInfeasible(model.get())) {
    s.status = LpStatus::infeasible;
    s.bound = kLpInfinity;
    return s;
  }
  if (Clp_isProvenDualInfeasible(model.get())) {
    s.status = LpStatus::unbounded;
    return s;
  }
  const double* price = Clp_getRowPrice(model.get());
  s.price.assign(price, price + p.rows());
  s.bound = dual_bound(p, s.price);
  if (status != 0 && !Clp_primalFeasible(model.get())) return s;
  s.status = status == 0 ? LpStatus::optimal : LpStatus::feasible;
  const double* x = Clp_getColSolution(model.get());
  s.x.assign(x, x + p.columns());
  s.objective = value_of(p, s.x);
  return s;
}

LpSolution solve_integer(const LinearProgram& p, const LpLimits& limits) {
  // CBC's driver keeps its parameters in static storage.
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  const Matrix m = by_column(p);
  const std::unique_ptr<Cbc_Model, decltype(&Cbc_deleteModel)> model(Cbc_newModel(), &Cbc_deleteModel);
  Cbc_loadProblem(model.get(), p.columns(), p.rows(), m.start.data(), m.row.data(), m.value.data(),
                  finite(p.lower).data(), finite(p.upper).data(), p.cost.data(), finite(p.row_lower).data(),
                  finite(p.row_upper).data());
  for (int j = 0; j < p.columns(); ++j)
    if (p.integer[static_cast<std::size_t>(j)]) Cbc_setInteger(model.get(), j);
  Cbc_setObjSense(model.get(), 1);
  Cbc_setParameter(model.get(), "log", "0");
  Cbc_setLogLevel(model.get(), 0);
  const std::string gap = fmt::format("{}", limits.relative_gap);
  Cbc_setParameter(model.get(), "ratio", gap.c_str());
  Cbc_setParameter(model.get(), "allow", limits.relative_gap > 0 ? "1e-10" : "0");
  if (limits.nodes > 0) Cbc_setParameter(model.get(), "maxN", fmt::format("{}", limits.nodes).c_str());
  if (limits.seconds > 0) {
    Cbc_setParameter(model.get(), "timeMode", "elapsed");
    Cbc_setParameter(model.get(), "sec", fmt::format("{}", limits.seconds).c_str());
  }
  Cbc_solve(model.get());
  LpSolution s;
  s.bound = Cbc_getBestPossibleObjValue(model.get());
  if (std::abs(s.bound) > 1e40) s.bound = s.bound > 0 ? kLpInfinity : -kLpInfinity;
  if (Cbc_isProvenInfeasible(model.get())) {
    s.status = LpStatus::infeasible;
    s.bound = kLpInfinity;
    return s;
  }
  if (Cbc_isContinuousUnbounded(model.get())) {
    s.status = LpStatus::unbounded;
    s.bound = -kLpInfinity;
    return s;
  }
  const double* x = Cbc_bestSolution(model.get());
  if (x == nullptr) return s;
  s.status = Cbc_isProvenOptimal(model.get()) ? LpStatus::optimal : LpStatus::feasible;
  s.x.assign(x, x + p.columns());
  s.objective = value_of(p, s.x);
  s.bound = std::min(s.bound, s.objective);
  return s;
}

}  // namespace

LpSolution solve(const LinearProgram& program, const LpLimits& limits) {
  const bool whole = std::any_of(program.integer.begin(), program.integer.end(), [](char c) { return c != 0; });
  return whole ? solve_integer(program, limits) : solve_linear(program, limits);
}

}  // namespace sojourn
