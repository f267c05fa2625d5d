// Solves F(Q) of tier_rates.h as a linear program, once a package; tiers without a set across links add up.
#include "bound/tier_rates.h"

#include <algorithm>
#include <vector>

#include "solver/lp.h"

namespace sojourn {
namespace {

bool remote(const Package& p, const BankSet& set) { return !p.chiplets[static_cast<std::size_t>(set.owner)].compute; }

double flow(const Package& p, std::size_t tiers) {
  constexpr double kUnit = 1e-9;  // GB/s: keeps the program's numbers near one
  LinearProgram lp;
  std::vector<int> link_row(p.links.size(), -1);
  std::vector<int> bank_row(p.bank_sets.size(), -1);
  double local = 0;
  for (std::size_t s = 0; s < p.bank_sets.size(); ++s) {
    const BankSet& set = p.bank_sets[s];
    if (!(tiers >> static_cast<std::size_t>(set.tier) & 1U)) continue;
    if (remote(p, set))
      bank_row[s] = lp.add_row(-kLpInfinity, static_cast<double>(set.bandwidth) * kUnit);
    else
      local += static_cast<double>(set.bandwidth) * kUnit;
  }
  for (int t = 0; t < kTiers; ++t)
    for (int c = 0; c < p.compute_count; ++c)
      for (int s : p.visible(static_cast<Tier>(t), c)) {
        const int row = bank_row[static_cast<std::size_t>(s)];
        if (row < 0) continue;
        const int z = lp.add_column(-1);
        lp.add(row, z, 1);
        for (int u : p.route_chiplets(p.bank_sets[static_cast<std::size_t>(s)].owner, c)) {
          int& link = link_row[static_cast<std::size_t>(u)];
          if (link < 0)
            link = lp.add_row(-kLpInfinity,
                              static_cast<double>(p.links[static_cast<std::size_t>(u)].bandwidth.per_second()) * kUnit);
          lp.add(link, z, 1);
        }
      }
  // The dual bound, not the primal optimum: the rate must not be taken for less than it can be.
  const double across = lp.columns() > 0 ? -solve(lp).bound : 0;
  return (local + across) / kUnit;
}

}  // namespace

TierRates tier_rates(const Package& p) {
  TierRates rates;
  std::array<double, kTiers> banks{};
  std::size_t crossing = 0;  // tiers with a set on an IO chiplet
  for (const BankSet& set : p.bank_sets) {
    const auto t = static_cast<std::size_t>(set.tier);
    banks[t] += static_cast<double>(set.bandwidth);
    if (remote(p, set)) crossing |= std::size_t{1} << t;
  }
  for (std::size_t q = 1; q < TierRates::kSubsets; ++q) {
    double sum = 0;
    for (std::size_t t = 0; t < kTiers; ++t)
      if (q >> t & 1U) sum += banks[t];
    rates.bytes_per_s[q] = sum;
    if ((q & crossing) == 0) continue;
    const std::size_t over_links = q & crossing;
    if (over_links != q) {  // solved already: its index is smaller
      double local = 0;
      for (std::size_t t = 0; t < kTiers; ++t)
        if ((q & ~crossing) >> t & 1U) local += banks[t];
      rates.bytes_per_s[q] = rates.bytes_per_s[over_links] + local;
    } else {
      rates.bytes_per_s[q] = std::min(sum, flow(p, q));
    }
    rates.links[q] = rates.bytes_per_s[q] < sum * (1 - 1e-9);
  }
  return rates;
}

}  // namespace sojourn
