// Shards in the directory: sums over slices, copies of a slice, budget and capacity by bytes, and what legal() says of
// replicas that hold a part of an expert.
#include "../theory/kit.h"
#include "residency/residency.h"

using namespace kit;

namespace {

constexpr Slice cut(int first, int count) {
  return {static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(count)};
}

const Location kSram0{Tier::sram, 0, 0}, kSram1{Tier::sram, 1, 1}, kHbm0{Tier::hbm, 0, 3}, kHbm1{Tier::hbm, 1, 4},
    kHbm2{Tier::hbm, 2, 5};

/// Three chiplets in a line: SRAM of 100 B and HBM of 1000 B on each (sets 0-2, 3-5), experts of 160 B, so 10 B a
/// slice.
struct Fixture {
  Package p;
  Residency r;
  ResidencyLimits limits;
  Fixture() : p(make()), r(p, 1, 2, 160, {}) {
    limits.replicas_max = 2;
    limits.budget = 10'000;
    limits.updates_max = 1;
    limits.age_min = 0;
  }
  static Package make() {
    Builder b(3);
    b.both(0, 1, kGB, 5'000);
    b.both(1, 2, kGB, 5'000);
    for (int c = 0; c < 3; ++c) b.banks(Tier::sram, c, 1, 100, 2 * kGB);
    for (int c = 0; c < 3; ++c) b.banks(Tier::hbm, c, 1, 1'000, kGB);
    return b.build();
  }
  int put(int expert, const Location& at, Slice slice) {
    REQUIRE(r.place(0, expert, at, slice));
    return r.replicas(0, expert).back();
  }
  [[nodiscard]] Verdict ask(const Action& a) const { return legal(a, r, limits, 10, 0, {}); }
  [[nodiscard]] Verdict copy(const Location& to, Slice slice) const {
    return ask({ActionKind::promote, 0, 0, -1, to, slice});
  }
  [[nodiscard]] Verdict evict(int id) const { return ask({ActionKind::evict, 0, 0, id, {}}); }
};

}  // namespace

TEST_CASE("Slice::of: the parts of any partition sum to the whole, and a part is its share rounded down or up") {
  for (const std::int64_t whole : {0LL, 1LL, 15LL, 16LL, 17LL, 1000LL, 176'160'768LL, 4'398'046'511'105LL})
    for (unsigned cuts = 0; cuts < 1u << (kSlices - 1); ++cuts) {  // bit i: a cut after slice i
      std::int64_t sum = 0;
      bool shares = true;
      for (int first = 0, end = 1; end <= kSlices; ++end) {
        if (end < kSlices && !(cuts >> (end - 1) & 1)) continue;
        const std::int64_t part = cut(first, end - first).of(whole), exact = whole * (end - first);
        shares = shares && part * kSlices > exact - kSlices && part * kSlices < exact + kSlices;
        sum += part;
        first = end;
      }
      if (sum == whole && shares) continue;
      CAPTURE(whole);
      CAPTURE(cuts);
      FAIL("parts of " << sum);
    }
  CHECK(Slice{}.whole());
  CHECK(Slice{}.of(1234) == 1234);
  CHECK_FALSE(cut(0, 15).whole());
}

TEST_CASE("slices overlap when they share one, not when they touch") {
  CHECK(cut(0, 4).overlaps(cut(3, 1)));
  CHECK(cut(3, 1).overlaps(cut(0, 4)));
  CHECK(cut(2, 2).overlaps(Slice{}));
  CHECK_FALSE(cut(0, 4).overlaps(cut(4, 4)));
  CHECK_FALSE(cut(4, 4).overlaps(cut(0, 4)));
}

TEST_CASE("copies: the slices with most and with fewest, of all or a part, with or without one replica") {
  Fixture f;
  CHECK(f.r.copies(0, 0) == std::pair(0, 0));
  const int low = f.put(0, kHbm0, cut(0, 10));
  CHECK(f.r.copies(0, 0) == std::pair(1, 0));  // slices 10 to 15 live nowhere
  f.put(0, kHbm1, cut(4, 12));
  CHECK(f.r.copies(0, 0) == std::pair(2, 1));
  CHECK(f.r.copies(0, 0, cut(0, 4)) == std::pair(1, 1));
  CHECK(f.r.copies(0, 0, cut(4, 6)) == std::pair(2, 2));
  CHECK(f.r.copies(0, 0, cut(3, 2)) == std::pair(2, 1));
  CHECK(f.r.copies(0, 0, {}, low) == std::pair(1, 0));
  CHECK(f.r.copies(0, 0, cut(4, 12), low) == std::pair(1, 1));
  CHECK(f.r.copies(0, 1) == std::pair(0, 0));  // another expert's business
}

TEST_CASE("slice_cover: replicas that hold every slice once, the oldest that do; none if all choices overlap") {
  Fixture f;
  const int low = f.put(0, kHbm0, cut(0, 8));
  CHECK(slice_cover(f.r, 0, 0).empty());
  f.put(0, kHbm1, cut(4, 12));
  CHECK(f.r.copies(0, 0).second == 1);
  CHECK(slice_cover(f.r, 0, 0).empty());  // slices 4 to 7 twice or 8 to 15 not at all
  const int high = f.put(0, kHbm2, cut(8, 8));
  CHECK(slice_cover(f.r, 0, 0) == std::vector{low, high});
  CHECK(slice_cover(f.r, 0, 0, high).empty());
  const int other = f.put(0, kHbm2, cut(0, 8));  // beside slices 8 to 15 on chiplet 2
  CHECK(slice_cover(f.r, 0, 0) == std::vector{low, high});
  CHECK(slice_cover(f.r, 0, 0, low) == std::vector{other, high});
}

TEST_CASE("ledger, budget and fits count a shard's bytes, not an expert's") {
  Fixture f;
  CHECK_FALSE(f.r.fits(0));  // 160 B in 100 B
  CHECK(f.r.fits(0, cut(0, 10)));
  CHECK_FALSE(f.r.fits(0, cut(0, 11)));
  f.put(0, kSram0, cut(0, 6));
  f.put(0, kHbm0, cut(6, 10));
  CHECK(f.r.used(0) == 60);
  CHECK(f.r.used(3) == 100);
  CHECK(f.r.fits(0, cut(12, 4)));
  CHECK_FALSE(f.r.fits(0, cut(11, 5)));
  CHECK(f.r.budget_bytes() == 160);
  CHECK(f.r.resident_bytes() == 160);
  const int pending = f.r.begin({ActionKind::promote, 0, 0, -1, kSram1, cut(6, 4)});
  CHECK(f.r.used(1) == 40);
  CHECK(f.r.budget_bytes() == 200);
  CHECK(f.r.live_bytes() == 160);
  f.r.publish(pending, -1, 1);
  CHECK(f.r.budget_bytes() == 200);
  const int moved = f.r.begin({ActionKind::demote, 0, 0, pending, kHbm1, {}});  // a move keeps its replica's slice
  CHECK(f.r.replica(moved).slice == cut(6, 4));
  CHECK(f.r.budget_bytes() == 200);
  CHECK(f.r.resident_bytes() == 240);
  f.r.publish(moved, pending, 2);
  CHECK(f.r.used(1) == 0);
  CHECK(f.r.used(4) == 40);
  CHECK(f.r.resident_bytes() == 200);
}

TEST_CASE("a shard is striped over the banks of its set, each part rounded up") {
  Builder b(1);
  b.banks(Tier::sram, 0, 3, 30, kGB);
  const Package p = b.build();
  Residency r(p, 1, 1, 161, {});
  CHECK(r.place(0, 0, kSram0, cut(0, 4)));  // 40 B: 14 of each bank
  CHECK(r.used(0) == 42);
  CHECK(r.fits(0, cut(4, 4)));
  CHECK_FALSE(r.fits(0, cut(4, 5)));  // 50 B: 17 of the 16 left
}

TEST_CASE("place refuses slices that overlap at one location, empty ones and ones past the end") {
  Fixture f;
  f.put(0, kHbm0, cut(0, 8));
  CHECK_FALSE(f.r.place(0, 0, kHbm0, cut(7, 2)));
  CHECK_FALSE(f.r.place(0, 0, kHbm0, {}));
  CHECK(f.r.place(0, 0, kHbm0, cut(8, 8)));
  CHECK(f.r.place(0, 0, kSram0, cut(0, 8)));  // the same chiplet, another tier
  CHECK_FALSE(f.r.place(0, 0, kHbm1, cut(4, 0)));
  CHECK_FALSE(f.r.place(0, 0, kHbm1, cut(8, 9)));
}

TEST_CASE("legal: a copy of a slice counts against R^max of that slice alone and against the budget by its bytes") {
  Fixture f;
  f.put(0, kHbm0, {});
  f.put(0, kHbm1, cut(0, 8));
  CHECK(f.copy(kHbm2, cut(8, 8)) == Verdict::ok);
  CHECK(f.copy(kHbm2, cut(7, 2)) == Verdict::replicas_max);  // slice 7 has two copies
  CHECK(f.copy(kHbm2, {}) == Verdict::replicas_max);
  f.limits.budget = 240 + 30;
  CHECK(f.copy(kHbm2, cut(8, 3)) == Verdict::ok);
  CHECK(f.copy(kHbm2, cut(8, 4)) == Verdict::budget);
  f.limits.budget = 10'000;
  CHECK(f.copy(kSram1, cut(8, 8)) == Verdict::ok);
  f.put(1, kSram1, cut(0, 3));
  CHECK(f.copy(kSram1, cut(8, 7)) == Verdict::ok);
  CHECK(f.copy(kSram1, cut(8, 8)) == Verdict::capacity);  // 80 B beside 30 B in 100 B
  CHECK(f.copy(kHbm2, cut(8, 0)) == Verdict::bad_reference);
  CHECK(f.copy(kHbm2, cut(8, 9)) == Verdict::bad_reference);
}

TEST_CASE("legal: a second shard at a location is allowed unless it shares a slice with one there") {
  Fixture f;
  f.put(0, kHbm0, cut(0, 8));
  const int high = f.put(0, kHbm1, cut(8, 8));
  CHECK(f.copy(kHbm1, cut(0, 8)) == Verdict::ok);
  CHECK(f.copy(kHbm1, cut(7, 1)) == Verdict::ok);
  CHECK(f.copy(kHbm1, cut(8, 1)) == Verdict::same_location);
  CHECK(f.ask({ActionKind::relocate, 0, 0, high, kHbm0}) == Verdict::ok);
  f.put(0, kHbm0, cut(12, 2));
  CHECK(f.ask({ActionKind::relocate, 0, 0, high, kHbm0}) == Verdict::same_location);
}

TEST_CASE("legal: a shard may be evicted only while the others hold every slice exactly once") {
  Fixture f;
  const int low = f.put(0, kHbm0, cut(0, 8)), high = f.put(0, kHbm0, cut(8, 8));
  CHECK(f.evict(low) == Verdict::last_replica);
  CHECK(f.evict(high) == Verdict::last_replica);
  const int copy = f.put(0, kHbm1, cut(0, 8));
  CHECK(f.evict(low) == Verdict::ok);
  CHECK(f.evict(copy) == Verdict::ok);
  CHECK(f.evict(high) == Verdict::last_replica);
  const int whole = f.put(0, kHbm2, {});
  CHECK(f.evict(high) == Verdict::ok);
  CHECK(f.evict(whole) == Verdict::ok);
}

TEST_CASE("legal: a copy of every slice is not enough to evict, if what is left overlaps") {
  Fixture f;
  f.put(0, kHbm0, cut(0, 8));
  const int high = f.put(0, kHbm0, cut(8, 8));
  f.put(0, kHbm1, cut(4, 12));
  CHECK(f.r.copies(0, 0, cut(8, 8), high).second == 1);
  CHECK(f.evict(high) == Verdict::last_replica);  // [0, 8) and [4, 16) would serve slices 4 to 7 twice
}

TEST_CASE("legal and migration_source: one replica must hold all slices that are asked for; the fastest of those") {
  Fixture f;
  const int low = f.put(0, kSram0, cut(0, 8));
  const int high = f.put(0, kHbm2, cut(8, 8));
  const auto source = [&](Slice s) { return migration_source({ActionKind::promote, 0, 0, -1, kHbm1, s}, f.r); };
  CHECK(source(cut(0, 8)) == low);
  CHECK(source(cut(9, 3)) == high);
  CHECK(source(cut(6, 4)) == -1);  // half here, half there
  CHECK(source({}) == -1);
  CHECK(f.copy(kHbm1, cut(6, 4)) == Verdict::bad_reference);
  CHECK(f.copy(kHbm1, cut(6, 2)) == Verdict::ok);
  const int whole = f.put(0, kHbm0, {});
  CHECK(source(cut(6, 4)) == whole);
  CHECK(source(cut(0, 8)) == low);  // SRAM before HBM
  CHECK(source({}) == whole);
}

TEST_CASE("legal: (40) charges a migration the bytes of its slice") {
  Fixture f;
  f.put(0, kHbm0, {});
  std::vector<double> fg(f.p.links.size(), 0.0), mig = fg;
  f.limits.link_threshold = 0.5;
  const auto ask = [&](Slice s) {  // 10 B a slice: 10000 ps of 100000
    return legal({ActionKind::promote, 0, 0, -1, kHbm1, s}, f.r, f.limits, 10, 0, {fg, mig, 100'000});
  };
  CHECK(ask(cut(3, 5)) == Verdict::ok);
  CHECK(ask(cut(3, 6)) == Verdict::link_busy);
}

TEST_CASE("a policy that does not assign sends its tokens to the oldest replicas that make up the expert") {
  Fixture f;
  const int low = f.put(0, kHbm0, cut(0, 8));
  f.put(0, kHbm1, cut(4, 12));
  const int high = f.put(0, kHbm2, cut(8, 8));
  const int whole = f.put(1, kHbm0, {});
  Scripted policy;
  PolicyView view;
  view.directory = &f.r;
  const std::vector<TokenGroup> groups{{0, 0, 5}, {1, 2, 7}};
  std::vector<Assignment> out;
  policy.assign(view, {0, groups}, out);
  REQUIRE(out.size() == 3);
  CHECK(out[0].replica == low);
  CHECK(out[1].replica == high);
  CHECK(out[2].replica == whole);
  CHECK(out[0].tokens == 5);
  CHECK(out[1].tokens == 5);
  CHECK(out[2].tokens == 7);
}
