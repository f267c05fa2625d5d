// Layouts before the first window: a builder that can only make legal ones, and the filling of the tiers.
//
// Capacity (1): a replica in a bank set of n banks takes ceil(S/n) of each, so a set with U usable bytes holds
// floor(floor(U/n) / ceil(S/n)) replicas. A tier that cannot hold one expert is thereby masked. Budget (2): copies
// beyond the first are refused when S (replicas + 1) > B_res.
//
// Tier filling [R] (6.5 says only "hot near, warm HBM, cold DRAM"): experts in descending density, which is activity in
// steps of 1/64 and then rank by demand within the layer, so that layers of one package share the near tiers evenly;
// the first tier in the order SRAM, HBM, DRAM with room at the chosen chiplet, then the same at other chiplets, nearest
// first.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "policy/cost.h"
#include "sojourn/policy.h"

namespace sojourn {

/// Tracks capacity and budget while a placement is made.
class PlacementBuilder {
 public:
  /// hbm = false masks the HBM tier (ablation): it is used only when nothing else is left.
  PlacementBuilder(const PlacementTask& task, const CostModel& cost, bool hbm = true);

  [[nodiscard]] int room(int set) const { return room_[static_cast<size_t>(set)]; }  ///< replicas that still fit
  [[nodiscard]] int tier_room(Tier t) const;
  [[nodiscard]] int near_room() const { return tier_room(Tier::sram) + tier_room(Tier::hbm); }
  [[nodiscard]] bool masked(Tier t) const { return t == Tier::hbm && !hbm_; }
  /// A second or later replica may be added: budget (2) and R^max.
  [[nodiscard]] bool may_copy(int layer, int expert) const;
  /// Budget alone: copies still allowed over the whole package.
  [[nodiscard]] std::int64_t copies_left() const;
  /// Puts one replica; false (and nothing changed) when it does not fit or the expert is already there.
  bool put(int layer, int expert, const Location& at);
  /// First location with room at chiplet c in tier order. `balance`: of shared sets the one with the fewest replicas of
  /// this layer, nearest first among equals. False if none.
  [[nodiscard]] bool find_at(int layer, int c, bool balance, Location& at) const;
  /// The same, then other chiplets by distance from c; HBM even if masked as the last resort.
  [[nodiscard]] bool find_anywhere(int layer, int c, bool balance, Location& at) const;
  [[nodiscard]] const std::vector<int>& replicas_of(int layer, int expert) const {
    return by_expert_[key(layer, expert)];
  }
  [[nodiscard]] const std::vector<PlacedReplica>& placed() const { return placed_; }
  [[nodiscard]] const PlacementTask& task() const { return task_; }

 private:
  [[nodiscard]] size_t key(int layer, int expert) const {
    return static_cast<size_t>(layer) * static_cast<size_t>(task_.profile->experts) + static_cast<size_t>(expert);
  }
  [[nodiscard]] bool find_tier(Tier t, int layer, int c, bool balance, Location& at) const;
  const PlacementTask& task_;
  const CostModel& cost_;
  bool hbm_;
  std::int64_t distinct_ = 0;  ///< experts with at least one replica
  std::vector<int> room_;
  std::vector<int> in_layer_;  ///< [layer][set] replicas
  std::vector<PlacedReplica> placed_;
  std::vector<std::vector<int>> by_expert_;  ///< indices into placed_
};

/// An expert (or a copy of it) with its chiplet chosen and its tier not.
struct FillItem {
  int layer = 0, expert = 0, chiplet = 0;
  double active = 0, tokens = 0;  ///< of this copy
  bool copy = false;              ///< may be left out when it does not fit or the budget is used up
};

/// Rank of every expert by demand within its layer, 0 = hottest: [layer][expert].
[[nodiscard]] std::vector<int> demand_ranks(const Profile& profile);

/// Tier filling as described above. False when an expert that is not a copy fits nowhere.
bool fill_tiers(PlacementBuilder& builder, std::vector<FillItem> items, bool balance);

/// The single-copy layout of `static`: ids in contiguous blocks over the chiplets (spread when E < |C|), shifted by one
/// chiplet a layer when E is not a multiple of |C|, so that no chiplet carries the remainder of every layer.
[[nodiscard]] int contiguous_chiplet(int layer, int expert, int experts, int chiplets);

/// Empty when every expert of `task` has a replica in `out`; otherwise a sentence saying what does not fit, for a
/// diagnostic. place() cannot fail: it returns as much as fits.
[[nodiscard]] std::string placement_problem(const PlacementTask& task, std::span<const PlacedReplica> out);

}  // namespace sojourn
