// Teams, shard plans, the rehearsal and the policies built on them.
#include <rapidcheck.h>

#include <array>
#include <set>

#include "policy/rehearsal.h"
#include "policy/shard_plan.h"
#include "policy_fixture.h"

using namespace policy_test;

namespace {

Package grid(int width, int height) {
  Package p = table1();
  p.chiplets.resize(static_cast<size_t>(width * height));
  for (int c = 0; c < width * height; ++c) {
    p.chiplets[c] = {};
    p.chiplets[c].x = c % width;
    p.chiplets[c].y = c / width;
  }
  p.compute_count = width * height;
  return p;
}

/// table1 with every chiplet-to-chiplet link at `rate` bytes a second.
Package with_links(std::uint64_t rate) {
  Package p = table1();
  for (Link& l : p.links)
    if (l.cls == LinkClass::d2d) l.bandwidth = Rate(rate);
  return p;
}

DemandTable demand_table(const Profile& p) {
  DemandTable t{p.layers, p.experts, {}};
  for (int l = 0; l < p.layers; ++l)
    for (int e = 0; e < p.experts; ++e) t.of.push_back(demand_of(p, l, e));
  return t;
}

/// Copies of every slice of every expert.
std::vector<std::array<int, kSlices>> coverage(const World& w, const std::vector<PlacedReplica>& placed) {
  std::vector<std::array<int, kSlices>> held(static_cast<size_t>(w.profile.layers * w.profile.experts));
  for (auto& h : held) h.fill(0);
  for (const PlacedReplica& r : placed)
    for (int i = r.slice.first; i < r.slice.end(); ++i) ++held[r.layer * w.profile.experts + r.expert][i];
  return held;
}

bool each_slice_once(const World& w, const std::vector<PlacedReplica>& placed) {
  for (const auto& h : coverage(w, placed))
    for (int n : h)
      if (n != 1) return false;
  return true;
}

std::vector<PlacedReplica> replicas(const std::vector<Shard>& shards) {
  std::vector<PlacedReplica> out;
  for (const Shard& s : shards) out.push_back({s.layer, s.expert, s.at, s.slice});
  return out;
}

}  // namespace

TEST_CASE("teams: every level covers the package once, and smaller teams lie inside larger ones") {
  for (const auto& [width, height] : {std::pair{4, 4}, {3, 4}, {1, 1}, {5, 1}, {8, 8}, {3, 3}}) {
    CAPTURE(width);
    CAPTURE(height);
    const Teams teams(grid(width, height));
    for (int i = 0; i < teams.levels(); ++i) {
      std::set<int> seen;
      for (const auto& team : teams.level(i)) {
        CHECK(team.size() <= kSlices);
        for (int c : team) CHECK(seen.insert(c).second);
        if (i == 0) continue;
        int parents = 0;
        for (const auto& larger : teams.level(i - 1))
          parents += std::includes(larger.begin(), larger.end(), team.begin(), team.end());
        CHECK(parents == 1);
      }
      CHECK(static_cast<int>(seen.size()) == width * height);
    }
    CHECK(teams.degree(teams.levels() - 1) == 1);
  }
  const Teams square(grid(4, 4));
  CHECK(square.levels() == 5);
  for (int i = 0; i < 5; ++i) CHECK(square.degree(i) == 16 >> i);
  CHECK(square.level_for(1) == 4);
  CHECK(square.level_for(3) == 2);
  CHECK(square.level_for(16) == 0);
  // A quarter of the grid is a 2x2 block, not a row.
  CHECK(square.level(2)[0] == std::vector<int>{0, 1, 4, 5});
}

TEST_CASE("shard plan: whole experts at one end, every chiplet at the other, each slice once in between") {
  World w(table1(), shape("mixtral-8x7b"), 2, 512);
  const CostModel cost(w.package, w.model);
  const Teams teams(w.package);
  const DemandTable demand = demand_table(w.profile);
  w.task.limits.budget = Bytes{1} << 60;
  const auto whole = plan_shards(w.task, cost, teams, demand, {1e12, 0.9});
  CHECK(whole.size() == 16);
  const auto finest = plan_shards(w.task, cost, teams, demand, {0, 0.9});
  CHECK(finest.size() == 16 * 16);
  for (double theta : {1e12, 4.0, 2.0, 1.0, 0.5, 0.25, 0.0})
    CHECK(each_slice_once(w, replicas(plan_shards(w.task, cost, teams, demand, {theta, 0.9}))));
}

TEST_CASE("shard plan: an expert is never cut coarser than its share of the work asks") {
  CHECK(rc::check("random theta", [] {
    World w(table1(), shape("deepseek-v2-lite"), 1, 1024, 1.2, *rc::gen::inRange(1, 1000));
    const double theta = *rc::gen::element(0.03125, 0.125, 0.5, 1.0, 2.0);
    const CostModel cost(w.package, w.model);
    const DemandTable demand = demand_table(w.profile);
    double tokens = 0, active = 0;
    for (const Demand& d : demand.of) tokens += d.tokens, active += d.active;
    std::vector<int> count(w.profile.experts, 0);
    for (const Shard& s : plan_shards(w.task, cost, Teams(w.package), demand, {theta, 0.9})) ++count[s.expert];
    for (int e = 0; e < w.profile.experts; ++e) {
      const double share = std::max(demand.of[e].tokens / tokens, demand.of[e].active / active);
      RC_ASSERT(count[e] >= std::min(16.0, share * 16 / theta) - 1e-9);
    }
  }));
}

TEST_CASE("shard plan: DRAM bandwidth is used where reading bounds the layer, and only there") {
  World decode(table1(), shape("mixtral-8x7b"), 1, 64);
  const CostModel cost(decode.package, decode.model);
  const Teams teams(decode.package);
  const auto far_share = [&](World& w, double level) {
    int far = 0, all = 0;
    for (const Shard& s : plan_shards(w.task, cost, teams, demand_table(w.profile), {0.0, level}))
      (s.at.tier == Tier::dram ? far : all) += s.slice.count;
    return static_cast<double>(far) / (far + all);
  };
  // HBM 16 x 8 x 14.375 GB/s, DRAM 409.6 GB/s: reads level out when DRAM holds its share of the sum.
  const double expected = 409.6 / (409.6 + 16 * 8 * 14.375);
  CHECK(far_share(decode, 0.9) == doctest::Approx(expected).epsilon(0.06));
  CHECK(far_share(decode, 1e300) == 0.0);
  World prefill(table1(), shape("mixtral-8x7b"), 1, 8192);
  CHECK(far_share(prefill, 0.9) == 0.0);
}

TEST_CASE("shard plan: never more bytes in a bank than it has") {
  CHECK(rc::check("short capacity", [] {
    World w(table1(), shape("mixtral-8x7b"), 2, 256, 0.8, *rc::gen::inRange(1, 1000));
    for (Bytes& b : w.task.usable) b = std::min(b, *rc::gen::inRange<Bytes>(0, 3) * w.model.expert_bytes() / 4);
    w.task.limits.budget = Bytes{1} << 60;
    const CostModel cost(w.package, w.model);
    const double theta = *rc::gen::element(0.0, 0.5, 1e12);
    std::vector<Bytes> fixed;
    for (size_t s = 0; s < w.task.usable.size(); ++s) fixed.push_back(w.package.bank_sets[s].usable - w.task.usable[s]);
    Residency directory(w.package, 2, w.model.experts, w.model.expert_bytes(), fixed);
    for (const Shard& s : plan_shards(w.task, cost, Teams(w.package), demand_table(w.profile), {theta, 0.9}))
      RC_ASSERT(directory.place(s.layer, s.expert, s.at, s.slice));
  }));
}

TEST_CASE("shard plan: where every expert fits whole and shards do not, experts stay whole") {
  // One bank of exactly one expert on each chiplet, as many experts: shards of other sizes leave gaps.
  for (const char* name : {"hybrid", "sojourn"})
    for (std::int64_t degree : {0, 1, 3, 16}) {
      CAPTURE(name);
      CAPTURE(degree);
      if (std::string(name) == "hybrid" && degree > 0) continue;
      for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        World w(table1(), shape("dbrx"), 1, 512, 1.2, seed);
        REQUIRE(w.model.experts == w.package.compute_count);
        for (size_t s = 0; s < w.task.usable.size(); ++s)
          w.task.usable[s] = w.package.bank_sets[s].tier == Tier::hbm ? w.model.expert_bytes() : 0;
        auto policy = degree > 0 ? make(name, {{"degree", degree}}) : make(name);
        w.place(*policy, 1.0);
        for (const auto& held : coverage(w, w.placed))
          for (int n : held) CHECK(n >= 1);
      }
    }
}

TEST_CASE("shard plan: a slice of no bytes does not go into a set that is over-full") {
  World w(table1(), shape("dbrx"), 1, 64);
  w.model.moe_ff = 1;
  w.model.hidden = 2;  // 6 bytes an expert, in 16 slices
  REQUIRE(w.model.expert_bytes() < kSlices);
  for (size_t s = 0; s < w.task.usable.size(); ++s)
    if (w.package.bank_sets[s].tier == Tier::sram) w.task.usable[s] = 0;
  const CostModel cost(w.package, w.model);
  const auto shards = plan_shards(w.task, cost, Teams(w.package), demand_table(w.profile), {0.0, 0.9});
  CHECK(each_slice_once(w, replicas(shards)));
  for (const Shard& s : shards) CHECK(s.at.tier != Tier::sram);
}

TEST_CASE("rehearsal: one expert on one chiplet takes its read, its tiles and nothing else") {
  const Package p = table1();
  const ModelShape m = shape("mixtral-8x7b");
  const Location at{Tier::hbm, 0, p.visible(Tier::hbm, 0).front()};
  const std::vector<PlacedReplica> placed{{0, 0, at}};
  std::vector<double> tokens(static_cast<size_t>(m.experts), 0.0);
  tokens[0] = 1;
  const auto mapper = [](const DirectoryView& d, const LayerTask& t, std::vector<Assignment>& out) {
    map_to_all_shards(d, t, out);
  };
  // One token, source 0: the whole read, then the last of weight_tiles parts of one tile of tokens, and its combine.
  const CostModel cost(p, m);
  const double expected =
      cost.stream_s(at.bank_set) + 50e-9 + 16 * cost.token_s(0) / p.weight_tiles +
      static_cast<double>(m.hidden) * cost.token_s(0) / static_cast<double>(m.expert_macs_per_token());
  CHECK(Rehearsal(p, m, false).time(placed, tokens, mapper) == doctest::Approx(expected).epsilon(1e-4));
}

TEST_CASE("sojourn: a few large experts are cut over all chiplets, unless links are slow") {
  World fast(table1(), shape("mixtral-8x7b"), 2, 2048);
  fast.place(*make("sojourn"));
  CHECK(each_slice_once(fast, fast.placed));
  CHECK(fast.placed.size() == 2 * 8 * 16);

  World slow(with_links(100'000'000), shape("deepseek-v2-lite"), 2, 2048);
  auto policy = make("sojourn");
  slow.place(*policy);
  CHECK(slow.placed.size() > 2 * 64);  // copies, as `whole` makes them
  for (const PlacedReplica& r : slow.placed) CHECK(r.slice.whole());
  const auto choice = slow.traffic.window();
  const auto groups = slow.traffic.groups(choice[0]);
  std::vector<Assignment> x;
  policy->assign(slow.view(), {0, groups}, x);
  std::vector<int> sent(groups.size(), 0);
  for (const Assignment& a : x) sent[a.group] += a.tokens;
  for (size_t g = 0; g < groups.size(); ++g) CHECK(sent[g] == groups[g].tokens);

  World alone(with_links(100'000'000), shape("deepseek-v2-lite"), 2, 2048);
  alone.place(*make("sojourn", {{"whole", std::string("none")}}));
  CHECK(each_slice_once(alone, alone.placed));
  CHECK(alone.placed.size() < 2 * 64 * 3);
}

TEST_CASE("sojourn: every group goes to every shard of its expert") {
  World w(table1(), shape("deepseek-v2-lite"), 1, 256);
  auto policy = make("sojourn");
  w.place(*policy);
  const auto choice = w.traffic.window();
  const auto groups = w.traffic.groups(choice[0]);
  std::vector<Assignment> x;
  policy->assign(w.view(), {0, groups}, x);
  std::vector<int> slices(groups.size(), 0);
  for (const Assignment& a : x) {
    CHECK(a.tokens == groups[a.group].tokens);
    slices[a.group] += w.directory->replica(a.replica).slice.count;
  }
  for (int n : slices) CHECK(n == kSlices);
}

TEST_CASE("hybrid: the mean load of every chiplet is the same to half a slice of the largest expert") {
  for (const char* name : {"mixtral-8x7b", "deepseek-v2-lite"}) {
    World w(table1(), shape(name), 2, 2048);
    auto policy = make("hybrid");
    w.place(*policy);
    CHECK(each_slice_once(w, w.placed));
    CHECK(w.placed.size() <= static_cast<size_t>(2 * (w.model.experts + 15)));
    const CostModel cost(w.package, w.model);
    std::vector<double> load(16, 0.0);
    double largest = 0, all = 0;
    for (const PlacedReplica& r : w.placed)
      if (r.layer == 0) {
        const double work = cost.compute_s(0, w.profile.d(0, r.expert), demand_of(w.profile, 0, r.expert).active);
        load[r.at.chiplet] += work * r.slice.count / kSlices;
        all += work * r.slice.count / kSlices;
        largest = std::max(largest, work / kSlices);
      }
    for (double x : load) CHECK(std::abs(x - all / 16) <= largest + 1e-12);
  }
}
