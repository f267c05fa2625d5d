// Moves and their storage; rules in moves.h.
#include "policy/moves.h"

#include <algorithm>

namespace sojourn {

MoveBudget::MoveBudget(const PolicyView& view) : view_(view), promised_(view.package->bank_sets.size(), 0) {
  const Bytes size = std::max<Bytes>(1, view.directory->expert_bytes());
  copies_ = std::max<std::int64_t>(0, view.limits->budget / size - view.directory->resident_bytes() / size);
}

bool MoveBudget::find(int c, Tier first, Location& at) const {
  for (const Tier t : {first, Tier::hbm, Tier::dram, Tier::sram})
    if (find_tier(c, t, at)) return true;
  return false;
}

bool MoveBudget::find_tier(int c, Tier t, Location& at) const {
  for (const int s : view_.package->visible(t, c)) {
    const Bytes n = std::max(1, view_.package->bank_sets[static_cast<size_t>(s)].count);
    const Bytes need = (view_.directory->expert_bytes() + n - 1) / n * n;
    if (view_.directory->free_bytes(s) < need * (promised_[static_cast<size_t>(s)] + 1)) continue;
    at = {t, c, s};
    return true;
  }
  return false;
}

Action move_of(const Replica& replica, int id, const Location& to) {
  const ActionKind kind = to.tier == replica.at.tier  ? ActionKind::relocate
                          : to.tier < replica.at.tier ? ActionKind::promote
                                                      : ActionKind::demote;
  return {kind, replica.layer, replica.expert, id, to};
}

}  // namespace sojourn
