// Closed-form cost of a layer, shared by the placements and controllers. It ranks choices; it never becomes a result.
//
//   compute  t_r = tile ceil(N_r / tile) Ops^token / Pi_c          (13) with the whole chiplet as a gang
//            planned with a mean load n: (n + a (tile - 1) / 2) Ops^token / Pi_c, the mean round-up of a tile
//   memory   m_b = sum over active replicas in bank set b of S / BW_b           (10), one read a layer execution
//   links    dispatch and gather N d 2 B each along the route; a replica backed by another chiplet's bank set streams
//            S along the route from that set's owner
//   layer    T = max(max_c sum t_r, max_b m_b, max_u L_u / B_u)                  (8), (11), (15)
//
// Assumptions: compute and memory overlap fully; fixed latencies are neglected (below 1 % of every preset's layer); an
// expert with a mean of d tokens a window is active with probability 1 - exp(-d) unless the profile says otherwise. [R]
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "sojourn/model.h"
#include "sojourn/package.h"
#include "sojourn/policy.h"

namespace sojourn {

/// Constants of one (package, model) pair, seconds and bytes.
class CostModel {
 public:
  CostModel() = default;
  CostModel(const Package& package, const ModelShape& model);

  [[nodiscard]] bool made_for(const Package* p, const ModelShape* m) const { return package_ == p && model_ == m; }
  [[nodiscard]] const Package& package() const { return *package_; }
  [[nodiscard]] int chiplets() const { return chiplets_; }
  [[nodiscard]] int sets() const { return static_cast<int>(stream_s_.size()); }
  [[nodiscard]] int hops(int a, int b) const { return hops_[index(a, b)]; }
  [[nodiscard]] int diameter() const { return diameter_; }
  /// Links from the owner of a bank set to a compute chiplet; empty for a local set.
  [[nodiscard]] std::span<const int> set_route(int set, int c) const {
    return package_->route_chiplets(package_->bank_sets[static_cast<size_t>(set)].owner, c);
  }
  [[nodiscard]] double expert_bytes() const { return expert_bytes_; }
  [[nodiscard]] double token_bytes() const { return token_bytes_; }
  [[nodiscard]] double token_s(int c) const { return token_s_[static_cast<size_t>(c)]; }
  [[nodiscard]] double stream_s(int set) const { return stream_s_[static_cast<size_t>(set)]; }
  [[nodiscard]] double link_rate(int link) const { return link_rate_[static_cast<size_t>(link)]; }
  [[nodiscard]] int tile() const { return tile_; }
  [[nodiscard]] int tiles(int tokens) const { return (tokens + tile_ - 1) / tile_; }
  /// Planned compute time of a replica with `tokens` expected tokens, active with probability `active`.
  [[nodiscard]] double compute_s(int c, double tokens, double active) const {
    return tokens <= 0 ? 0.0 : (tokens + active * 0.5 * (tile_ - 1)) * token_s(c);
  }
  /// Least layer time any placement can reach on these resources: all work spread evenly. `tokens`: token-expert pairs;
  /// `streams`: expected active experts.
  [[nodiscard]] double ideal_s(double tokens, double streams) const;

 private:
  [[nodiscard]] size_t index(int a, int b) const {
    return static_cast<size_t>(a) * static_cast<size_t>(chiplets_) + static_cast<size_t>(b);
  }
  const Package* package_ = nullptr;
  const ModelShape* model_ = nullptr;
  int chiplets_ = 0, diameter_ = 1, tile_ = 16;
  double expert_bytes_ = 0, token_bytes_ = 0, all_tokens_per_s_ = 1, all_streams_per_s_ = 1;
  std::vector<int> hops_;
  std::vector<double> token_s_, stream_s_, link_rate_;
};

/// Loads of one layer.
struct LayerLoad {
  std::vector<double> compute;  ///< [compute chiplet] seconds
  std::vector<double> bank;     ///< [bank set] seconds
  std::vector<double> link;     ///< [link] bytes
  explicit LayerLoad(const CostModel& cost)
      : compute(static_cast<size_t>(cost.chiplets()), 0.0),
        bank(static_cast<size_t>(cost.sets()), 0.0),
        link(cost.package().links.size(), 0.0) {}
  /// Adds a replica's expected work (not its token traffic).
  void add(const CostModel& cost, const Location& at, double tokens, double active);
  [[nodiscard]] double max_compute() const { return *std::max_element(compute.begin(), compute.end()); }
  [[nodiscard]] double max_bank() const { return *std::max_element(bank.begin(), bank.end()); }
  [[nodiscard]] double max_link(const CostModel& cost) const;
  [[nodiscard]] double time(const CostModel& cost) const {
    return std::max({max_compute(), max_bank(), max_link(cost)});
  }
};

inline double activity(double mean_tokens) { return mean_tokens <= 0 ? 0.0 : 1.0 - std::exp(-mean_tokens); }

/// x-bar(w) = alpha x-bar(w-1) + (1 - alpha) x(w).
inline double ewma(double old_mean, double value, double alpha) { return alpha * old_mean + (1.0 - alpha) * value; }

/// Expected tokens and activity of (layer, expert) a planner works with.
struct Demand {
  double tokens = 0, active = 0;
};
[[nodiscard]] Demand demand_of(const Profile& p, int layer, int expert);
[[nodiscard]] Demand demand_of(const PolicyView& v, int layer, int expert);

/// hop_cost[expert * chiplets + c] = sum_s D[s][e] hops(s, c): tokens times hops of one direction.
void hop_table(const CostModel& cost, std::span<const double> source_of_layer, int experts, std::vector<double>& out);

/// Closed-form load of `layer` under a placement, an expert's demand split evenly over its replicas.
[[nodiscard]] LayerLoad layer_load(const CostModel& cost, const Profile& profile, int layer,
                                   std::span<const PlacedReplica> placed);
/// Dispatch and gather bytes times hops of `layer` under the same split.
[[nodiscard]] double hop_bytes(const CostModel& cost, const Profile& profile, int layer,
                               std::span<const PlacedReplica> placed);

}  // namespace sojourn
