// The linear program that couples the layers of a package, over one window or over a whole run.
//
//   minimise sum_l D_l    subject to    D_l >= least_l,    sum_t y_{l,t} >= bytes_l,
//   sum_{t in Q} y_{l,t} <= F(Q) (D_l - tail_{l,Q}),       sum_l y_{l,t} <= W Cap_t
//
// Over a run of W windows D, y, least, tail and bytes are sums over windows, and residency ties the windows together:
// h_{l,t} counts bytes of layer l that are live in tier t at some time of the run, n_e the windows that use expert e:
//
//   sum_{t in Q} y_{l,t} <= v sum_{t in Q} h_{l,t} + S sum_e (n_e - v)^+      for any v >= 0 and tiers Q
//   sum_l h_{l,t} <= Cap_t + M_t,    sum_t M_t <= U^max W S,    sum_t h_{l,t} >= E S
//
// Proofs: docs/bound.md.
#pragma once
#include <array>
#include <vector>

#include "bound/resource.h"
#include "bound/tier_rates.h"
#include "sojourn/units.h"

namespace sojourn {

struct ProgramLayer {
  double least = 0;                                ///< ps
  double bytes = 0;                                ///< of active experts
  double rounding = 0, link_rounding = 0;          ///< ps that rounding may take from a bank's and a link's busy time
  std::array<double, TierRates::kSubsets> tail{};  ///< delta_Q, ps
  std::vector<int> uses;                           ///< n_e; read for more than one window only
};

struct Program {
  const TierRates* rates = nullptr;
  std::array<double, kTiers> capacity{};  ///< Cap_t, bytes
  double expert_bytes = 0;                ///< S
  int windows = 1;                        ///< W
  double moved = 0;                       ///< U^max W S
};

/// A lower bound of the program's optimum, ps (0 if the solver gives up). `resources[l]` is set for each layer whose
/// D_l exceeds its least.
[[nodiscard]] double solve_program(const Program& program, const std::vector<ProgramLayer>& layers,
                                   std::vector<BoundResource>& resources);

}  // namespace sojourn
