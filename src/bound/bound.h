// A proven lower bound on the routed MoE layers of one window on one package, for any placement (whole experts or
// slices, any copies), any migrations and any assignment of the same routing, in either network model:
//
//   minimise  sum_l ( gate_l + D_l + min_a combine_{l,a} )                                    over D, y
//   D_l >= C_l                      cores: whole tiles of every expert, after the first weights of each chiplet
//   D_l >= B_l                      the largest expert's share of one replica, least traffic: the critical group
//   sum_t y_{l,t} >= A_l S          every active expert's weights are read at least once, from somewhere
//   sum_{t in Q} y_{l,t} <= F(Q) (D_l - delta_Q)   for every set Q of tiers: banks and links (tier_rates.h)
//   sum_l y_{l,t} <= Cap_t          layers share the tiers: what is read near must be held near
//
// docs/bound.md has the proof of every line, what is left out, and how close small exact optima come.
//
// The linear program is skipped when the D_l of the first two lines admit a y; else its dual bound is used, which holds
// for any prices the solver ends with. Rounding to picoseconds is allowed for.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "bound/program.h"
#include "bound/resource.h"
#include "bound/tier_rates.h"
#include "sojourn/package.h"
#include "sojourn/residency.h"
#include "sojourn/units.h"

namespace sojourn {

/// What stays the same over the windows of one package.
struct BoundRules {
  Bytes expert_bytes = 0;  ///< S
  Bytes token_bytes = 0;   ///< an activation vector
  Macs macs_per_token = 0, combine_macs_per_token = 0;
  int layers = 1;                ///< MoE layers that share the package
  int replicas_max = 1;          ///< R^max: copies of any one slice
  int updates_max = 0;           ///< U^max a window
  bool events = true;            ///< executed by the event engine; false: the closed form, which has no first tile
  std::vector<Bytes> set_bytes;  ///< [bank set] free for experts
};

/// One layer's routing.
struct BoundDemand {
  const std::vector<int>* demand = nullptr;   ///< N_e
  const std::vector<int>* sources = nullptr;  ///< [chiplet][expert] tokens by source; may be null
  std::vector<int> aggregated;                ///< [chiplet] expert outputs combined there
  Ps gate = 0;
};

struct WindowBound {
  Ps latency = 0;
  std::vector<BoundResource> resources;  ///< [layer]
};

class Bound {
 public:
  Bound(const Package& package, const TierRates& rates, BoundRules rules);
  /// Adds a layer to the window.
  void add(const BoundDemand& layer);
  /// The bound of the layers added since the last call.
  [[nodiscard]] WindowBound window();
  /// The bound of the sum of all windows so far, whose residency only migrations change: not below the sum of theirs.
  [[nodiscard]] WindowBound run() const;

 private:
  struct Layer {
    double fixed = 0;  ///< gate and combine, ps
    double compute = 0, critical = 0, links = 0;
    bool credit = false;     ///< `compute` assumes that no chiplet starts from a scarce tier
    std::vector<char> used;  ///< [expert]
    ProgramLayer program;
    [[nodiscard]] BoundResource resource() const;
  };
  struct First {                 ///< least time from the end of the gate to a chiplet's first weights
    std::vector<double> any;     ///< ascending, every tier
    std::vector<double> common;  ///< ascending, without tiers too small to start every chiplet of every layer
    double scarce = 0;           ///< least from such a tier
    std::int64_t scarce_starts = 0;
  };
  void first_weights();
  void last_weights();
  [[nodiscard]] double start_to_end(double work, const std::vector<double>& first) const;
  [[nodiscard]] double limit(std::size_t subset, double duration) const;
  [[nodiscard]] bool admits() const;
  [[nodiscard]] Program program(int windows) const;
  [[nodiscard]] double credit() const;
  [[nodiscard]] int tiles(int slices, Bytes bytes, bool remote) const;
  [[nodiscard]] Bytes least_tile(bool remote) const;
  [[nodiscard]] Macs least_tile_work(bool remote) const;

  const Package& package_;
  const TierRates& rates_;
  BoundRules rules_;
  double core_rate_ = 0;                            ///< all chiplets, MACs a picosecond
  std::vector<double> rates_of_cores_;              ///< of each chiplet, fastest first
  std::vector<std::int64_t> set_slices_;            ///< [bank set] slices that fit
  std::array<double, kTiers> capacity_{};           ///< bytes
  std::array<std::int64_t, kTiers> slices_{};       ///< that fit
  std::array<double, TierRates::kSubsets> tail_{};  ///< delta_Q, ps
  First first_;
  double hop_ = 0;       ///< least time of one token to another chiplet, ps
  double out_rate_ = 0;  ///< all first links of routes between compute chiplets, bytes a picosecond
  std::vector<Layer> layers_;

  struct Run {
    int windows = 0;
    Ps latency = 0;    ///< sum of the windows' bounds
    double fixed = 0;  ///< sum of gates and combines, less credits
    std::vector<ProgramLayer> layers;
    std::vector<BoundResource> resources;  ///< of the last window
  };
  Run run_;
};

/// The bound of a single layer that has the package to itself.
[[nodiscard]] WindowBound layer_bound(const Package& package, const BoundRules& rules, const BoundDemand& layer);

}  // namespace sojourn
