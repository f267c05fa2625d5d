// Builds and solves the program of program.h; the value reported is the weak-duality sum of the solver's prices.
#include "bound/program.h"

#include <algorithm>

#include "solver/lp.h"

namespace sojourn {
namespace {

constexpr double kExact = 1 - 1e-9;  // the relative error of Rate's fixed point is below this, see units.h
constexpr double kUs = 1e6;          // ps; the program is written in microseconds and megabytes
constexpr double kMb = 1e6;

bool holds(std::size_t subset, std::size_t tier) { return (subset >> tier & 1U) != 0; }

struct Rows {
  std::array<int, kTiers> read{}, held{};  ///< capacity, by tier; held: -1 in a program of one window
  struct Delivery {
    int row;
    std::size_t subset;
  };
  std::vector<std::vector<Delivery>> delivery;  ///< [layer]
  std::vector<int> duration;                    ///< [layer] column of D
};

/// The v of the use lines: counts at a few quantiles. Any choice is valid, more are tighter.
std::vector<double> use_levels(const std::vector<int>& uses, int windows) {
  std::vector<int> sorted = uses;
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> v;
  constexpr std::size_t kLevels = 4;
  for (std::size_t i = 0; i < kLevels && !sorted.empty(); ++i)
    v.push_back(sorted[(sorted.size() - 1) * i / (kLevels - 1)]);
  v.push_back(windows);
  std::sort(v.begin(), v.end());
  v.erase(std::unique(v.begin(), v.end()), v.end());
  return v;
}

void add_residency(LinearProgram& lp, const Program& p, const ProgramLayer& layer, const std::array<int, kTiers>& y,
                   const Rows& rows) {
  std::array<int, kTiers> h{};
  const double all = static_cast<double>(layer.uses.size()) * p.expert_bytes / kMb;
  const int somewhere = lp.add_row(all * kExact, kLpInfinity);
  for (std::size_t t = 0; t < kTiers; ++t) {
    h[t] = lp.add_column(0, 0, p.capacity[t] > 0 ? all : 0);
    lp.add(somewhere, h[t], 1);
    lp.add(rows.held[t], h[t], 1);
  }
  for (const double v : use_levels(layer.uses, p.windows)) {
    double beyond = 0;
    for (int n : layer.uses) beyond += std::max(0.0, n - v);
    for (std::size_t q = 1; q + 1 < TierRates::kSubsets; ++q) {
      const int row = lp.add_row(-kLpInfinity, beyond * p.expert_bytes / kMb);
      for (std::size_t t = 0; t < kTiers; ++t) {
        if (!holds(q, t)) continue;
        lp.add(row, y[t], 1);
        lp.add(row, h[t], -v);
      }
    }
  }
}

Rows build(LinearProgram& lp, const Program& p, const std::vector<ProgramLayer>& layers) {
  Rows rows;
  rows.delivery.resize(layers.size());
  for (std::size_t t = 0; t < kTiers; ++t) {
    rows.read[t] = lp.add_row(-kLpInfinity, p.windows * p.capacity[t] / kMb);
    rows.held[t] = p.windows > 1 ? lp.add_row(-kLpInfinity, p.capacity[t] / kMb) : -1;
  }
  if (p.windows > 1) {
    const int moved = lp.add_row(-kLpInfinity, p.moved / kMb);
    for (std::size_t t = 0; t < kTiers; ++t) {
      const int m = lp.add_column(0, 0, p.moved / kMb);
      lp.add(moved, m, 1);
      lp.add(rows.held[t], m, -1);
    }
  }
  double slowest = kLpInfinity;  // of the tiers, for an upper limit of D that some optimum keeps
  for (std::size_t t = 0; t < kTiers; ++t)
    if (p.capacity[t] > 0) slowest = std::min(slowest, p.rates->bytes_per_s[std::size_t{1} << t] * 1e-12);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const ProgramLayer& layer = layers[l];
    const double bytes = layer.bytes * kExact / kMb;
    const double late = *std::max_element(layer.tail.begin(), layer.tail.end()) + layer.link_rounding;
    const int d = lp.add_column(1, layer.least / kUs, (layer.least + late + layer.bytes / slowest + kUs) / kUs);
    rows.duration.push_back(d);
    const int need = lp.add_row(bytes, kLpInfinity);
    std::array<int, kTiers> y{};
    for (std::size_t t = 0; t < kTiers; ++t) {
      y[t] = lp.add_column(0, 0, p.capacity[t] > 0 ? bytes : 0);
      lp.add(need, y[t], 1);
      lp.add(rows.read[t], y[t], 1);
    }
    for (std::size_t q = 1; q < TierRates::kSubsets; ++q) {
      const double rate = p.rates->bytes_per_s[q] * 1e-12 * kUs / kMb;  // MB/us
      if (rate <= 0) continue;
      double apart = 0;
      for (std::size_t t = 0; t < kTiers; ++t)
        if (holds(q, t)) apart += p.rates->bytes_per_s[std::size_t{1} << t];
      if ((q & (q - 1)) != 0 && p.rates->bytes_per_s[q] >= apart * kExact) continue;  // the single tiers say as much
      const double rounding = p.rates->links[q] ? layer.link_rounding : layer.rounding;
      const int row = lp.add_row(-kLpInfinity, -rate * (layer.tail[q] - rounding) / kUs);
      for (std::size_t t = 0; t < kTiers; ++t)
        if (holds(q, t)) lp.add(row, y[t], 1);
      lp.add(row, d, -rate);
      rows.delivery[l].push_back({row, q});
    }
    if (p.windows > 1) add_residency(lp, p, layer, y, rows);
  }
  return rows;
}

BoundResource offset(BoundResource first, std::size_t tier) {
  return static_cast<BoundResource>(static_cast<std::size_t>(first) + tier);
}

}  // namespace

double solve_program(const Program& p, const std::vector<ProgramLayer>& layers, std::vector<BoundResource>& resources) {
  LinearProgram lp;
  const Rows rows = build(lp, p, layers);
  const LpSolution s = solve(lp);
  if (s.price.empty()) return 0;
  // The tier whose capacity would help most if it were larger, in proportion.
  std::size_t fullest = kTiers;
  double worth = 1e-6;  // us
  for (std::size_t t = 0; t < kTiers; ++t) {
    double relief = -s.price[static_cast<std::size_t>(rows.read[t])] * p.windows * p.capacity[t] / kMb;
    if (rows.held[t] >= 0) relief -= s.price[static_cast<std::size_t>(rows.held[t])] * p.capacity[t] / kMb;
    if (relief <= worth) continue;
    worth = relief;
    fullest = t;
  }
  for (std::size_t l = 0; l < layers.size() && !s.x.empty(); ++l) {
    if (s.x[static_cast<std::size_t>(rows.duration[l])] * kUs <= layers[l].least * (1 + 1e-9)) continue;
    double most = 0;
    std::size_t subset = 0;
    for (const Rows::Delivery& r : rows.delivery[l]) {
      const double w = -s.price[static_cast<std::size_t>(r.row)] * p.rates->bytes_per_s[r.subset];
      if (w <= most) continue;
      most = w;
      subset = r.subset;
    }
    if (subset == 0) continue;
    if (fullest < kTiers) {
      resources[l] = offset(BoundResource::sram_capacity, fullest);
    } else if (p.rates->links[subset]) {
      resources[l] = BoundResource::links;
    } else {
      std::size_t tier = 0;
      while (!holds(subset, tier)) ++tier;
      resources[l] = offset(BoundResource::sram_bandwidth, tier);
    }
  }
  return std::max(0.0, dual_bound(lp, s.price, 0) * kUs);
}

}  // namespace sojourn
