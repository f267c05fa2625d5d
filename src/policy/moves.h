// Residency actions of policies that know devices but no tiers: where a new copy is stored, and how a move is called.
#pragma once
#include <vector>

#include "sojourn/policy.h"

namespace sojourn {

/// Storage and copies that are still free in a window, and what was promised so far.
class MoveBudget {
 public:
  explicit MoveBudget(const PolicyView& view);
  [[nodiscard]] std::int64_t copies() const { return copies_; }  ///< further copies the byte budget allows
  /// A place for one more expert at chiplet c: `first`, else HBM, DRAM, SRAM (a late copy is not worth SRAM).
  [[nodiscard]] bool find(int c, Tier first, Location& at) const;
  void take(const Location& at, bool copy) {
    ++promised_[static_cast<size_t>(at.bank_set)];
    copies_ -= copy;
  }

 private:
  [[nodiscard]] bool find_tier(int c, Tier t, Location& at) const;
  const PolicyView& view_;
  std::vector<int> promised_;  ///< [bank set]
  std::int64_t copies_ = 0;
};

/// Moving `replica` to `to`: relocate within a tier, promote or demote between tiers.
[[nodiscard]] Action move_of(const Replica& replica, int id, const Location& to);

/// A^min does not forbid to move or drop it.
[[nodiscard]] inline bool old_enough(const PolicyView& view, const Replica& r) {
  return r.initial || view.window - r.born_window >= view.limits->age_min;
}

/// Layer l's share of `extra` copies, shared as evenly as whole copies allow.
[[nodiscard]] inline int share_of(std::int64_t extra, int l, int layers) {
  return static_cast<int>(extra * (l + 1) / layers - extra * l / layers);
}

}  // namespace sojourn
