// The residency substrate: versioned directory, capacity ledger, pending regions and the one legality rule
// (HCRMap 4.3, 6.3, 6.8; equations (1), (2), (28)-(30), (40)).
//
// Ledger: a replica of B bytes (S, or its slices' share of it) in a bank set of n banks takes ceil(B/n) bytes of each;
// a bank holds live, draining and pending replicas and the model's fixed reservation, and never more than its usable
// bytes (capacity - A - M).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sojourn/policy.h"
#include "sojourn/residency.h"

namespace sojourn {

/// Why an action may not be taken. Everything but `ok` leaves the state untouched.
enum class Verdict : std::uint8_t {
  ok,
  bad_reference,    ///< no such layer, expert or live replica of it
  bad_location,     ///< bank set not visible from the chiplet, or of another tier
  same_location,    ///< a live or pending replica of the expert is there already
  wrong_direction,  ///< promote to a farther tier, demote to a nearer one
  last_replica,     ///< (28) lower bound: the others do not hold every slice exactly once
  replicas_max,     ///< (28) upper bound
  budget,           ///< (29)
  capacity,         ///< (30)
  too_young,        ///< age(r) < A^min
  updates_max,      ///< U^max
  pending,          ///< the expert has a migration in flight
  no_path,          ///< no route between the banks
  link_busy         ///< (40): deferred, not refused for good
};
[[nodiscard]] const char* verdict_name(Verdict v);

class Residency final : public DirectoryView {
 public:
  /// fixed[bank set]: bytes held by the model's non-routed weights.
  Residency(const Package& package, int layers, int experts, Bytes expert_bytes, std::vector<Bytes> fixed);

  [[nodiscard]] int layers() const override { return layers_; }
  [[nodiscard]] int experts() const override { return experts_; }
  [[nodiscard]] std::span<const int> replicas(int layer, int expert) const override {
    return live_[static_cast<std::size_t>(layer) * static_cast<std::size_t>(experts_) +
                 static_cast<std::size_t>(expert)];
  }
  [[nodiscard]] const Replica& replica(int id) const override { return slots_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] std::uint32_t version() const override { return version_; }
  [[nodiscard]] Bytes used(int bank_set) const override;
  [[nodiscard]] Bytes free_bytes(int bank_set) const override;
  [[nodiscard]] Bytes resident_bytes() const override { return held_bytes_; }
  [[nodiscard]] Bytes expert_bytes() const override { return expert_bytes_; }
  [[nodiscard]] bool has_pending(int layer, int expert) const override;
  [[nodiscard]] int migrations_in_flight() const override { return pending_; }

  [[nodiscard]] const Package& package() const { return package_; }
  [[nodiscard]] int live_count() const { return live_count_; }
  [[nodiscard]] int slot_count() const { return static_cast<int>(slots_.size()); }
  /// Bytes counted against B_res of (2): live copies and copies on their way (a move counts once).
  [[nodiscard]] Bytes budget_bytes() const { return live_bytes_ + pending_copy_bytes_; }
  [[nodiscard]] Bytes live_bytes() const { return live_bytes_; }
  /// (1): would one more replica with this slice fit the banks of this set?
  [[nodiscard]] bool fits(int bank_set, Slice slice = {}) const;
  /// Copies of the slice of (layer, expert) that has most, and fewest; `without`: a replica not to count, or -1.
  [[nodiscard]] std::pair<int, int> copies(int layer, int expert, Slice of = {}, int without = -1) const;

  /// Publishes a replica without a migration (initial placement). False if it does not fit, is there already or holds
  /// no slice.
  [[nodiscard]] bool place(int layer, int expert, const Location& at, Slice slice = {});
  /// Reserves the pending region of a legal promote, demote or relocate. Returns the pending replica's id.
  int begin(const Action& action);
  /// All chunks have arrived: publishes a new version; `retire` (or -1) drains.
  void publish(int pending, int retire, int window);
  /// Removes a live replica (evict): it drains, and is freed when nothing is in flight.
  void retire(int id);
  void acquire(int id, int window) {
    ++slots_[static_cast<std::size_t>(id)].in_flight;
    slots_[static_cast<std::size_t>(id)].last_used_window = window;
  }
  void release(int id);

  [[nodiscard]] static Bytes entry_bytes() { return 64; }
  [[nodiscard]] Bytes directory_bytes() const { return entry_bytes() * held_; }

 private:
  [[nodiscard]] std::size_t key(int layer, int expert) const {
    return static_cast<std::size_t>(layer) * static_cast<std::size_t>(experts_) + static_cast<std::size_t>(expert);
  }
  [[nodiscard]] Bytes bank_need(int bank_set, Slice slice) const {
    const int n = package_.bank_sets[static_cast<std::size_t>(bank_set)].count;
    return (slice.of(expert_bytes_) + n - 1) / n;
  }
  int allocate(int layer, int expert, const Location& at, Slice slice, ReplicaState state);
  void free_slot(int id);

  const Package& package_;
  int layers_, experts_;
  Bytes expert_bytes_;
  std::vector<Bytes> per_bank_used_;   ///< [bank set] bytes in each of its banks
  std::vector<Bytes> per_bank_limit_;  ///< [bank set] usable bytes of its smallest bank
  std::vector<Replica> slots_;
  std::vector<int> free_slots_;
  std::vector<std::vector<int>> live_;         ///< [layer * experts + expert]
  std::vector<std::uint8_t> pending_of_;       ///< same index: migrations in flight
  std::vector<std::uint8_t> pending_is_copy_;  ///< [slot]
  std::uint32_t version_ = 0;
  int live_count_ = 0, pending_ = 0;
  Bytes live_bytes_ = 0, pending_copy_bytes_ = 0, held_bytes_ = 0;  ///< held: live + pending + draining
  std::int64_t held_ = 0;                                           ///< entries
};

/// Live replicas of (layer, expert) that hold every slice exactly once, in slice order, older ones first; empty when no
/// choice of them does. A copy of every slice is not enough: halves that overlap would serve some slice of a token
/// twice. `without`: a replica not to use, or -1.
[[nodiscard]] std::vector<int> slice_cover(const DirectoryView& directory, int layer, int expert, int without = -1);

/// What (40) needs to know of the window before.
struct LinkUse {
  std::span<const double> foreground;  ///< [link] utilisation of dispatch, gather and memory traffic
  std::span<const double> migrating;   ///< [link] utilisation already granted to migrations of this window
  Ps window_ps = 0;                    ///< Delta_w; 0 = unknown: (40) is not checked
};

/// The one legality rule: action mask, scheduler, property tests and checker all ask here.
[[nodiscard]] Verdict legal(const Action& action, const Residency& state, const ResidencyLimits& limits, int window,
                            int updates_started, const LinkUse& links);

/// The live replica a migration reads from: `action.replica`, or for a new copy the one in the fastest tier, then the
/// shortest path to the target, of those that hold its slices; -1 when none does.
[[nodiscard]] int migration_source(const Action& action, const Residency& state);
/// The links a migration crosses, from the source's banks to the target's.
[[nodiscard]] std::span<const int> migration_path(const Package& package, const Location& from, const Location& to);

}  // namespace sojourn
