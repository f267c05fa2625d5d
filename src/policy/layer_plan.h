// What-if arithmetic of one layer, for placements and slow controllers.
//
// A plan holds the replicas and mean demand of every expert of a layer. Tokens of an expert with several replicas are
// poured over them so that their chiplets' queues level out (what the fast mapper does, in the fluid limit); a replica
// that gets nothing is not woken and streams nothing.
//   J = (sum_c q_c^8 + sum_b m_b^8)^(1/8): a smooth max of compute queues q and bank service m [R], so that relieving
//   one of several equally full resources counts for something. T = max is reported by time().
#pragma once
#include <span>
#include <vector>

#include "policy/cost.h"

namespace sojourn {

class LayerPlan {
 public:
  LayerPlan(const CostModel& cost, int experts)
      : load(cost),
        demand(static_cast<size_t>(experts)),
        at(static_cast<size_t>(experts)),
        tokens(static_cast<size_t>(experts)),
        cost_(&cost) {}

  /// Pours everything anew: single replicas first, then the others by descending tokens.
  void rebuild();
  /// J now, and J if expert e had exactly these replicas (others unchanged).
  [[nodiscard]] double smooth() const { return smooth_of(load); }
  [[nodiscard]] double smooth_if(int e, std::span<const Location> replicas) const;
  [[nodiscard]] double time() const { return std::max(load.max_compute(), load.max_bank()); }
  void set_replicas(int e, std::vector<Location> replicas);  ///< and re-pours that expert

  LayerLoad load;
  std::vector<Demand> demand;               ///< [expert]
  std::vector<std::vector<Location>> at;    ///< [expert]
  std::vector<std::vector<double>> tokens;  ///< [expert][replica] poured

 private:
  [[nodiscard]] static double smooth_of(const LayerLoad& load);
  void pour(LayerLoad& into, const Demand& d, std::span<const Location> replicas, std::vector<double>& out) const;
  void change(LayerLoad& into, int e, double sign) const;
  const CostModel* cost_;
  mutable LayerLoad scratch_{load};
  mutable std::vector<double> poured_;
};

/// A copy worth having: expert, where, and J before less J after.
struct CopyChoice {
  int expert = -1;
  Location to;
  double gain = 0;
};
/// The best extra replica of `plan`: of the `experts` busiest experts on the fullest chiplet and bank set, to the
/// `targets` chiplets with the shortest queue, in every tier for which `fits(Location)`. `may_copy(e)` is budget and
/// R^max.
template <class MayCopy, class Fits>
[[nodiscard]] CopyChoice best_copy(const CostModel& cost, const LayerPlan& plan, int experts, int targets,
                                   const MayCopy& may_copy, const Fits& fits) {
  CopyChoice best;
  const double now = plan.smooth();
  const auto fullest = [](const std::vector<double>& v) {
    return static_cast<int>(std::max_element(v.begin(), v.end()) - v.begin());
  };
  const int chiplet = fullest(plan.load.compute), set = fullest(plan.load.bank);
  std::vector<std::pair<double, int>> busy;
  for (size_t e = 0; e < plan.at.size(); ++e) {
    double mine = 0;
    for (size_t i = 0; i < plan.at[e].size(); ++i)
      if (plan.at[e][i].chiplet == chiplet || plan.at[e][i].bank_set == set) mine += plan.tokens[e][i];
    if (mine > 0) busy.emplace_back(-mine, static_cast<int>(e));
  }
  std::sort(busy.begin(), busy.end());
  std::vector<std::pair<double, int>> idle;
  for (int c = 0; c < cost.chiplets(); ++c) idle.emplace_back(plan.load.compute[static_cast<size_t>(c)], c);
  std::sort(idle.begin(), idle.end());
  std::vector<Location> with;
  for (size_t i = 0; i < busy.size() && static_cast<int>(i) < experts; ++i) {
    const int e = busy[i].second;
    if (!may_copy(e)) continue;
    for (size_t j = 0; j < idle.size() && static_cast<int>(j) < targets; ++j)
      for (int t = 0; t < kTiers; ++t)
        for (int s : cost.package().visible(static_cast<Tier>(t), idle[j].second)) {
          const Location to{static_cast<Tier>(t), idle[j].second, s};
          const auto& have = plan.at[static_cast<size_t>(e)];
          if (std::find(have.begin(), have.end(), to) != have.end() || !fits(to)) continue;
          with.assign(have.begin(), have.end());
          with.push_back(to);
          const double gain = now - plan.smooth_if(e, with);
          if (gain > best.gain) best = {e, to, gain};
        }
  }
  return best;
}

}  // namespace sojourn
