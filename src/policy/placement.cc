// Placement builder and tier filling; rules and sources in placement.h.
#include "policy/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace sojourn {

PlacementBuilder::PlacementBuilder(const PlacementTask& task, const CostModel& cost, bool hbm)
    : task_(task), cost_(cost), hbm_(hbm) {
  const Bytes size = std::max<Bytes>(1, task.model->expert_bytes());
  for (size_t s = 0; s < task.package->bank_sets.size(); ++s) {
    const Bytes n = std::max(1, task.package->bank_sets[s].count);
    const Bytes usable = std::max<Bytes>(0, s < task.usable.size() ? task.usable[s] : 0);
    room_.push_back(static_cast<int>(std::min<Bytes>((usable / n) / ((size + n - 1) / n), 1 << 30)));
  }
  in_layer_.assign(static_cast<size_t>(task.profile->layers) * room_.size(), 0);
  by_expert_.resize(static_cast<size_t>(task.profile->layers) * static_cast<size_t>(task.profile->experts));
}

int PlacementBuilder::tier_room(Tier t) const {
  if (masked(t)) return 0;
  std::int64_t sum = 0;
  for (size_t s = 0; s < room_.size(); ++s)
    if (task_.package->bank_sets[s].tier == t) sum += room_[s];
  return static_cast<int>(std::min<std::int64_t>(sum, 1 << 30));
}

std::int64_t PlacementBuilder::copies_left() const {
  const Bytes size = std::max<Bytes>(1, task_.model->expert_bytes());
  const auto experts = static_cast<std::int64_t>(by_expert_.size());
  // Experts not placed yet will need their first copy, so they count already.
  const std::int64_t extra = static_cast<std::int64_t>(placed_.size()) - distinct_;
  return std::max<std::int64_t>(0, task_.limits.budget / size - experts - extra);
}

bool PlacementBuilder::may_copy(int layer, int expert) const {
  return static_cast<int>(by_expert_[key(layer, expert)].size()) < task_.limits.replicas_max && copies_left() > 0;
}

bool PlacementBuilder::put(int layer, int expert, const Location& at) {
  auto& mine = by_expert_[key(layer, expert)];
  if (room(at.bank_set) <= 0) return false;
  if (!mine.empty() && !may_copy(layer, expert)) return false;
  for (int i : mine)
    if (placed_[static_cast<size_t>(i)].at == at) return false;
  --room_[static_cast<size_t>(at.bank_set)];
  ++in_layer_[static_cast<size_t>(layer) * room_.size() + static_cast<size_t>(at.bank_set)];
  distinct_ += mine.empty();
  mine.push_back(static_cast<int>(placed_.size()));
  placed_.push_back({layer, expert, at});
  return true;
}

bool PlacementBuilder::find_tier(Tier t, int layer, int c, bool balance, Location& at) const {
  int best = -1;
  const auto held = [&](int s) {
    return in_layer_[static_cast<size_t>(layer) * room_.size() + static_cast<size_t>(s)];
  };
  for (int s : task_.package->visible(t, c)) {
    if (room(s) <= 0) continue;
    if (best < 0 || (balance && held(s) < held(best))) best = s;
    if (!balance) break;
  }
  if (best < 0) return false;
  at = {t, c, best};
  return true;
}

bool PlacementBuilder::find_at(int layer, int c, bool balance, Location& at) const {
  for (int t = 0; t < kTiers; ++t)
    if (!masked(static_cast<Tier>(t)) && find_tier(static_cast<Tier>(t), layer, c, balance, at)) return true;
  return false;
}

bool PlacementBuilder::find_anywhere(int layer, int c, bool balance, Location& at) const {
  if (find_at(layer, c, balance, at)) return true;
  std::vector<int> order(static_cast<size_t>(cost_.chiplets()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return cost_.hops(c, a) < cost_.hops(c, b); });
  for (int other : order)
    if (find_at(layer, other, balance, at)) return true;
  if (!hbm_)
    for (int other : order)
      if (find_tier(Tier::hbm, layer, other, balance, at)) return true;
  return false;
}

std::vector<int> demand_ranks(const Profile& profile) {
  std::vector<int> ranks(static_cast<size_t>(profile.layers) * static_cast<size_t>(profile.experts));
  std::vector<int> order(static_cast<size_t>(profile.experts));
  for (int l = 0; l < profile.layers; ++l) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return profile.d(l, a) > profile.d(l, b); });
    for (size_t i = 0; i < order.size(); ++i)
      ranks[static_cast<size_t>(l) * static_cast<size_t>(profile.experts) + static_cast<size_t>(order[i])] =
          static_cast<int>(i);
  }
  return ranks;
}

bool fill_tiers(PlacementBuilder& builder, std::vector<FillItem> items, bool balance) {
  const Profile& profile = *builder.task().profile;
  // Rank within the layer by tokens of this copy, so that a copy competes with what it really carries.
  std::stable_sort(items.begin(), items.end(), [](const FillItem& a, const FillItem& b) {
    if (a.layer != b.layer) return a.layer < b.layer;
    if (a.tokens != b.tokens) return a.tokens > b.tokens;
    if (a.expert != b.expert) return a.expert < b.expert;
    if (a.copy != b.copy) return b.copy;
    return a.chiplet < b.chiplet;
  });
  struct Key {
    int density, rank;
    size_t item;
  };
  std::vector<Key> keys;
  int rank = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    rank = i > 0 && items[i].layer == items[i - 1].layer ? rank + 1 : 0;
    keys.push_back({static_cast<int>(std::lround(items[i].active * 64)), rank, i});
  }
  std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return a.density != b.density ? a.density > b.density : a.rank < b.rank;
  });
  // Copies must not take the last place of an expert that has none.
  std::int64_t owed = static_cast<std::int64_t>(profile.layers) * profile.experts;
  std::int64_t total = 0;
  for (int s = 0; s < static_cast<int>(builder.task().package->bank_sets.size()); ++s) total += builder.room(s);
  std::vector<std::uint8_t> has(static_cast<size_t>(owed), 0);
  bool complete = true;
  for (const Key& k : keys) {
    const FillItem& it = items[k.item];
    const size_t e =
        static_cast<size_t>(it.layer) * static_cast<size_t>(profile.experts) + static_cast<size_t>(it.expert);
    if (it.copy && (total <= owed - (has[e] ? 0 : 1) || !builder.may_copy(it.layer, it.expert))) continue;
    Location at;
    const bool found = it.copy ? builder.find_at(it.layer, it.chiplet, balance, at)
                               : builder.find_anywhere(it.layer, it.chiplet, balance, at);
    if (!found || !builder.put(it.layer, it.expert, at)) {
      complete = complete && it.copy;
      continue;
    }
    --total;
    if (!has[e]) {
      has[e] = 1;
      --owed;
    }
  }
  return complete;
}

int contiguous_chiplet(int layer, int expert, int experts, int chiplets) {
  const int base = static_cast<int>(static_cast<std::int64_t>(expert) * chiplets / std::max(1, experts));
  return experts % chiplets == 0 ? base : (base + layer) % chiplets;
}

std::string placement_problem(const PlacementTask& task, std::span<const PlacedReplica> out) {
  const Profile& p = *task.profile;
  std::vector<std::uint8_t> has(static_cast<size_t>(p.layers) * static_cast<size_t>(p.experts), 0);
  for (const PlacedReplica& r : out)
    has[static_cast<size_t>(r.layer) * static_cast<size_t>(p.experts) + static_cast<size_t>(r.expert)] = 1;
  const auto missing = std::count(has.begin(), has.end(), std::uint8_t{0});
  if (missing == 0) return {};
  return fmt::format("{} of {} experts ({} B each) fit in no bank set of package '{}'", missing, has.size(),
                     task.model->expert_bytes(), task.package->name);
}

}  // namespace sojourn
