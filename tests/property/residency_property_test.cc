// Random action sequences on the residency substrate, with whole experts and shards: whatever legal() lets through
// keeps (1), (2), (28)-(30), and every slice of every expert lives somewhere.
#include "random_package.h"
#include "residency/residency.h"

using namespace kit;

namespace {

struct Flight {
  int pending, retire, source;
};

/// A run of slices from `first` that ends on the grid of `unit` slices: coarse grids let runs of different replicas
/// meet, so that covers change with what is copied and evicted.
Slice random_slice(int first, int unit, Rng& rng) {
  const int count = unit * (1 + static_cast<int>(rng.below((kSlices - first) / unit)));
  return {static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(count)};
}

/// Lays out an expert in one piece or cut at random; false if a piece found no room.
bool place_expert(Residency& r, int layer, int expert, int unit, Rng& rng) {
  const bool whole = rng.below(3) == 0;
  for (int first = 0; first < kSlices;) {
    const Slice slice = whole ? Slice{} : random_slice(first, unit, rng);
    bool placed = false;
    for (int attempt = 0; !placed && attempt < 50; ++attempt)
      placed = r.place(layer, expert, usable_location(r.package(), rng), slice);
    if (!placed) return false;
    first = slice.end();
  }
  return true;
}

/// Every slice exactly once by some choice of replicas: tried by brute force, from the first slice on.
bool serves(const Residency& r, std::span<const int> ids, int slice) {
  if (slice == kSlices) return true;
  for (int id : ids)
    if (r.replica(id).slice.first == slice && serves(r, ids, r.replica(id).slice.end())) return true;
  return false;
}

}  // namespace

TEST_CASE("residency: no legal sequence breaks capacity, replica counts, the budget or the publication protocol") {
  CHECK(rc::check("random sequences", [] {
    const int layers = pick(1, 3), experts = pick(1, 6), unit = 1 << pick(0, 3);
    const Bytes size = pick(1, 300);
    const Package p = random_package(size * pick(1, 40));
    Rng rng(static_cast<std::uint64_t>(pick(0, 1 << 20)), "residency");
    std::vector<Bytes> fixed;
    for (std::size_t s = 0; s < p.bank_sets.size(); ++s) fixed.push_back(static_cast<Bytes>(rng.below(20)));
    Residency r(p, layers, experts, size, fixed);
    for (int l = 0; l < layers; ++l)
      for (int e = 0; e < experts; ++e)
        if (!place_expert(r, l, e, unit, rng)) return;  // too small a package for this model
    ResidencyLimits limits;
    limits.replicas_max = pick(1, 4);
    limits.budget = size * (layers * experts + pick(0, 12));
    limits.updates_max = 1000;
    limits.age_min = pick(0, 2);
    std::vector<Flight> flights;
    std::vector<int> held;  // replicas with a group in flight
    std::vector<std::pair<int, int>> owner;
    for (int step = 0; step < 200; ++step) {
      const std::uint32_t version = r.version();
      const int window = step / 4;
      const int op = static_cast<int>(rng.below(10));
      const int layer = static_cast<int>(rng.below(layers)), expert = static_cast<int>(rng.below(experts));
      const auto live = r.replicas(layer, expert);
      bool grew = false;
      if (op < 5) {
        Action a;
        a.kind = static_cast<ActionKind>(1 + rng.below(5));
        a.layer = layer;
        a.expert = expert;
        a.replica = rng.below(3) == 0 ? -1 : live[rng.below(live.size())];
        if (rng.below(8) == 0) a.replica = static_cast<int>(rng.below(r.slot_count()));
        a.to = rng.below(4) ? usable_location(p, rng) : random_location(p, rng);
        if (a.kind == ActionKind::promote && rng.below(2)) a.replica = -1;
        if (rng.below(2)) a.slice = random_slice(unit * static_cast<int>(rng.below(kSlices / unit)), unit, rng);
        if (legal(a, r, limits, window, 0, {}) == Verdict::ok && a.kind != ActionKind::retain) {
          if (a.kind == ActionKind::evict) {
            r.retire(a.replica);
            grew = true;
          } else {
            const int source = migration_source(a, r);
            RC_ASSERT(r.replica(source).state == ReplicaState::live);
            const int pending = r.begin(a);
            RC_ASSERT(r.replica(pending).state == ReplicaState::pending);
            const Slice from = r.replica(source).slice, to = r.replica(pending).slice;
            RC_ASSERT(from.first <= to.first);
            RC_ASSERT(from.end() >= to.end());
            RC_ASSERT(to == (a.replica < 0 ? a.slice : from));
            r.acquire(source, window);
            flights.push_back({pending, a.replica, source});
          }
        }
      } else if (op < 7 && !flights.empty()) {
        const std::size_t i = rng.below(flights.size());
        const Flight f = flights[i];
        flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(i));
        r.publish(f.pending, f.retire, window);
        r.release(f.source);
        RC_ASSERT(r.replica(f.pending).version > version);
        grew = true;
      } else if (op < 9) {
        held.push_back(live[rng.below(live.size())]);
        owner.emplace_back(layer, expert);
        r.acquire(held.back(), window);
      } else if (!held.empty()) {
        const std::size_t i = rng.below(held.size());
        r.release(held[i]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
        owner.erase(owner.begin() + static_cast<std::ptrdiff_t>(i));
      }
      RC_ASSERT((grew ? r.version() > version : r.version() == version));

      // The ledger, recomputed from the slots.
      std::vector<Bytes> used;
      for (std::size_t s = 0; s < fixed.size(); ++s)
        used.push_back((fixed[s] + p.bank_sets[s].count - 1) / p.bank_sets[s].count);
      int live_count = 0;
      Bytes held_bytes = 0, live_bytes = 0;
      for (int id = 0; id < r.slot_count(); ++id) {
        const Replica& replica = r.replica(id);
        if (replica.state == ReplicaState::free) continue;
        const Bytes bytes = size * replica.slice.end() / kSlices - size * replica.slice.first / kSlices;
        held_bytes += bytes;
        if (replica.state == ReplicaState::live) {
          ++live_count;
          live_bytes += bytes;
        }
        const int n = p.bank_sets[replica.at.bank_set].count;
        used[replica.at.bank_set] += (bytes + n - 1) / n;
      }
      for (std::size_t s = 0; s < used.size(); ++s) {
        const BankSet& set = p.bank_sets[s];
        RC_ASSERT(r.used(static_cast<int>(s)) == used[s] * set.count);
        for (int b = 0; b < set.count; ++b)
          RC_ASSERT(used[s] <= std::max(p.banks[set.first_bank + b].usable(), (fixed[s] + set.count - 1) / set.count));
      }
      RC_ASSERT(r.resident_bytes() == held_bytes);
      RC_ASSERT(r.live_bytes() == live_bytes);
      RC_ASSERT(r.live_count() == live_count);
      RC_ASSERT(r.budget_bytes() <= limits.budget);
      RC_ASSERT(r.migrations_in_flight() == static_cast<int>(flights.size()));
      for (int l = 0; l < layers; ++l)
        for (int e = 0; e < experts; ++e) {
          const auto ids = r.replicas(l, e);
          RC_ASSERT(serves(r, ids, 0));
          std::vector<int> copies(kSlices);
          for (std::size_t i = 0; i < ids.size(); ++i) {
            const Replica& replica = r.replica(ids[i]);
            RC_ASSERT(replica.state == ReplicaState::live);  // never a pending one
            RC_ASSERT(replica.layer == l);
            RC_ASSERT(replica.expert == e);
            for (std::size_t j = 0; j < i; ++j)
              RC_ASSERT(!(r.replica(ids[j]).at == replica.at && r.replica(ids[j]).slice.overlaps(replica.slice)));
            for (int s = replica.slice.first; s < replica.slice.end(); ++s) ++copies[s];
          }
          const auto [least, most] = std::minmax_element(copies.begin(), copies.end());
          RC_ASSERT(*least >= 1);
          RC_ASSERT(*most <= limits.replicas_max);
          RC_ASSERT(r.copies(l, e) == std::pair(*most, *least));
          int next = 0;
          for (int id : slice_cover(r, l, e)) {
            RC_ASSERT(r.replica(id).slice.first == next);
            next = r.replica(id).slice.end();
          }
          RC_ASSERT(next == kSlices);
        }
      for (std::size_t i = 0; i < held.size(); ++i) {
        const Replica& replica = r.replica(held[i]);
        RC_ASSERT(replica.state == ReplicaState::live || replica.state == ReplicaState::draining);
        RC_ASSERT(replica.layer == owner[i].first);
        RC_ASSERT(replica.expert == owner[i].second);
      }
    }
  }));
}
