// Directory, ledger and publication protocol; see residency.h.
#include "residency/residency.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace sojourn {

const char* action_name(ActionKind k) {
  static constexpr const char* kNames[] = {"no-op", "promote", "retain", "demote", "evict", "relocate"};
  return kNames[static_cast<std::size_t>(k)];
}

Residency::Residency(const Package& package, int layers, int experts, Bytes expert_bytes, std::vector<Bytes> fixed)
    : package_(package),
      layers_(layers),
      experts_(experts),
      expert_bytes_(expert_bytes),
      live_(static_cast<std::size_t>(layers) * static_cast<std::size_t>(experts)),
      pending_of_(live_.size(), 0) {
  for (std::size_t s = 0; s < package.bank_sets.size(); ++s) {
    const BankSet& set = package.bank_sets[s];
    Bytes limit = package.banks[static_cast<std::size_t>(set.first_bank)].usable();
    for (int b = 1; b < set.count; ++b)
      limit = std::min(limit, package.banks[static_cast<std::size_t>(set.first_bank + b)].usable());
    per_bank_limit_.push_back(limit);
    const Bytes held = s < fixed.size() ? fixed[s] : 0;
    per_bank_used_.push_back((held + set.count - 1) / set.count);
  }
}

Bytes Residency::used(int bank_set) const {
  const auto s = static_cast<std::size_t>(bank_set);
  return per_bank_used_[s] * package_.bank_sets[s].count;
}

Bytes Residency::free_bytes(int bank_set) const {
  const auto s = static_cast<std::size_t>(bank_set);
  return (per_bank_limit_[s] - per_bank_used_[s]) * package_.bank_sets[s].count;
}

bool Residency::fits(int bank_set, Slice slice) const {
  const auto s = static_cast<std::size_t>(bank_set);
  return per_bank_used_[s] + bank_need(bank_set, slice) <= per_bank_limit_[s];
}

std::pair<int, int> Residency::copies(int layer, int expert, Slice of, int without) const {
  std::array<int, kSlices> held{};
  for (int id : replicas(layer, expert)) {
    if (id == without) continue;
    const Slice s = replica(id).slice;
    for (int i = s.first; i < s.end(); ++i) ++held[static_cast<std::size_t>(i)];
  }
  const auto [least, most] = std::minmax_element(held.begin() + of.first, held.begin() + of.end());
  return {*most, *least};
}

std::vector<int> slice_cover(const DirectoryView& directory, int layer, int expert, int without) {
  // next[i]: the oldest replica that starts at slice i and whose end can be followed to the last slice.
  std::array<int, kSlices> next;
  next.fill(-1);
  const std::span<const int> live = directory.replicas(layer, expert);
  for (int i = kSlices - 1; i >= 0; --i)
    for (int id : live) {
      const Slice s = directory.replica(id).slice;
      if (id == without || s.first != i) continue;
      if (s.end() < kSlices && next[static_cast<std::size_t>(s.end())] < 0) continue;
      next[static_cast<std::size_t>(i)] = id;
      break;
    }
  std::vector<int> cover;
  for (int i = 0; i < kSlices && next[static_cast<std::size_t>(i)] >= 0;) {
    cover.push_back(next[static_cast<std::size_t>(i)]);
    i = directory.replica(cover.back()).slice.end();
  }
  return cover;
}

bool Residency::has_pending(int layer, int expert) const { return pending_of_[key(layer, expert)] != 0; }

int Residency::allocate(int layer, int expert, const Location& at, Slice slice, ReplicaState state) {
  int id;
  if (free_slots_.empty()) {
    id = static_cast<int>(slots_.size());
    slots_.emplace_back();
    pending_is_copy_.push_back(0);
  } else {
    id = free_slots_.back();
    free_slots_.pop_back();
  }
  Replica r;
  r.layer = layer;
  r.expert = expert;
  r.at = at;
  r.slice = slice;
  r.state = state;
  slots_[static_cast<std::size_t>(id)] = r;
  per_bank_used_[static_cast<std::size_t>(at.bank_set)] += bank_need(at.bank_set, slice);
  held_bytes_ += slice.of(expert_bytes_);
  ++held_;
  return id;
}

void Residency::free_slot(int id) {
  Replica& r = slots_[static_cast<std::size_t>(id)];
  assert(r.in_flight == 0 && r.state != ReplicaState::free);
  per_bank_used_[static_cast<std::size_t>(r.at.bank_set)] -= bank_need(r.at.bank_set, r.slice);
  held_bytes_ -= r.slice.of(expert_bytes_);
  r.state = ReplicaState::free;
  free_slots_.push_back(id);
  --held_;
}

bool Residency::place(int layer, int expert, const Location& at, Slice slice) {
  if (!slice.valid() || !fits(at.bank_set, slice)) return false;
  for (int id : replicas(layer, expert))
    if (replica(id).at == at && replica(id).slice.overlaps(slice)) return false;
  const int id = allocate(layer, expert, at, slice, ReplicaState::live);
  slots_[static_cast<std::size_t>(id)].version = version_;
  live_[key(layer, expert)].push_back(id);
  ++live_count_;
  live_bytes_ += slice.of(expert_bytes_);
  return true;
}

int Residency::begin(const Action& action) {
  const bool copy = action.replica < 0;
  const Slice slice = copy ? action.slice : replica(action.replica).slice;
  const int id = allocate(action.layer, action.expert, action.to, slice, ReplicaState::pending);
  pending_is_copy_[static_cast<std::size_t>(id)] = copy;
  if (copy) pending_copy_bytes_ += slice.of(expert_bytes_);
  ++pending_;
  ++pending_of_[key(action.layer, action.expert)];
  return id;
}

void Residency::publish(int pending, int retire_id, int window) {
  Replica& r = slots_[static_cast<std::size_t>(pending)];
  assert(r.state == ReplicaState::pending);
  r.state = ReplicaState::live;
  r.version = ++version_;
  r.born_window = window;
  r.initial = false;
  r.last_used_window = window;
  live_[key(r.layer, r.expert)].push_back(pending);
  ++live_count_;
  live_bytes_ += r.slice.of(expert_bytes_);
  if (pending_is_copy_[static_cast<std::size_t>(pending)]) pending_copy_bytes_ -= r.slice.of(expert_bytes_);
  --pending_;
  --pending_of_[key(r.layer, r.expert)];
  if (retire_id >= 0) retire(retire_id);
}

void Residency::retire(int id) {
  Replica& r = slots_[static_cast<std::size_t>(id)];
  assert(r.state == ReplicaState::live);
  std::vector<int>& list = live_[key(r.layer, r.expert)];
  assert(list.size() > 1);
  list.erase(std::find(list.begin(), list.end(), id));
  --live_count_;
  live_bytes_ -= r.slice.of(expert_bytes_);
  r.state = ReplicaState::draining;
  ++version_;
  if (r.in_flight == 0) free_slot(id);
}

void Residency::release(int id) {
  Replica& r = slots_[static_cast<std::size_t>(id)];
  assert(r.in_flight > 0);
  if (--r.in_flight == 0 && r.state == ReplicaState::draining) free_slot(id);
}

}  // namespace sojourn
