// LLEP's assignment: the trigger, the cap whenever the replicas allow it (against a max-flow and by hand), the chunk
// rule. LPLB's linear program on the same cases.
#include <numeric>

#include "policy/edge_flow.h"
#include "policy/least_loaded.h"
#include "policy_fixture.h"

using namespace policy_test;

namespace {

struct Case {
  ReplicaTable table;
  std::vector<int> tokens;
  int devices = 0;
};

Case random_case(Rng& rng, int replicas_max) {
  Case c;
  c.devices = 2 + static_cast<int>(rng.below(6));
  const int experts = 1 + static_cast<int>(rng.below(12));
  for (int e = 0; e < experts; ++e) {
    std::vector<int> all(c.devices);
    std::iota(all.begin(), all.end(), 0);
    rng.shuffle(all);
    all.resize(1 + rng.below(std::min(replicas_max, c.devices)));
    c.table.add_expert(all);
    c.tokens.push_back(static_cast<int>(rng.below(rng.below(3) == 0 ? 400 : 40)));
  }
  return c;
}

/// Is there an assignment with no device above the cap? For every set of devices, the experts that live within it alone
/// must fit it (Hall's condition, by enumeration).
bool feasible(const Case& c, std::int64_t cap) {
  for (int set = 1; set < 1 << c.devices; ++set) {
    std::int64_t inside = 0;
    for (int e = 0; e < c.table.experts(); ++e) {
      bool within = true;
      for (int i = c.table.first[e]; i < c.table.first[e + 1]; ++i) within = within && (set >> c.table.device[i] & 1);
      if (within) inside += c.tokens[e];
    }
    if (inside > cap * __builtin_popcount(static_cast<unsigned>(set))) return false;
  }
  return true;
}

std::int64_t largest(const LeastLoaded& s) { return *std::max_element(s.load().begin(), s.load().end()); }

void check_sums(const Case& c, const LeastLoaded& s, const std::vector<int>& quota) {
  std::vector<std::int64_t> load(c.devices, 0);
  for (int e = 0; e < c.table.experts(); ++e) {
    int sum = 0;
    for (int i = c.table.first[e]; i < c.table.first[e + 1]; ++i) {
      REQUIRE(quota[i] >= 0);
      sum += quota[i];
      load[c.table.device[i]] += quota[i];
    }
    REQUIRE(sum == c.tokens[e]);
  }
  for (int d = 0; d < c.devices; ++d) REQUIRE(load[d] == s.load()[d]);
}

}  // namespace

TEST_CASE("llep caps the largest load whenever the replicas allow it, and only then") {
  Rng rng(1, "llep");
  int capped = 0, impossible = 0;
  for (int round = 0; round < 3000; ++round) {
    const Case c = random_case(rng, 4);
    LeastLoaded s;
    std::vector<int> quota;
    s.solve({rng.below(2) == 0 ? 1.0 : 1.2, 1.0, 1}, c.devices, c.table, c.tokens, quota);
    check_sums(c, s, quota);
    const bool can = feasible(c, s.cap());
    CHECK((largest(s) <= s.cap()) == can);
    ++(can ? capped : impossible);
  }
  CHECK(capped > 200);
  CHECK(impossible > 200);
}

TEST_CASE("llep with every expert everywhere ends within a chunk of the cap, as in the original") {
  Rng rng(2, "llep");
  for (int round = 0; round < 500; ++round) {
    Case c = random_case(rng, 1);
    std::vector<int> all(c.devices);
    ReplicaTable full;
    for (int e = 0; e < c.table.experts(); ++e) {
      std::iota(all.begin(), all.end(), 0);
      std::swap(all[0], all[c.table.device[c.table.first[e]]]);
      full.add_expert(all);
    }
    c.table = full;
    LeastLoaded s;
    std::vector<int> quota;
    s.solve({1.0, 1.0, 16}, c.devices, c.table, c.tokens, quota);
    check_sums(c, s, quota);
    CHECK(largest(s) <= s.cap() + 16);
  }
}

TEST_CASE("llep leaves native loads alone below the trigger, and starts no replica for less than a chunk") {
  Rng rng(3, "llep");
  int native = 0, spilled = 0;
  for (int round = 0; round < 2000; ++round) {
    const Case c = random_case(rng, 4);
    LeastLoaded s;
    std::vector<int> quota;
    s.solve({1.0, 1.3, 16}, c.devices, c.table, c.tokens, quota);
    check_sums(c, s, quota);
    if (!s.triggered()) ++native;
    for (int e = 0; e < c.table.experts(); ++e)
      for (int i = c.table.first[e] + 1; i < c.table.first[e + 1]; ++i) {
        if (!s.triggered()) CHECK(quota[i] == 0);
        spilled += quota[i] > 0;
      }
  }
  CHECK(native > 20);
  CHECK(spilled > 100);
}

TEST_CASE("llep by hand: native first, the rest to the least loaded, chains where the direct way is full") {
  // Device 0 has experts 0 (90, spare on 1) and 1 (10); device 1 expert 2 (30, spare on 2); device 2 expert 3 (20).
  ReplicaTable t;
  for (const std::vector<int>& on : {std::vector<int>{0, 1}, {0}, {1, 2}, {2}}) t.add_expert(on);
  const std::vector<int> tokens{90, 10, 30, 20};
  LeastLoaded s;
  std::vector<int> quota;
  s.solve({1.0, 1.3, 1}, 3, t, tokens, quota);
  CHECK(s.cap() == 50);
  CHECK(std::vector<std::int64_t>(s.load().begin(), s.load().end()) == std::vector<std::int64_t>{50, 50, 50});
  // 40 stay on 0; 50 spill to 1, which hands its own 30 on to 2.
  CHECK(quota == std::vector<int>{40, 50, 10, 0, 30, 20});
}

TEST_CASE("llep's layers are levelled better than static's, and never worse than without spill") {
  for (const double skew : {0.6, 0.9, 1.2}) {
    World w(table1(), shape("deepseek-v2-lite"), 2, 2048, skew), v(table1(), shape("deepseek-v2-lite"), 2, 2048, skew);
    auto llep = make("llep"), fixed = make("static");
    w.place(*llep);
    v.place(*fixed);
    const auto choice = w.traffic.window();
    for (int l = 0; l < 2; ++l) {
      const auto groups = w.traffic.groups(choice[static_cast<size_t>(l)]);
      std::vector<Assignment> x, y;
      llep->assign(w.view(), {l, groups}, x);
      fixed->assign(v.view(), {l, groups}, y);
      CHECK(measure(w, groups, x).compute <= measure(v, groups, y).compute);
      if (skew > 0.6) CHECK(measure(w, groups, x).compute < 0.8 * measure(v, groups, y).compute);
    }
  }
}

TEST_CASE("lplb's largest load is the least there is, so never above an even split's or a least-loaded one's") {
  Rng rng(4, "lplb");
  int better = 0;
  for (int round = 0; round < 500; ++round) {
    const Case c = random_case(rng, 4);
    const int unit = rng.below(2) == 0 ? 1 : 16;
    const EdgeFlow flow = level_by_edges(c.devices, c.table, c.tokens, unit);
    const auto units = [&](int tokens) { return (tokens + unit - 1) / unit; };
    std::vector<std::int64_t> mine(c.devices, 0), even(c.devices, 0), least(c.devices, 0);
    for (int e = 0; e < c.table.experts(); ++e) {
      const int first = c.table.first[e], n = c.table.first[e + 1] - first;
      int sum = 0;
      for (int i = 0; i < n; ++i) {
        const int q = flow.quota[first + i], d = c.table.device[first + i];
        REQUIRE(q >= 0);
        sum += q;
        mine[d] += units(q);
        even[d] += units(c.tokens[e] / n + (i < c.tokens[e] % n));
      }
      REQUIRE(sum == c.tokens[e]);
      for (int left = c.tokens[e]; left > 0; left -= unit) {
        int best = 0;
        for (int i = 1; i < n; ++i)
          if (least[c.table.device[first + i]] < least[c.table.device[first + best]]) best = i;
        ++least[c.table.device[first + best]];
      }
    }
    const auto most = [](const std::vector<std::int64_t>& v) { return *std::max_element(v.begin(), v.end()); };
    CHECK(most(mine) < flow.bound + 1);
    CHECK(most(mine) <= most(even));
    CHECK(most(mine) <= most(least));
    better += most(mine) < most(even);
    if (unit > 1) continue;
    CHECK(feasible(c, most(mine)));
    if (most(mine) > 0) CHECK_FALSE(feasible(c, most(mine) - 1));
  }
  CHECK(better > 200);
}
