// Where the shards of every expert lie: how finely an expert is cut, on which chiplets, in which tiers.
//
// Cutting. w_e = max(d_e / sum d, a_e / sum a), the expert's share of the layer's work or weight reads (whichever is
// larger). An expert gets at least p_e = ceil(w_e C / theta) shards: none carries more than theta times a chiplet's
// mean share. A share below the average 1 / E counts as average here: an expert that is cold now costs next to nothing
// to cut, and may be hot in the next domain. theta is one number a package: infinite = whole experts, 0 = every expert
// over the largest team.
//
// Packing. Experts by descending w_e, each on the team of its level (teams.h) whose members stay least loaded,
//   load_c = max(compute_c, near bank_c),  then fewest token hops. Slices are dealt evenly; what is left over goes to
//   the least loaded members.
//
// Tiers. (1) Near first by density: shards in descending activity (steps of 1/64), then rank of demand, all layers
// rank by rank; SRAM, HBM, then the DRAM set with the least service in this layer. (2) Levelling: while the fullest
// near bank set bounds the layer, one of its shards goes to the DRAM set with the shortest queue, if that and its
// route end up below the near set; first of the experts with the smallest part in DRAM, so that every expert reads
// from all tiers at once and the split holds whichever experts a window activates. This uses the bandwidth of a tier
// that capacity alone would leave idle.
//
// A package that is almost full may hold every expert whole but not the shards: each takes whole bytes of every bank of
// its set, and shards of several sizes leave gaps. Then all experts stay whole (placement.h).
//
// Source: ours. Costs: cost.h.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "policy/cost.h"
#include "policy/teams.h"

namespace sojourn {

struct Shard {
  int layer = 0, expert = 0;
  Location at;
  Slice slice{};
};

/// Mean tokens and activity of every expert a plan is made for: [layer][expert].
struct DemandTable {
  int layers = 0, experts = 0;
  std::vector<Demand> of;
  [[nodiscard]] const Demand& at(int l, int e) const {
    return of[static_cast<size_t>(l) * static_cast<size_t>(experts) + static_cast<size_t>(e)];
  }
};

/// Bytes left in the banks, by the ledger's rule: a shard of B bytes takes ceil(B / n) of each of a set's n banks.
class Room {
 public:
  explicit Room(const PlacementTask& task);
  [[nodiscard]] bool fits(int set, Slice slice) const { return need(set, slice) <= left_[static_cast<size_t>(set)]; }
  void take(int set, Slice slice) { left_[static_cast<size_t>(set)] -= need(set, slice); }
  void give(int set, Slice slice) { left_[static_cast<size_t>(set)] += need(set, slice); }

 private:
  [[nodiscard]] Bytes need(int set, Slice slice) const {
    const Bytes n = banks_[static_cast<size_t>(set)];
    return std::max<Bytes>(1, (slice.of(expert_bytes_) + n - 1) / n);  // never nothing: a full set takes no shard
  }
  Bytes expert_bytes_;
  std::vector<Bytes> left_, banks_;  ///< [bank set]
};

struct SplitRule {
  double theta = 0;
  double level_above = 0.9;  ///< near banks are levelled down to this share of the layer's compute time
};

/// Gives every shard of a layout (chiplets and slices set, ordered by layer) its tier: rule (1), and (2) of the layers
/// that `level_above` asks for (a huge value: none). Where shards fit nowhere, the layout becomes one of whole experts;
/// experts that then fit nowhere are missing.
void place_in_tiers(const PlacementTask& task, const CostModel& cost, const DemandTable& demand, double level_above,
                    std::vector<Shard>& shards);

/// The whole layout; shards are ordered by layer, then expert, then slice. Experts that fit nowhere are missing.
[[nodiscard]] std::vector<Shard> plan_shards(const PlacementTask& task, const CostModel& cost, const Teams& teams,
                                             const DemandTable& demand, const SplitRule& rule);

/// Predicted time of `layer` in a window with these tokens by expert: max over chiplets, bank sets and links.
/// `shards`: those of the layer. `link_s`: time of the fullest link for the layer's mean traffic.
[[nodiscard]] double shard_time(const CostModel& cost, std::span<const Shard> shards, std::span<const double> tokens,
                                double link_s);
/// Time of the fullest link in `layer`: dispatch, gather and remote weight reads at the mean demand of the profile.
[[nodiscard]] double shard_link_time(const CostModel& cost, const Profile& profile, int layer,
                                     std::span<const Shard> shards);

}  // namespace sojourn
