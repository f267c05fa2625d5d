// Whole windows by hand, through simulate(): end-to-end time (16), energy (17)-(18), power cap, migration, hand-over.
//
// Two chiplets of 1 GMAC/s joined by 1 GB/s links of 5 ns, SRAM of 2 GB/s and 100 ps on each. The model is two experts
// of 40 B and 40 MACs a token, top-1, activations of 8 B. A window is one request of 4 tokens: tokens 0 and 2 (source
// c0) go to expert 0, tokens 1 and 3 (source c1) to expert 1. Gate weights: 8 B at 4 GB/s; gate: 32 MACs on both.
#include "kit.h"

using namespace kit;

namespace {

Builder duo(Bytes capacity = 1'000) {
  Builder b(2);
  b.both(0, 1, kGB, 5'000, 3);
  b.banks(Tier::sram, 0, 1, capacity, 2 * kGB, 100, 5);
  b.banks(Tier::sram, 1, 1, capacity, 2 * kGB, 100, 5);
  b.p.energy_per_mac = 7;
  b.p.energy_per_gate_group = 11;
  b.p.energy_per_migration = 14;
  return b;
}

const Location kNear{Tier::sram, 0, 0}, kFar{Tier::sram, 1, 1};

WindowOptions windows(int scored) {
  WindowOptions o;
  o.size = 4;
  o.warmup = 1;
  o.scored = scored;
  return o;
}

std::shared_ptr<const Scenario> duo_scenario(const Package& p, int scored, Scenario settings = {}, int layers = 1) {
  const ModelShape m = tiny_model(layers, 2, 1, 4, 5);
  settings.copies = 1.0;
  return scenario(m, p, tiny_trace(m, 8, 4, [](int, int t, int) { return t % 2; }), windows(scored), settings);
}

/// Expert 0 on c0; expert 1 where told. `decide` is the slow loop.
std::function<std::unique_ptr<Policy>()> placed(
    Location expert1, std::function<void(const PolicyView&, std::vector<Action>&)> decide = {}) {
  return [=] {
    auto p = std::make_unique<Scripted>();
    p->on_place = [=](const PlacementTask& task, std::vector<PlacedReplica>& out) {
      for (int l = 0; l < task.profile->layers; ++l) {
        out.push_back({l, 0, kNear});
        out.push_back({l, 1, expert1});
      }
    };
    p->on_decide = decide;
    return p;
  };
}

constexpr Ps kRemote = 372'100;  // expert 1 on c0, too: 2000 + 16000 + 5100 + 2 x 160000 + 21000 + 8000
constexpr Ps kLocal = 191'100;   // expert 1 on c1: 2000 + 16000 + 5100 + 160000 + 8000

}  // namespace

TEST_CASE("(16) a window is the sum of its events, to the picosecond") {
  const Package p = duo().build();
  const auto s = duo_scenario(p, 2);
  const RunResult remote = run(*s, placed(kNear)), local = run(*s, placed(kFar));
  CHECK(remote.window_ps == std::vector<Ps>{kRemote, kRemote});
  CHECK(remote.latency_ps == kRemote);
  CHECK(remote.moe_latency_ps == kRemote - 2'000);
  CHECK(std::accumulate(remote.stages_ps.begin(), remote.stages_ps.end(), Ps{0}) == remote.moe_latency_ps);
  CHECK(local.latency_ps == kLocal);
  CHECK(remote.lower_bound_ps <= local.moe_latency_ps);
  CHECK(remote.lower_bound_ps == local.lower_bound_ps);
  // gate + first slice (2 of 40 B at 2 GB/s, and 100) + 2 x 160 MACs on both chiplets + combine of an aggregator, less
  // the rounding allowance
  CHECK(local.lower_bound_ps == 16'000 + 1'100 + 160'000 + 8'000 - 36);
}

TEST_CASE("(17)-(18) energy is the sum of its terms, each resource's bytes x its energy") {
  const Package p = duo().build();
  const RunResult r = run(*duo_scenario(p, 2), placed(kNear));
  CHECK(r.energy.compute == (4 * 40 + 32) * 7);  // operations, not padded tiles
  CHECK(r.energy.d2d == (16 + 16) * 3);
  CHECK(r.energy.noc == 0);
  CHECK(r.energy.sram == (2 * 40 + 8) * 5);
  CHECK(r.energy.hbm == 0);
  CHECK(r.energy.dram == 0);
  CHECK(r.energy.migration == 0);
  CHECK(r.energy.gate == 2 * 11);
  CHECK(r.energy.total() == 1344 + 96 + 440 + 22);
  CHECK(r.bytes_dispatch == 32);  // requests; half of them stay on their chiplet
  CHECK(r.bytes_gather == 32);
  CHECK(r.bytes_memory == 80);
  CHECK(r.edp_js == doctest::Approx(1902e-15 * 372.1e-9));
}

TEST_CASE("links of the class noc are charged to NoC, and other tiers to theirs") {
  Builder b(2, 1);
  b.both(0, 1, kGB, 5'000, 3);
  b.p.links[1].cls = LinkClass::noc;  // c1 -> c0: dispatch
  b.both(2, 0, kGB, 5'000, 2);
  b.banks(Tier::hbm, 0, 1, 1'000, 2 * kGB, 100, 5);
  b.banks(Tier::hbm, 1, 1, 1'000, 2 * kGB, 100, 5);
  b.banks(Tier::dram, 2, 1, 1'000, kGB, 100, 9);
  const Package p = b.build();
  const RunResult r = run(*duo_scenario(p, 1), [] {
    auto policy = std::make_unique<Scripted>();
    policy->on_place = [](const PlacementTask&, std::vector<PlacedReplica>& out) {
      out.push_back({0, 0, {Tier::hbm, 0, 0}});
      out.push_back({0, 1, {Tier::dram, 0, 2}});
    };
    return policy;
  });
  CHECK(r.energy.noc == 16 * 3);           // dispatch
  CHECK(r.energy.d2d == 16 * 3 + 40 * 2);  // gather, weights from DRAM
  CHECK(r.energy.hbm == (40 + 8) * 5);     // expert 0 and the gate's weights
  CHECK(r.energy.dram == 40 * 9);
}

TEST_CASE("power cap: each window is slowed by the window before alone, in proportion to the excess") {
  Builder b = duo();
  b.p.power_cap_w = 3e-6;  // a full-rate window draws 1902 fJ / 372.1 ns = 5.1 uW
  b.p.throttle_floor = 0.1;
  const Package p = b.build();
  const RunResult r = run(*duo_scenario(p, 5), placed(kNear));
  int throttle = 1024;
  for (const Ps window : r.window_ps) {
    const auto stretched = [&](Ps t) { return t * 1024 / throttle; };
    const Ps expected = 2'000 + stretched(16'000) + 5'100 + 2 * stretched(160'000) + 21'000 + stretched(8'000);
    CHECK(window == expected);
    const double share = 3e-6 * static_cast<double>(window) * 1e-12 * 1e15 / 1902;
    throttle = share < 1 ? static_cast<int>(1024 * share) : 1024;
  }
  CHECK(r.window_ps[0] == kRemote);
  CHECK(r.window_ps[1] > r.window_ps[0]);
  CHECK(r.window_ps[2] < r.window_ps[1]);  // nearly within the cap, so nearly at full rate again
  CHECK(r.throttled_share == doctest::Approx(0.8));
}

TEST_CASE("power cap: the floor is respected") {
  Builder b = duo();
  b.p.power_cap_w = 1e-9;
  b.p.throttle_floor = 0.5;
  const Package p = b.build();
  const RunResult r = run(*duo_scenario(p, 3), placed(kNear));
  const Ps half = 2'000 + 32'000 + 5'100 + 640'000 + 21'000 + 16'000;
  CHECK(r.window_ps == std::vector<Ps>{kRemote, half, half});
}

TEST_CASE("migration: old replica serves until the copy is written, bytes appear on the link and both banks") {
  const Package p = duo().build();
  struct Seen {
    Location at;
    bool pending;
    Bytes near, far;
    std::uint32_t version;
  };
  std::vector<Seen> seen;
  const auto s = duo_scenario(p, 2);
  const RunResult r = run(*s, [&] {
    auto policy = std::make_unique<Scripted>();
    policy->on_place = [](const PlacementTask&, std::vector<PlacedReplica>& out) {
      out.push_back({0, 0, kNear});
      out.push_back({0, 1, kNear});
    };
    policy->on_decide = [](const PolicyView& v, std::vector<Action>& out) {
      if (v.window == 1) out.push_back({ActionKind::relocate, 0, 1, v.directory->replicas(0, 1)[0], kFar});
    };
    policy->on_assign = [&](const PolicyView& v, const LayerTask& task, std::vector<Assignment>& out) {
      const DirectoryView& d = *v.directory;
      seen.push_back({d.replica(d.replicas(0, 1)[0]).at, d.has_pending(0, 1), d.used(0), d.used(1), d.version()});
      CHECK(d.replicas(0, 1).size() == 1);
      for (std::size_t g = 0; g < task.groups.size(); ++g)
        out.push_back({static_cast<int>(g), d.replicas(0, task.groups[g].expert)[0], task.groups[g].tokens});
    };
    return policy;
  });
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].at == kNear);
  CHECK(seen[0].pending);
  CHECK(seen[0].near == 4 + 80);  // fixed weights and both experts
  CHECK(seen[0].far == 4 + 40);   // the pending region counts
  CHECK(seen[1].at == kFar);
  CHECK_FALSE(seen[1].pending);
  CHECK(seen[1].near == 4 + 40);  // drained and freed
  CHECK(seen[1].far == 4 + 40);
  CHECK(seen[1].version > seen[0].version);
  // The read of 40 B holds c0's bank until 20000, so weights start 2000 late; expert 1 stays on c0 for this window.
  CHECK(r.window_ps == std::vector<Ps>{kRemote + 2'000, kLocal});
  CHECK(r.relocate == 1);
  CHECK(r.refused == 0);
  CHECK(r.bytes_migration == 20);
  CHECK(r.energy.migration == 7);
  CHECK(r.energy.d2d == (32 + 40) * 3 / 2);
  CHECK(r.energy.sram == (2 * 88 + 80) * 5 / 2);
}

TEST_CASE("closed form: a migration is published at the end of its window and charged to both banks") {
  const Package p = duo().build();
  Scenario settings;
  settings.network = NetworkKind::closed;
  const RunResult r =
      run(*duo_scenario(p, 2, settings), placed(kNear, [](const PolicyView& v, std::vector<Action>& out) {
        if (v.window == 1) out.push_back({ActionKind::relocate, 0, 1, v.directory->replicas(0, 1)[0], kFar});
      }));
  // gate 16000, dispatch 21000, queue 160000, compute 160000, gather 21000, combine 8000, and 2000 for the block
  CHECK(r.window_ps == std::vector<Ps>{388'000, 2'000 + 16'000 + 160'000 + 8'000});
  CHECK(r.bytes_migration == 20);
  CHECK(r.energy.d2d == (32 + 40) * 3 / 2);
  CHECK(r.energy.sram == (2 * 88 + 80) * 5 / 2);
}

TEST_CASE("(40) a migration over a busy link is deferred, not started") {
  const Package p = duo().build();
  for (const double threshold : {0.01, 0.14, 0.16, 0.85}) {
    Scenario settings;
    settings.limits.link_threshold = threshold;
    const RunResult r =
        run(*duo_scenario(p, 2, settings), placed(kNear, [](const PolicyView& v, std::vector<Action>& out) {
          if (v.window == 2) out.push_back({ActionKind::relocate, 0, 1, v.directory->replicas(0, 1)[0], kFar});
        }));
    // gather holds c0 -> c1 for 16000 of 372100 ps (0.043), the copy for 40000 (0.1075)
    CAPTURE(threshold);
    CHECK(r.deferred == (threshold < 0.1505 ? 1 : 0));
    CHECK(r.relocate == (threshold < 0.1505 ? 0 : 1));
    CHECK(r.refused == 0);
  }
}

TEST_CASE("a pipeline of two packages adds the hand-over of activations, per-layer scope does not") {
  Builder b = duo(50);  // room for one expert and the gate weights a chiplet
  b.p.handover_latency = 7'777;
  const Package p = b.build();
  Scenario per_layer;
  per_layer.per_layer = true;
  const auto cut = duo_scenario(p, 2, {}, 2), alone = duo_scenario(p, 2, per_layer, 2);
  REQUIRE(cut->stages.size() == 2);
  REQUIRE(alone->stages.size() == 2);
  const RunResult a = run(*cut, placed(kFar)), c = run(*alone, placed(kFar));
  CHECK(c.latency_ps == 2 * kLocal);
  CHECK(a.latency_ps == 2 * kLocal + 7'777 + 32'000);  // 4 tokens x 8 B at 1 GB/s
  CHECK(a.packages == 2);
}

TEST_CASE("an illegal action is refused, counted and changes nothing") {
  const Package p = duo().build();
  const auto s = duo_scenario(p, 2);
  const RunResult quiet = run(*s, placed(kNear));
  const RunResult r = run(*s, placed(kNear, [](const PolicyView& v, std::vector<Action>& out) {
    out.push_back({ActionKind::evict, 0, 0, v.directory->replicas(0, 0)[0], {}});
    out.push_back({ActionKind::promote, 0, 0, -1, kFar});  // budget: single copies
    out.push_back({ActionKind::retain, 0, 0, v.directory->replicas(0, 0)[0], {}});
  }));
  CHECK(r.refused == 4);
  CHECK(r.window_ps == quiet.window_ps);
}

TEST_CASE("a placement that overfills, leaves an expert out or breaks the budget is an error, not a result") {
  const Package p = duo().build();
  const auto s = duo_scenario(p, 1);
  const auto attempt = [&](std::vector<PlacedReplica> placement) {
    auto r = simulate(
        *s,
        [&] {
          auto policy = std::make_unique<Scripted>();
          policy->on_place = [&](const PlacementTask&, std::vector<PlacedReplica>& out) { out = placement; };
          return policy;
        },
        "scripted", nullptr, 0, [] { return false; });
    return r ? std::string() : r.error().diagnostics.text();
  };
  CHECK(attempt({{0, 0, kNear}, {0, 1, kFar}}).empty());
  CHECK(attempt({{0, 0, kNear}}).find("left without a replica") != std::string::npos);
  CHECK(attempt({{0, 0, kNear}, {0, 1, kFar}, {0, 0, kFar}}).find("budget") != std::string::npos);
  CHECK(attempt({{0, 0, kNear}, {0, 1, {Tier::sram, 0, 1}}}).find("does not fit") != std::string::npos);
}

namespace {

constexpr Slice kLow{0, 8}, kHigh{8, 8};

std::function<std::unique_ptr<Policy>()> placed_as(
    std::vector<PlacedReplica> placement, std::function<void(const PolicyView&, std::vector<Action>&)> decide = {}) {
  return [=] {
    auto p = std::make_unique<Scripted>();
    p->on_place = [=](const PlacementTask&, std::vector<PlacedReplica>& out) { out = placement; };
    p->on_decide = decide;
    return p;
  };
}

}  // namespace

TEST_CASE("shards: both experts halved over both chiplets, a window to the picosecond") {
  const Package p = duo().build();
  const RunResult r =
      run(*duo_scenario(p, 1),
          placed_as({{0, 0, kNear, kLow}, {0, 0, kFar, kHigh}, {0, 1, kNear, kLow}, {0, 1, kFar, kHigh}}));
  // A half is 20 B in 2 tiles and 80 MACs. c1 streams expert 0's half first, but its 2 tokens arrive at 21000 from the
  // gate, when both tiles of expert 1's (own tokens, weights at 15100 and 20100) hold the cores until 95100. Then 80000
  // more, 21000 back, and 4 partial sums of 4 MACs.
  CHECK(r.window_ps == std::vector<Ps>{2'000 + 16'000 + 95'100 + 80'000 + 21'000 + 16'000});
  CHECK(r.bytes_memory == 80);
  CHECK(r.bytes_dispatch == 2 * 4 * 8);  // every token to both halves
  CHECK(r.bytes_gather == 2 * 4 * 8);
  CHECK(r.resident_bytes_max == 80);
  CHECK(r.load_max_over_mean == 1.0);
}

TEST_CASE("shards: a migration moves a shard's bytes") {
  const Package p = duo().build();
  const RunResult r = run(*duo_scenario(p, 2), placed_as({{0, 0, kFar}, {0, 1, kNear, kLow}, {0, 1, kNear, kHigh}},
                                                         [](const PolicyView& v, std::vector<Action>& out) {
                                                           const int high = v.directory->replicas(0, 1)[1];
                                                           if (v.window == 1)
                                                             out.push_back({ActionKind::relocate, 0, 1, high, kFar});
                                                         }));
  CHECK(r.relocate == 1);
  CHECK(r.bytes_migration == 20 / 2);  // mean of two windows
  CHECK(r.bytes_memory == 80);
}

TEST_CASE("shards: a placement that holds every slice, but no set of replicas with each once, is an error") {
  const Package p = duo().build();
  Scenario settings;
  settings.copies = 2.0;
  const auto s = scenario(tiny_model(1, 2, 1, 4, 5), p,
                          tiny_trace(tiny_model(1, 2, 1, 4, 5), 8, 4, [](int, int t, int) { return t % 2; }),
                          windows(1), settings);
  const auto attempt = [&](std::vector<PlacedReplica> more) {
    more.push_back({0, 1, kFar});
    auto r = simulate(*s, placed_as(more), "scripted", nullptr, 0, [] { return false; });
    return r ? std::string() : r.error().diagnostics.text();
  };
  const PlacedReplica low{0, 0, kNear, kLow}, overlap{0, 0, kFar, {4, 12}};
  CHECK(attempt({low, overlap}).find("left without a replica") != std::string::npos);
  CHECK(attempt({low, overlap, {0, 0, kNear, kHigh}}).empty());
  CHECK(attempt({low, {0, 0, kFar, {8, 9}}}).find("does not fit") != std::string::npos);
}

TEST_CASE("(6) migration traffic enters pressures with the policy's alpha_mig, and no time") {
  const Package p = duo().build();
  struct Weighty final : Policy {
    double weight;
    std::vector<Pressure>* seen;
    Weighty(double w, std::vector<Pressure>* s) : weight(w), seen(s) {}
    void place(const PlacementTask&, std::vector<PlacedReplica>& out) override {
      out.push_back({0, 0, kNear});
      out.push_back({0, 1, kNear});
    }
    void decide(const PolicyView& v, std::vector<Action>& out) override {
      seen->push_back(*v.pressure);
      if (v.window == 1) out.push_back({ActionKind::relocate, 0, 1, v.directory->replicas(0, 1)[0], kFar});
    }
    [[nodiscard]] double migration_weight() const override { return weight; }
  };
  std::vector<Ps> latency;
  for (const double weight : {0.0, kMigrationWeight, 5.0}) {
    std::vector<Pressure> seen;
    const RunResult r = run(*duo_scenario(p, 2), [&] { return std::make_unique<Weighty>(weight, &seen); });
    latency.push_back(r.latency_ps);
    REQUIRE(seen.size() == 2);
    const double share = 40'000.0 / static_cast<double>(r.window_ps[0]);  // 40 B over the one link at 1 GB/s
    bool moved = false;
    for (std::size_t u = 0; u < p.links.size(); ++u) {
      const double extra = seen[1].link_weighted[u] - seen[1].link_util[u];
      CHECK((extra == 0.0 || extra == doctest::Approx(weight * share)));
      moved = moved || extra > 0;
    }
    CHECK(moved == (weight > 0));
    CHECK(seen[1].mig == doctest::Approx(share));
  }
  CHECK(latency == std::vector<Ps>(3, latency[0]));
}
