// legal() verdict by verdict, where migrations read from, and how slots live and die.
#include "residency/residency.h"

#include "../theory/kit.h"

using namespace kit;

namespace {

/// Three chiplets in a line: SRAM of 100 B and HBM of 1000 B on each (sets 0-2, 3-5), experts of 40 B.
struct Fixture {
  Package p;
  Residency r;
  ResidencyLimits limits;
  Fixture() : p(make()), r(p, 1, 3, 40, {}) {
    limits.replicas_max = 2;
    limits.budget = 5 * 40;
    limits.updates_max = 1;
    limits.age_min = 4;
    for (int e = 0; e < 3; ++e) REQUIRE(r.place(0, e, {Tier::hbm, e, 3 + e}));
  }
  static Package make() {
    Builder b(3);
    b.both(0, 1, kGB, 5'000);
    b.both(1, 2, kGB, 5'000);
    for (int c = 0; c < 3; ++c) b.banks(Tier::sram, c, 1, 100, 2 * kGB);
    for (int c = 0; c < 3; ++c) b.banks(Tier::hbm, c, 1, 1'000, kGB);
    return b.build();
  }
  [[nodiscard]] int first(int e) const { return r.replicas(0, e).front(); }
  [[nodiscard]] Verdict ask(const Action& a, int window = 10, int started = 0, const LinkUse& use = {}) const {
    return legal(a, r, limits, window, started, use);
  }
  int copy(int expert, const Location& to, int window = 1) {
    const int id = r.begin({ActionKind::promote, 0, expert, -1, to});
    r.publish(id, -1, window);
    return id;
  }
};

const Location kSram0{Tier::sram, 0, 0}, kSram1{Tier::sram, 1, 1}, kSram2{Tier::sram, 2, 2}, kHbm0{Tier::hbm, 0, 3},
    kHbm1{Tier::hbm, 1, 4};

}  // namespace

TEST_CASE("legal: what is allowed") {
  Fixture f;
  CHECK(f.ask({}) == Verdict::ok);
  CHECK(f.ask({ActionKind::retain, 0, 0, f.first(0), {}}) == Verdict::ok);
  CHECK(f.ask({ActionKind::promote, 0, 0, -1, kSram1}) == Verdict::ok);
  CHECK(f.ask({ActionKind::promote, 0, 0, f.first(0), kSram0}) == Verdict::ok);
  CHECK(f.ask({ActionKind::relocate, 0, 0, f.first(0), kHbm1}) == Verdict::ok);
  const int copy = f.copy(0, kSram0);
  CHECK(f.ask({ActionKind::demote, 0, 0, copy, kHbm1}) == Verdict::ok);
  CHECK(f.ask({ActionKind::evict, 0, 0, copy, {}}) == Verdict::ok);
}

TEST_CASE("legal: bad references and locations") {
  Fixture f;
  CHECK(f.ask({ActionKind::promote, 1, 0, -1, kSram0}) == Verdict::bad_reference);
  CHECK(f.ask({ActionKind::promote, 0, 3, -1, kSram0}) == Verdict::bad_reference);
  CHECK(f.ask({ActionKind::promote, 0, -1, -1, kSram0}) == Verdict::bad_reference);
  CHECK(f.ask({ActionKind::promote, 0, 0, f.first(1), kSram0}) == Verdict::bad_reference);  // another expert's
  CHECK(f.ask({ActionKind::promote, 0, 0, 999, kSram0}) == Verdict::bad_reference);
  CHECK(f.ask({ActionKind::evict, 0, 0, -1, {}}) == Verdict::bad_reference);
  CHECK(f.ask({ActionKind::demote, 0, 0, -1, kHbm1}) == Verdict::bad_reference);
  CHECK(f.ask({ActionKind::retain, 0, 0, -1, {}}) == Verdict::bad_reference);
  CHECK(f.ask({ActionKind::promote, 0, 0, -1, {Tier::sram, 3, 0}}) == Verdict::bad_location);
  CHECK(f.ask({ActionKind::promote, 0, 0, -1, {Tier::sram, 0, 1}}) == Verdict::bad_location);  // c1's bank
  CHECK(f.ask({ActionKind::promote, 0, 0, -1, {Tier::sram, 0, 3}}) == Verdict::bad_location);  // an HBM bank
  CHECK(f.ask({ActionKind::promote, 0, 0, -1, {Tier::dram, 0, 0}}) == Verdict::bad_location);
  CHECK(f.ask({ActionKind::promote, 0, 0, -1, kHbm0}) == Verdict::same_location);
}

TEST_CASE("legal: directions") {
  Fixture f;
  CHECK(f.ask({ActionKind::promote, 0, 0, f.first(0), kHbm1}) == Verdict::wrong_direction);
  CHECK(f.ask({ActionKind::demote, 0, 0, f.first(0), kSram0}) == Verdict::wrong_direction);
  CHECK(f.ask({ActionKind::demote, 0, 0, f.first(0), kHbm1}) == Verdict::wrong_direction);
  CHECK(f.ask({ActionKind::relocate, 0, 0, f.first(0), kSram1}) == Verdict::wrong_direction);
}

TEST_CASE("legal: (28) replica counts, (29) budget, (30) capacity") {
  Fixture f;
  CHECK(f.ask({ActionKind::evict, 0, 0, f.first(0), {}}) == Verdict::last_replica);
  f.copy(0, kSram0);
  CHECK(f.ask({ActionKind::promote, 0, 0, -1, kSram1}) == Verdict::replicas_max);
  f.copy(1, kSram0);
  CHECK(f.r.budget_bytes() == 200);
  CHECK(f.ask({ActionKind::promote, 0, 2, -1, kSram2}) == Verdict::budget);
  f.limits.budget = 240;
  CHECK(f.ask({ActionKind::promote, 0, 2, -1, kSram2}) == Verdict::ok);
  CHECK(f.ask({ActionKind::promote, 0, 2, -1, kSram0}) == Verdict::capacity);  // two of 40 B in 100 B
  CHECK(f.ask({ActionKind::promote, 0, 2, f.first(2), kSram0}) == Verdict::capacity);
  f.limits.budget = 200;
  CHECK(f.ask({ActionKind::promote, 0, 2, f.first(2), kSram2}) == Verdict::ok);  // a move needs no budget
}

TEST_CASE("legal: age, updates a window, a migration in flight") {
  Fixture f;
  const int copy = f.copy(0, kSram0, 8);
  CHECK(f.ask({ActionKind::evict, 0, 0, copy, {}}, 11) == Verdict::too_young);
  CHECK(f.ask({ActionKind::demote, 0, 0, copy, kHbm1}, 11) == Verdict::too_young);
  CHECK(f.ask({ActionKind::evict, 0, 0, copy, {}}, 12) == Verdict::ok);
  CHECK(f.ask({ActionKind::retain, 0, 0, copy, {}}, 11) == Verdict::ok);
  CHECK(f.ask({ActionKind::evict, 0, 0, copy, {}}, 12, 1) == Verdict::updates_max);
  CHECK(f.ask({ActionKind::evict, 0, 1, f.first(1), {}}, 0) == Verdict::last_replica);  // placed ones have no age
  f.limits.budget = 240;
  f.r.begin({ActionKind::promote, 0, 1, -1, kSram1});
  CHECK(f.ask({ActionKind::promote, 0, 1, f.first(1), kSram1}) == Verdict::pending);
  CHECK(f.ask({ActionKind::promote, 0, 2, -1, kSram2}) == Verdict::ok);  // another expert's business
}

TEST_CASE("legal: (40) foreground, granted and own traffic of every link on the path against eta") {
  Fixture f;
  std::vector<double> fg(f.p.links.size(), 0.0), mig(f.p.links.size(), 0.0);
  const Action a{ActionKind::relocate, 0, 0, f.first(0), {Tier::hbm, 2, 5}};  // links 0 and 2; 40 B = 40000 ps
  const auto ask = [&] { return f.ask(a, 10, 0, {fg, mig, 100'000}); };
  CHECK(ask() == Verdict::ok);
  fg[2] = 0.44;
  CHECK(ask() == Verdict::ok);
  fg[2] = 0.46;
  CHECK(ask() == Verdict::link_busy);
  fg[2] = 0.3;
  mig[2] = 0.2;
  CHECK(ask() == Verdict::link_busy);
  mig[2] = 0;
  fg[1] = 1;  // the way back is not used
  CHECK(ask() == Verdict::ok);
  CHECK(f.ask(a, 10, 0, {fg, mig, 0}) == Verdict::ok);  // no window yet
}

TEST_CASE("legal: banks without a route between them") {
  Builder b(2);
  b.banks(Tier::sram, 0, 1, 100, kGB);
  b.banks(Tier::sram, 1, 1, 100, kGB);
  const Package p = b.build();
  Residency r(p, 1, 1, 40, {});
  REQUIRE(r.place(0, 0, kSram0));
  CHECK(legal({ActionKind::relocate, 0, 0, r.replicas(0, 0)[0], kSram1}, r, {4, 100, 1, 4, 0.85}, 1, 0, {}) ==
        Verdict::no_path);
}

TEST_CASE("migration_source: the moved replica, or for a copy the fastest tier and then the shortest path") {
  Fixture f;
  f.limits.replicas_max = 4;
  CHECK(migration_source({ActionKind::promote, 0, 0, f.first(0), kSram0}, f.r) == f.first(0));
  const int at_c1 = f.copy(0, {Tier::hbm, 1, 4});
  CHECK(migration_source({ActionKind::promote, 0, 0, -1, kSram2}, f.r) == at_c1);
  CHECK(migration_source({ActionKind::promote, 0, 0, -1, kSram0}, f.r) == f.first(0));
  const int near = f.copy(0, kSram0);
  CHECK(migration_source({ActionKind::promote, 0, 0, -1, kSram2}, f.r) == near);
  CHECK(migration_path(f.p, kSram0, kSram2).size() == 2);
  CHECK(migration_path(f.p, kHbm0, kSram0).empty());
}

TEST_CASE("a draining replica keeps its bytes and its slot until its last group leaves; then the slot is used again") {
  Fixture f;
  const int copy = f.copy(0, kSram0);
  f.r.acquire(copy, 5);
  f.r.acquire(copy, 6);
  CHECK(f.r.replica(copy).last_used_window == 6);
  f.r.retire(copy);
  CHECK(f.r.replica(copy).state == ReplicaState::draining);
  CHECK(f.r.used(0) == 40);
  CHECK(f.r.replicas(0, 0).size() == 1);
  CHECK(f.r.budget_bytes() == 120);    // no longer a copy the directory offers
  CHECK(f.r.resident_bytes() == 160);  // but still held
  f.r.release(copy);
  CHECK(f.r.replica(copy).state == ReplicaState::draining);
  f.r.release(copy);
  CHECK(f.r.replica(copy).state == ReplicaState::free);
  CHECK(f.r.used(0) == 0);
  const int slots = f.r.slot_count();
  const int next = f.r.begin({ActionKind::promote, 0, 2, -1, kSram2});
  CHECK(next == copy);
  CHECK(f.r.slot_count() == slots);
  CHECK(f.r.replica(next).in_flight == 0);
  CHECK(f.r.replica(next).expert == 2);
  CHECK(f.r.directory_bytes() == 64 * 4);
}

TEST_CASE("publication: a pending replica is invisible, its bytes and budget count, versions grow") {
  Fixture f;
  const std::uint32_t version = f.r.version();
  const int old = f.first(0), moved = f.r.begin({ActionKind::promote, 0, 0, old, kSram0});
  CHECK(f.r.replicas(0, 0).size() == 1);
  CHECK(f.first(0) == old);
  CHECK(f.r.has_pending(0, 0));
  CHECK(f.r.migrations_in_flight() == 1);
  CHECK(f.r.used(0) == 40);
  CHECK(f.r.budget_bytes() == 120);  // a move counts once
  CHECK(f.r.version() == version);
  f.r.acquire(old, 3);
  f.r.publish(moved, old, 3);
  CHECK(f.first(0) == moved);
  CHECK(f.r.replica(moved).version > version);
  CHECK(f.r.replica(moved).born_window == 3);
  CHECK(f.r.replica(old).state == ReplicaState::draining);
  CHECK_FALSE(f.r.has_pending(0, 0));
  f.r.release(old);
  CHECK(f.r.used(3) == 0);
  const int copy = f.r.begin({ActionKind::promote, 0, 1, -1, kSram1});
  CHECK(f.r.budget_bytes() == 160);
  f.r.publish(copy, -1, 4);
  CHECK(f.r.budget_bytes() == 160);
}

TEST_CASE("place: refuses what does not fit and what is there already; stripes over the banks of a set") {
  Builder b(1);
  b.banks(Tier::sram, 0, 3, 30, kGB);
  const Package p = b.build();
  Residency r(p, 1, 3, 40, {4});  // 14 B a bank each, 2 B a bank fixed
  CHECK(r.used(0) == 6);
  CHECK(r.place(0, 0, kSram0));
  CHECK(r.used(0) == 6 + 42);
  CHECK_FALSE(r.place(0, 0, kSram0));
  CHECK(r.place(0, 1, kSram0));
  CHECK_FALSE(r.fits(0));
  CHECK_FALSE(r.place(0, 2, kSram0));
  CHECK(r.free_bytes(0) == 0);
}
