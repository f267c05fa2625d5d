// legal(): every constraint of a residency action in one place.
//   (28) 1 <= |R_{l,e}| <= R^max     (29) sum S |R| <= B_res     (30) bank capacity
//   age(r) >= A^min before a replica may be moved or evicted, at most U^max updates a window,
//   (40) U_u^fg + U_u^mig <= eta_u on every link of the path.
#include <algorithm>

#include "residency/residency.h"

namespace sojourn {

const char* verdict_name(Verdict v) {
  static constexpr const char* kNames[] = {
      "ok",     "bad reference", "bad location", "same location", "wrong direction", "last replica", "replicas max",
      "budget", "capacity",      "too young",    "updates max",   "pending",         "no path",      "link busy"};
  return kNames[static_cast<std::size_t>(v)];
}

std::span<const int> migration_path(const Package& package, const Location& from, const Location& to) {
  const int a = package.bank_sets[static_cast<std::size_t>(from.bank_set)].owner;
  const int b = package.bank_sets[static_cast<std::size_t>(to.bank_set)].owner;
  return package.route_chiplets(a, b);
}

int migration_source(const Action& action, const Residency& state) {
  if (action.replica >= 0) return action.replica;
  int best = -1;
  std::size_t best_hops = 0;
  for (int id : state.replicas(action.layer, action.expert)) {
    const Replica& r = state.replica(id);
    if (r.slice.first > action.slice.first || r.slice.end() < action.slice.end()) continue;
    const std::size_t hops = migration_path(state.package(), r.at, action.to).size();
    if (best < 0 || r.at.tier < state.replica(best).at.tier ||
        (r.at.tier == state.replica(best).at.tier && hops < best_hops)) {
      best = id;
      best_hops = hops;
    }
  }
  return best;
}

Verdict legal(const Action& action, const Residency& state, const ResidencyLimits& limits, int window,
              int updates_started, const LinkUse& links) {
  if (action.kind == ActionKind::no_op) return Verdict::ok;
  if (action.layer < 0 || action.layer >= state.layers() || action.expert < 0 || action.expert >= state.experts())
    return Verdict::bad_reference;
  const std::span<const int> live = state.replicas(action.layer, action.expert);
  const bool names_replica = action.replica >= 0;
  if (names_replica && std::find(live.begin(), live.end(), action.replica) == live.end()) return Verdict::bad_reference;
  if (action.kind == ActionKind::retain) return names_replica ? Verdict::ok : Verdict::bad_reference;
  if (!names_replica && action.kind != ActionKind::promote) return Verdict::bad_reference;
  if (updates_started >= limits.updates_max) return Verdict::updates_max;
  if (state.has_pending(action.layer, action.expert)) return Verdict::pending;
  if (names_replica && window - state.replica(action.replica).born_window < limits.age_min &&
      !state.replica(action.replica).initial)
    return Verdict::too_young;
  const Slice slice = names_replica ? state.replica(action.replica).slice : action.slice;
  if (action.kind == ActionKind::evict)
    return slice_cover(state, action.layer, action.expert, action.replica).empty() ? Verdict::last_replica
                                                                                   : Verdict::ok;
  if (!slice.valid()) return Verdict::bad_reference;

  const Package& package = state.package();
  if (action.to.chiplet < 0 || action.to.chiplet >= package.compute_count) return Verdict::bad_location;
  const std::span<const int> visible = package.visible(action.to.tier, action.to.chiplet);
  if (std::find(visible.begin(), visible.end(), action.to.bank_set) == visible.end()) return Verdict::bad_location;
  for (int id : live)
    if (state.replica(id).at == action.to && state.replica(id).slice.overlaps(slice)) return Verdict::same_location;
  if (names_replica) {
    const Tier from = state.replica(action.replica).at.tier;
    if (action.kind == ActionKind::promote && action.to.tier >= from) return Verdict::wrong_direction;
    if (action.kind == ActionKind::demote && action.to.tier <= from) return Verdict::wrong_direction;
    if (action.kind == ActionKind::relocate && action.to.tier != from) return Verdict::wrong_direction;
  } else {
    if (state.copies(action.layer, action.expert, slice).first >= limits.replicas_max) return Verdict::replicas_max;
    if (state.budget_bytes() + slice.of(state.expert_bytes()) > limits.budget) return Verdict::budget;
  }
  if (!state.fits(action.to.bank_set, slice)) return Verdict::capacity;

  const int source = migration_source(action, state);
  if (source < 0) return Verdict::bad_reference;  // no one replica holds all slices asked for
  const Location& from = state.replica(source).at;
  const std::span<const int> path = migration_path(package, from, action.to);
  if (path.empty() && package.bank_sets[static_cast<std::size_t>(from.bank_set)].owner !=
                          package.bank_sets[static_cast<std::size_t>(action.to.bank_set)].owner)
    return Verdict::no_path;
  if (links.window_ps > 0 && !links.foreground.empty()) {
    for (int u : path) {
      const auto i = static_cast<std::size_t>(u);
      const double mine = static_cast<double>(package.links[i].bandwidth.time(slice.of(state.expert_bytes()))) /
                          static_cast<double>(links.window_ps);
      const double others = links.migrating.empty() ? 0.0 : links.migrating[i];
      if (links.foreground[i] + others + mine > limits.link_threshold) return Verdict::link_busy;
    }
  }
  return Verdict::ok;
}

}  // namespace sojourn
