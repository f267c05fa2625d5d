// The packet network against its formula: sum(lambda) + D / min(B) alone, sums of serialisations when links are shared.
#include "kit.h"
#include "moe/closed_form.h"
#include "network/packet.h"

using namespace kit;

namespace {

/// A chain c0 -> c1 -> ... with one link a bandwidth, each of its own latency.
Package chain(const std::vector<std::uint64_t>& bandwidths, const std::vector<Ps>& latencies) {
  Builder b(static_cast<int>(bandwidths.size()) + 1);
  for (std::size_t i = 0; i < bandwidths.size(); ++i)
    b.link(static_cast<int>(i), static_cast<int>(i) + 1, bandwidths[i], latencies[i]);
  b.banks(Tier::sram, 0, 1, 1000, kGB);
  return b.build();
}

struct Net final : NetworkSink {
  const Package& p;
  Engine engine;
  Ledger ledger;
  PacketNetwork network;
  std::vector<Bytes> got;
  std::vector<Ps> at;
  std::vector<std::pair<Ps, Message>> later;
  explicit Net(const Package& package) : p(package), ledger(package), network(package, engine, ledger, *this) {}
  void on_delivered(Traffic, std::uint32_t tag, Bytes delivered, Ps when) override {
    if (tag >= at.size()) at.resize(tag + 1), got.resize(tag + 1);
    CHECK(delivered > got[tag]);
    CHECK(when >= at[tag]);
    CHECK(when >= engine.now());
    got[tag] = delivered;
    at[tag] = when;
  }
  void on_event(const Event& e) {
    if (e.kind < kFirstUserEvent) return network.on_event(e);
    network.send(later[e.index].second);
  }
  [[nodiscard]] bool finished() const { return false; }
  void send(int a, int b, Bytes bytes, std::uint32_t tag, Ps when = 0, Ps head = 0, Ps tail = 0) {
    later.push_back(
        {when,
         {p.route_chiplets(a, b), bytes, Traffic::dispatch, tag, std::max(head, when), std::max(tail, when), false}});
    engine.schedule(when, kFirstUserEvent, static_cast<std::uint32_t>(later.size() - 1));
  }
  Ps finish(std::uint32_t tag) {
    engine.run(*this);
    return at[tag];
  }
};

}  // namespace

TEST_CASE("a message alone takes sum(lambda) + D/min(B), one chunk or many, wherever the narrow link is") {
  const std::vector<Ps> latencies{7'000, 300, 11'000};
  const std::vector<std::vector<std::uint64_t>> widths{{1 * kGB, 4 * kGB, 2 * kGB},
                                                       {4 * kGB, 1 * kGB, 2 * kGB},
                                                       {4 * kGB, 2 * kGB, 1 * kGB},
                                                       {1 * kGB, 1 * kGB, 1 * kGB}};
  for (const auto& width : widths) {
    const Package p = chain(width, latencies);
    for (const Bytes bytes : {1, 63, 64, 65, 128, 640, 1000, 6401}) {
      Net net(p);
      net.send(0, 3, bytes, 0);
      CAPTURE(bytes);
      CHECK(net.finish(0) == 18'300 + bytes * 1000);
      CHECK(net.got[0] == bytes);
      for (std::size_t u = 0; u < 3; ++u) {
        CHECK(net.ledger.links[u].total() == bytes);
        CHECK(net.ledger.links[u].busy == p.links[u].bandwidth.time(bytes));
      }
      CHECK(net.ledger.requested_hops[0] == 3 * bytes);
    }
  }
}

TEST_CASE("long links do not starve a chunked message: chunks in flight cover the latency") {
  const Package p =
      chain({2 * kGB, 1 * kGB, 8 * kGB}, {1'000'000, 3'000'000, 2'000'000});  // latency >> a chunk's 64 ns
  Net net(p);
  net.send(0, 3, 64'000, 0);
  CHECK(net.finish(0) == 6'000'000 + 64'000'000);
}

TEST_CASE("head and tail: a message fed by a slow bank ends when the bank does, plus the latencies") {
  const Package p = chain({1 * kGB, 2 * kGB}, {5'000, 500});
  Net slow(p), fast(p);
  slow.send(0, 2, 60, 0, 0, 2'000, 100'000);  // 60 B need 60 ns of link; the last byte is ready at 100 ns
  CHECK(slow.finish(0) == 100'000 + 5'500);
  fast.send(0, 2, 60, 0, 0, 2'000, 30'000);
  CHECK(fast.finish(0) == 2'000 + 60'000 + 5'500);
}

TEST_CASE("two messages that share a link finish at the sum of their serialisations and take turns") {
  Builder b(4);
  b.link(0, 2, 4 * kGB, 100);
  b.link(1, 2, 4 * kGB, 100);
  b.link(2, 3, 1 * kGB, 100);
  b.banks(Tier::sram, 0, 1, 1000, kGB);
  const Package p = b.build();
  Net net(p);
  net.send(0, 3, 640, 0);
  net.send(1, 3, 640, 1);
  const Ps a = net.finish(0), last = std::max(a, net.at[1]), first = std::min(a, net.at[1]);
  CHECK(last == 200 + 1'280'000);
  CHECK(first >= last - 2 * 64'000);  // the other one is at most about a chunk ahead: fair
  CHECK(net.ledger.links[2].busy == 1'280'000);
}

TEST_CASE("a short message passes a long one on a shared link within a few chunks, also on the last narrow link") {
  for (const bool narrow_last : {false, true}) {
    Builder b(4);
    b.link(0, 2, narrow_last ? 8 * kGB : kGB, 100);
    b.link(1, 2, narrow_last ? 8 * kGB : kGB, 100);
    b.link(2, 3, kGB, 100);
    b.banks(Tier::sram, 0, 1, 1000, kGB);
    const Package p = b.build();
    Net net(p);
    net.send(0, 3, 64'000, 0);         // 1000 chunks
    net.send(1, 3, 64, 1, 2'000'000);  // when 31 of them are through
    CAPTURE(narrow_last);
    CHECK(net.finish(1) <= 2'000'000 + 200 + 6 * 64'000);
    CHECK(net.at[0] == 200 + 64'064'000);
  }
}

TEST_CASE("destinations of one source take turns; messages to one destination come in the order sent") {
  Builder b(4);
  b.link(0, 1, kGB, 100);
  b.link(1, 2, 8 * kGB, 100);
  b.link(1, 3, 8 * kGB, 100);
  b.banks(Tier::sram, 0, 1, 1000, kGB);
  const Package p = b.build();
  Net net(p);
  net.send(0, 2, 6'400, 0);
  net.send(0, 3, 640, 1);
  net.send(0, 3, 640, 2);
  net.finish(0);
  const Ps turn = 2 * 64'000, last = 200 + 8'000;  // the last link adds the time of a chunk's last byte only
  CHECK(net.at[0] == 100 + 100 + 7'680'000);
  CHECK(net.at[1] <= 10 * turn + 64'000 + last);
  CHECK(net.at[2] <= 20 * turn + 64'000 + last);
  CHECK(net.at[2] > net.at[1]);
}

TEST_CASE("a source whose unit waits for a link sends to others only as far as the buffers on the way have room") {
  Builder b(6);
  for (const int source : {0, 1, 5}) b.link(source, 2, kGB, 100);
  b.link(2, 3, kGB, 100);
  b.link(2, 4, kGB, 100);
  b.banks(Tier::sram, 0, 1, 1000, kGB);
  const Package p = b.build();
  Net net(p);
  for (const int source : {1, 5}) net.send(source, 3, 6'400, static_cast<std::uint32_t>(source));
  net.send(0, 3, 640, 0);
  net.send(0, 4, 640, 2);
  net.finish(0);
  // With the way to 4 to itself, message 2 would end after 1280 bytes at most: it takes turns with message 0. Each unit
  // of message 0 now waits for one of another source, and the source with it: three units' time for two.
  CHECK(net.at[2] > 1'800'000);
  CHECK(std::max(net.at[1], net.at[5]) == 200 + 2 * 6'400'000 + 640'000);  // the shared link is never idle
}

TEST_CASE("a message to its own chiplet is there at once") {
  const Package p = chain({kGB}, {100});
  Net net(p);
  net.send(0, 0, 6'400, 0);
  CHECK(net.finish(0) == 0);
  CHECK(net.ledger.links[0].total() == 0);
}

// ---- the closed form, equations (5)-(15)

namespace {

/// c0 - c1 - c2 in a line, an IO chiplet at c0; SRAM of two banks on c0, DRAM on the IO chiplet.
Package closed_package() {
  Builder b(3, 1);
  b.both(0, 1, 1 * kGB, 5'000);                      // links 0, 1
  b.both(1, 2, 2 * kGB, 700);                        // links 2, 3
  b.both(3, 0, 4 * kGB, 900);                        // links 4, 5
  b.banks(Tier::sram, 0, 2, 1000, 1 * kGB, 100);     // set 0: 2 GB/s together
  b.banks(Tier::dram, 3, 1, 10000, 1 * kGB, 3'000);  // set 1
  b.p.tile_tokens = 4;
  return b.build();
}

}  // namespace

TEST_CASE("closed form: every term of (7)-(15) by hand") {
  const Package p = closed_package();
  Layer l;
  const int a = l.job(Tier::sram, 0, 0), b = l.job(Tier::dram, 0, 1);
  l.piece(a, 0, 3);
  l.piece(a, 2, 5);  // c2 -> c1 -> c0: 50 B
  l.piece(b, 1, 2);  // c1 -> c0: 20 B
  Ledger ledger(p);
  ClosedTerms t;
  const LayerOutcome out = closed_layer(p, l.ready(), {}, 0, ledger, &t);
  // (7) 50 B over 2 GB/s and 1 GB/s: 700 + 25000 + 5000 + 50000. Link c1->c0 carries 70 B: 70000 < 80700.
  CHECK(t.disp == 80'700);
  CHECK(t.gath == 80'700);
  // (10) SRAM: 100 + 400 B / 2 GB/s; DRAM: 3000 + 400 B / 1 GB/s. (12) DRAM's route 900 + 100000 is shorter.
  CHECK(t.bank == 403'000);
  CHECK(t.mem == 403'000);
  // (13) a: 8 tokens, eta = 1: 80 MACs; b: 2 tokens in a tile of 4, eta = 1/2: 40 MACs.
  CHECK(t.comp == 80'000);
  CHECK(t.queue == 40'000);    // both on c0: 120 less the longest
  CHECK(t.combine == 10'000);  // c2: 5 outputs x 2 MACs
  CHECK(t.net == 100'900);     // (8): the weight route is the longest
  CHECK(out.end == 1'000 + 80'700 + 40'000 + 403'000 + 80'700 + 10'000);
  CHECK(sum(out) == out.end);
  CHECK(stage(out, Stage::memory) == 323'000);
  // (5), (6), (9)
  CHECK(ledger.links[1].bytes[0] == 70);
  CHECK(ledger.links[0].bytes[1] == 70);
  CHECK(ledger.links[3].bytes[0] == 50);
  CHECK(ledger.links[4].bytes[2] == 400);
  CHECK(ledger.bank_sets[0].foreground == 400);
  CHECK(ledger.bank_sets[1].foreground == 400);
  CHECK(ledger.requested[0] == 100);  // with the 30 B that stay on c0
  CHECK(ledger.requested_hops[0] == 120);
  CHECK(ledger.macs == 100);  // energy counts operations, not padded tiles
}

TEST_CASE("closed form: a link loaded by many short routes takes its load over its bandwidth") {
  const Package p = closed_package();
  Layer l;
  const int a = l.job(Tier::sram, 0, 0);
  for (int i = 0; i < 20; ++i) l.piece(l.job(Tier::sram, 0, 0), 1, 1);
  l.piece(a, 0, 1);
  Ledger ledger(p);
  ClosedTerms t;
  (void)closed_layer(p, l.ready(), {}, 0, ledger, &t);
  CHECK(t.disp == 200'000);  // 200 B over 1 GB/s; a route of 10 B takes 15000
  CHECK(t.bank == 100 + 21 * 200'000);
}

TEST_CASE("closed form: migration bytes load banks and links, only banks reach the latency (12), (15)") {
  const Package p = closed_package();
  Layer l;
  l.piece(l.job(Tier::sram, 0, 0), 0, 4);
  MigrationShare m{std::vector<Bytes>(p.links.size()), std::vector<Bytes>(p.bank_sets.size())};
  m.link[5] = m.bank_set[0] = m.bank_set[1] = 1'000;
  Ledger ledger(p);
  ClosedTerms t;
  (void)closed_layer(p, l.ready(), m, 0, ledger, &t);
  CHECK(t.bank == 3'000 + 1'000'000);  // DRAM: 1000 B of migration alone
  CHECK(t.net == 250'000);
  CHECK(ledger.links[5].bytes[3] == 1'000);
  CHECK(ledger.bank_sets[0].migration == 1'000);
}

TEST_CASE("closed form: the power cap stretches compute and combine only") {
  const Package p = closed_package();
  Layer l;
  l.piece(l.job(Tier::sram, 0, 0), 1, 4);
  Ledger ledger(p);
  ClosedTerms full, half;
  (void)closed_layer(p, l.ready(), {}, 0, ledger, &full);
  l.work.throttle = 512;
  (void)closed_layer(p, l.ready(), {}, 0, ledger, &half);
  CHECK(half.comp == 2 * full.comp);
  CHECK(half.combine == 2 * full.combine);
  CHECK(half.disp == full.disp);
  CHECK(half.mem == full.mem);
}
