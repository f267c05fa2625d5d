// A package on the flit network: the map from links to cycles, and messages against the packet model's closed form.
#include "network/flit_package.h"

#include "base/rng.h"
#include "kit.h"
#include "network/flit_model.h"
#include "package/load.h"

using namespace kit;

namespace {

Package preset(const std::string& name) {
  auto loaded = load_package(name, {std::string(SOJOURN_SOURCE_DIR) + "/packages"});
  if (!loaded) FAIL(loaded.error().diagnostics.text());
  return *loaded;
}

struct Run final : NetworkSink {
  Engine engine;
  Ledger ledger;
  std::unique_ptr<Network> network;
  std::vector<Bytes> got;
  std::vector<Ps> at;
  int calls = 0;
  Run(const Package& p, NetworkKind kind) : ledger(p), network(make_network(kind, p, engine, ledger, *this)) {}
  void on_delivered(Traffic, std::uint32_t tag, Bytes delivered, Ps when) override {
    if (tag >= at.size()) at.resize(tag + 1), got.resize(tag + 1);
    CHECK(delivered > got[tag]);
    CHECK(when >= at[tag]);
    got[tag] = delivered;
    at[tag] = when;
    ++calls;
  }
  void on_event(const Event& e) { network->on_event(e); }
  [[nodiscard]] bool finished() const { return engine.events() > 2'000'000; }  // far beyond what any case here needs
  void send(const Package& p, int a, int b, Bytes bytes, std::uint32_t tag, bool whole = false, Ps head = 0,
            Ps tail = 0) {
    network->send({p.route_chiplets(a, b), bytes, Traffic::dispatch, tag, head, tail, whole});
  }
};

}  // namespace

TEST_CASE("flit package: Table 1 becomes 20 routers, 1 ns cycles, 256-byte flits, every link at full rate") {
  const Package p = preset("hcrmap-table1");
  auto map = flit_map(p);
  REQUIRE(map.has_value());
  CHECK(map->cycle == 1000);
  CHECK(map->flit_bytes == 256);
  CHECK(map->config.routers == 20);
  CHECK(map->config.terminals.size() == 16 + 4 * 2);  // an IO chiplet has a terminal a link
  for (const flit::Link& l : map->config.links) {
    CHECK(l.interval == flit::kFullRate);
    CHECK(l.latency == 2);  // 4.067 ns a hop less two cycles of router
    CHECK(l.buffer == 7);
  }
}

TEST_CASE("flit package: a message alone takes the packet model's time but for rounding to cycles") {
  const Package p = preset("hcrmap-table1");
  for (const auto& [a, b] : {std::pair(0, 15), {3, 12}, {5, 6}, {1, 2}})
    for (const Bytes bytes : {Bytes{1}, Bytes{256}, Bytes{7168}, Bytes{262144}, Bytes{44'040'192}}) {
      Run packet(p, NetworkKind::packet), flits(p, NetworkKind::flit);
      packet.send(p, a, b, bytes, 0);
      flits.send(p, a, b, bytes, 0);
      packet.engine.run(packet);
      flits.engine.run(flits);
      CAPTURE(bytes);
      CHECK(packet.got[0] == bytes);
      CHECK(flits.got[0] == bytes);
      // A flit is 1 ns, and each hop is rounded to one.
      const Ps hops = static_cast<Ps>(p.route_chiplets(a, b).size());
      CHECK(std::abs(flits.at[0] - packet.at[0]) <= (hops + 2) * 1000);
      CHECK(flits.ledger.links[p.route_chiplets(a, b)[0]].busy == packet.ledger.links[p.route_chiplets(a, b)[0]].busy);
    }
}

TEST_CASE("flit package: whole messages are told once, others as they come; a bank-fed one ends after its bank") {
  const Package p = preset("hcrmap-table1");
  Run run(p, NetworkKind::flit);
  run.send(p, 0, 5, 100'000, 0, true);
  run.engine.run(run);
  CHECK(run.calls == 1);
  run.send(p, 0, 5, 100'000, 1);
  run.engine.run(run);
  CHECK(run.calls == 1 + (100'000 + 4095) / 4096);
  Run fed(p, NetworkKind::flit);
  fed.send(p, 16, 0, 100'000, 0, true, 5'000, 2'000'000);  // a memory chiplet's bank takes 2 us
  fed.engine.run(fed);
  CHECK(fed.at[0] > 2'000'000);
  CHECK(fed.at[0] < 2'000'000 + 60'000);
}

TEST_CASE("flit package: narrow links pass bytes at their bandwidth") {
  Builder b(3);
  b.p.flit = {64, 1024, 2, 0, true, false, false};
  b.link(0, 1, 3 * kGB, 10'000);
  b.link(1, 2, 8 * kGB, 10'000);
  b.link(1, 0, 8 * kGB, 10'000);
  b.link(2, 1, 8 * kGB, 10'000);
  b.banks(Tier::sram, 0, 1, 1000, kGB);
  const Package p = b.build();
  REQUIRE(flit_map(p).has_value());
  Run run(p, NetworkKind::flit);
  run.send(p, 0, 2, 6'400'000, 0);
  run.engine.run(run);
  const double ideal = 6'400'000.0 / 3e9 * 1e12;
  CHECK(static_cast<double>(run.at[0]) > ideal);
  CHECK(static_cast<double>(run.at[0]) < ideal * 1.01);
}

TEST_CASE("flit package: a torus has its VC classes; without room for them, or with a circle, it is refused by name") {
  Package torus = preset("example-torus");
  REQUIRE(flit_map(torus).has_value());
  CHECK(flit_map(torus)->config.classes == 2);
  torus.flit.vcs = 1;
  const auto refused = flit_map(torus);
  REQUIRE(!refused);
  CHECK(refused.error().diagnostics.text().find("flit.vcs") != std::string::npos);
  Builder ring(4);
  for (int c = 0; c < 4; ++c) ring.link(c, (c + 1) % 4, kGB, 1000);
  ring.banks(Tier::sram, 0, 1, 1000, kGB);
  const auto circle = flit_map(ring.build());
  REQUIRE(!circle);
  CHECK(circle.error().diagnostics.text().find("may deadlock") != std::string::npos);
}

TEST_CASE("flit package: messages that come while the network has planned a later cycle do not stop time") {
  const Package p = preset("hcrmap-table1");
  for (int round = 0; round < 500; ++round) {
    Run run(p, NetworkKind::flit);
    Rng rng(static_cast<std::uint64_t>(round), "late messages");
    std::vector<Bytes> bytes;
    // Few and small, so that the network has cycles without work in which another one comes.
    for (std::uint32_t i = 0; i < 4; ++i) {
      bytes.push_back(1 + static_cast<Bytes>(rng.below(600)));
      const Ps head = static_cast<Ps>(rng.below(60)) * 500;
      run.send(p, static_cast<int>(rng.below(16)), 16 + static_cast<int>(rng.below(4)), bytes.back(), i, false, head,
               head);
    }
    run.engine.run(run);
    CHECK(run.got == bytes);
  }
}

TEST_CASE("flit package: random messages all arrive, the same on a second run, adaptive and by age too") {
  for (const bool adaptive : {false, true})
    for (const bool oldest : {false, true}) {
      Package p = preset("hcrmap-table1");
      p.flit.adaptive = adaptive;
      p.flit.oldest_first = oldest;
      std::vector<Ps> first;
      for (int round = 0; round < 2; ++round) {
        Run run(p, NetworkKind::flit);
        Rng rng(5, "messages");
        std::vector<Bytes> bytes;
        for (std::uint32_t i = 0; i < 300; ++i) {
          bytes.push_back(1 + static_cast<Bytes>(rng.below(20'000)));
          const int a = static_cast<int>(rng.below(20)), c = static_cast<int>(rng.below(16));
          run.send(p, a, c == a ? (c + 1) % 16 : c, bytes.back(), i);
        }
        run.engine.run(run);
        CHECK(run.got == bytes);
        if (round == 0)
          first = run.at;
        else
          CHECK(run.at == first);
      }
    }
}
