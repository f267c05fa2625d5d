// CLP and CBC behind solver/lp.h: known answers, every status, the dual bound, repeatability, silence.
#include "solver/lp.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "base/rng.h"

namespace {

using namespace sojourn;

/// Knapsack of n items: minimise minus the value under one weight limit.
LinearProgram knapsack(int n, std::uint64_t seed, bool whole) {
  Rng rng(seed, "lp.knapsack");
  LinearProgram p;
  const int row = p.add_row(-kLpInfinity, 0);
  double total = 0;
  for (int i = 0; i < n; ++i) {
    const double weight = 10 + static_cast<double>(rng.below(90));
    p.add(row, p.add_column(-(weight + static_cast<double>(rng.below(20))), 0, 1, whole), weight);
    total += weight;
  }
  p.row_upper[0] = std::floor(total / 2);
  return p;
}

double best_by_enumeration(const LinearProgram& p) {
  double best = 0;
  for (unsigned set = 0; set < 1U << p.columns(); ++set) {
    double weight = 0, cost = 0;
    for (const LinearProgram::Entry& e : p.entries)
      if (set >> e.column & 1U) weight += e.value;
    for (int j = 0; j < p.columns(); ++j)
      if (set >> j & 1U) cost += p.cost[static_cast<std::size_t>(j)];
    if (weight <= p.row_upper[0]) best = std::min(best, cost);
  }
  return best;
}

TEST_CASE("a linear program: optimum, prices and the bound they prove") {
  // min x + 2 y with x + y >= 3, x <= 2: x = 2, y = 1; the row's price is 2, x's reduced cost -1.
  LinearProgram p;
  const int x = p.add_column(1, 0, 2), y = p.add_column(2);
  const int r = p.add_row(3, kLpInfinity);
  p.add(r, x, 1);
  p.add(r, y, 0.25);
  p.add(r, y, 0.75);  // repeated positions add up
  const LpSolution s = solve(p);
  REQUIRE(s.solved());
  CHECK(s.objective == doctest::Approx(4));
  CHECK(s.x[0] == doctest::Approx(2));
  CHECK(s.x[1] == doctest::Approx(1));
  CHECK(s.price[0] == doctest::Approx(2));
  CHECK(s.bound == doctest::Approx(4));
  CHECK(dual_bound(p, {1}) == doctest::Approx(3));  // any prices prove something
  CHECK(dual_bound(p, {3}) == -kLpInfinity);        // and some prove nothing
}

TEST_CASE("infeasible and unbounded programs are told apart, with and without integers") {
  for (const bool whole : {false, true}) {
    LinearProgram p;
    const int x = p.add_column(1, 0, 10, whole), r = p.add_row(11, kLpInfinity);
    p.add(r, x, 1);
    LpSolution s = solve(p);
    CHECK(s.status == LpStatus::infeasible);
    CHECK(s.x.empty());
    CHECK(s.bound == kLpInfinity);
    LinearProgram q;
    q.add_row(0, kLpInfinity);
    q.add(0, q.add_column(-1, 0, kLpInfinity, whole), 1);
    s = solve(q);
    CHECK(s.status == LpStatus::unbounded);
    CHECK(s.bound == -kLpInfinity);
  }
}

TEST_CASE("equations, free columns and negative bounds") {
  LinearProgram p;
  const int x = p.add_column(1, -kLpInfinity), y = p.add_column(1, -5, -1);
  const int r = p.add_row(-7, -7);
  p.add(r, x, 1);
  p.add(r, y, -1);
  const LpSolution s = solve(p);  // x = y - 7: both at their least
  REQUIRE(s.solved());
  CHECK(s.objective == doctest::Approx(-17));
  CHECK(s.bound == doctest::Approx(-17));
}

TEST_CASE("branch and bound finds what enumeration finds, and the linear relaxation is below it") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const LinearProgram p = knapsack(12, seed, true);
    const LpSolution s = solve(p);
    REQUIRE(s.solved());
    CHECK(s.objective == doctest::Approx(best_by_enumeration(p)));
    CHECK(s.bound == doctest::Approx(s.objective));
    for (double v : s.x) CHECK(std::abs(v - std::round(v)) < 1e-6);
    const LpSolution relaxed = solve(knapsack(12, seed, false));
    REQUIRE(relaxed.solved());
    CHECK(relaxed.bound <= s.objective + 1e-6);
    CHECK(relaxed.bound == doctest::Approx(relaxed.objective));
  }
}

TEST_CASE("a node limit ends with a proven bound, and the same one every time") {
  // Market split: hard for branch and bound at this size.
  LinearProgram p;
  Rng rng(1, "lp.split");
  const int n = 40, rows = 5;
  for (int j = 0; j < n; ++j) p.add_column(0, 0, 1, true);
  for (int i = 0; i < rows; ++i) {
    double total = 0;
    const int r = p.add_row(0, 0);
    for (int j = 0; j < n; ++j) {
      const double a = static_cast<double>(rng.below(100));
      p.add(r, j, a);
      total += a;
    }
    p.add(r, p.add_column(1), 1);
    p.add(r, p.add_column(1), -1);
    p.row_lower[static_cast<std::size_t>(r)] = p.row_upper[static_cast<std::size_t>(r)] = std::floor(total / 2);
  }
  LpLimits limits;
  limits.nodes = 50;
  const LpSolution first = solve(p, limits), again = solve(p, limits);
  CHECK(first.status != LpStatus::optimal);
  CHECK(first.bound >= -1e-6);
  CHECK(first.bound <= first.objective);
  CHECK(first.status == again.status);
  CHECK(first.objective == again.objective);
  CHECK(first.bound == again.bound);
  CHECK(first.x == again.x);
}

TEST_CASE("solving prints nothing") {
  std::fflush(stdout);
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int saved = dup(1);
  dup2(fileno(file), 1);
  const bool solved = solve(knapsack(10, 3, true)).solved() && solve(knapsack(10, 3, false)).solved();
  std::fflush(stdout);
  dup2(saved, 1);
  close(saved);
  std::fseek(file, 0, SEEK_END);
  CHECK(std::ftell(file) == 0);
  std::fclose(file);
  CHECK(solved);
}

}  // namespace
