// Flit network with everything switched on at random: slow links, unequal buffers, age arbitration, deeper routers, a
// torus with VC classes, adaptive routing with escape VCs, wide routers. Nothing is lost, doubled or reordered, credits
// are conserved, one and two threads agree to the cycle, and what the check accepts does not deadlock.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "network/flit/traffic.h"
#include "random_package.h"

using namespace sojourn;
using namespace sojourn::flit;
using kit::pick;

namespace {

FlitConfig random_config() {
  const int w = pick(1, 5), h = pick(1, 4);
  FlitConfig c = pick(0, 1) == 1 ? torus(w, h, pick(1, 3)) : grid(w, h, pick(1, 3));
  c.adaptive = pick(0, 2) == 0;
  c.vcs = c.classes + (c.adaptive ? 1 : 0) + pick(0, 4);
  if (pick(0, 7) == 0) c.vcs = std::max(c.vcs, 20);  // 5 ports x 20: two words of request bits
  c.buffer = pick(1, 9);
  c.speculative = pick(0, 1) == 1;
  c.look_ahead = pick(0, 1) == 1;
  c.oldest_first = pick(0, 2) == 0;
  c.router_delay = pick(0, 2);
  for (flit::Link& l : c.links) {
    if (pick(0, 3) == 0) l.interval = kFullRate + pick(0, 5000);
    if (pick(0, 3) == 0) l.buffer = pick(1, 40);
  }
  if (pick(0, 1) == 1)
    for (std::size_t t = 0; t < c.terminals.size(); ++t)
      c.terminal_links.push_back({pick(1, 4), pick(1, 4), kFullRate + pick(0, 3) * 700, kFullRate + pick(0, 3) * 700,
                                  pick(0, 1) * pick(1, 20)});
  return c;
}

std::vector<TracePacket> random_packets(const FlitConfig& c) {
  Rng rng(static_cast<std::uint64_t>(pick(0, 1 << 20)), "packets");
  const auto terminals = static_cast<std::uint64_t>(c.terminals.size());
  const bool hot = pick(0, 3) == 0;
  const auto most = static_cast<std::uint64_t>(pick(1, 30));
  std::vector<TracePacket> packets(static_cast<std::size_t>(pick(1, 150)));
  Cycle ready = 0;
  for (TracePacket& p : packets) {
    ready += static_cast<Cycle>(rng.below(30) == 0 ? rng.below(400) : rng.below(3));
    p = {static_cast<int>(rng.below(terminals)), hot ? 0 : static_cast<int>(rng.below(terminals)),
         1 + static_cast<int>(rng.below(most)), ready};
  }
  return packets;
}

/// Two halves always; really at the same time in some cases only, for that costs time on a busy machine.
int pays_from() { return pick(0, 39) == 0 ? 0 : 1 << 30; }

bool same(const Delivery& a, const Delivery& b) {
  return a.tail == b.tail && a.head == b.head && a.inject == b.inject && a.tag == b.tag && a.flits == b.flits;
}

}  // namespace

TEST_CASE("flit in any mode loses and reorders nothing, conserves credits, and two threads agree to the cycle") {
  CHECK(rc::check("flit modes", [] {
    const FlitConfig c = random_config();
    const auto ok = check(c);
    if (!ok) RC_FAIL(ok.error().diagnostics.text());
    const std::vector<TracePacket> packets = random_packets(c);
    FlitNetwork one(c), two(c, 2, pays_from());
    const std::vector<Delivery> got = replay(one, packets), again = replay(two, packets);  // a flit out of order throws
    std::int64_t flits = 0;
    for (std::size_t i = 0; i < packets.size(); ++i) {
      flits += packets[i].flits;
      RC_ASSERT(got[i].flits == packets[i].flits);
      RC_ASSERT(got[i].destination == packets[i].destination);
      RC_ASSERT(got[i].inject >= packets[i].ready);
      RC_ASSERT(got[i].tail - got[i].head >= packets[i].flits - 1);
      RC_ASSERT(same(got[i], again[i]));
    }
    for (const FlitNetwork* network : {&one, &two}) {
      RC_ASSERT(network->packets_held() == 0);
      RC_ASSERT(network->flits_injected() == flits);
      RC_ASSERT(network->flits_ejected() == flits);
      RC_ASSERT(network->inconsistency() == "");
    }
    RC_ASSERT(one.router_hops() == two.router_hops());
  }));
}

TEST_CASE("flit: deliveries come in the same order from one and two threads while credits stay conserved") {
  CHECK(rc::check("flit order", [] {
    const FlitConfig c = random_config();
    RC_ASSERT(check(c).has_value());
    const std::vector<TracePacket> packets = random_packets(c);
    FlitNetwork one(c), two(c, 2, pays_from());
    std::size_t next = 0;
    while (next < packets.size() || one.packets_held() > 0) {
      for (; next < packets.size() && packets[next].ready <= one.now(); ++next)
        for (FlitNetwork* n : {&one, &two})
          n->send(packets[next].source, packets[next].destination, packets[next].flits, next);
      for (FlitNetwork* n : {&one, &two}) n->step();
      if (one.now() % 16 == 0) {
        RC_ASSERT(one.inconsistency() == "");
        RC_ASSERT(two.inconsistency() == "");
      }
      RC_ASSERT(one.delivered().size() == two.delivered().size());
      for (std::size_t i = 0; i < one.delivered().size(); ++i) RC_ASSERT(same(one.delivered()[i], two.delivered()[i]));
      one.delivered().clear();
      two.delivered().clear();
    }
  }));
}

TEST_CASE("flit: a narrow link passes flits at its rate, to the fraction of a cycle, and latency is the closed form") {
  for (const int interval : {1024, 1025, 1536, 2048, 3000, 10240})
    for (const int flits : {1, 2, 7, 64})
      for (const int delay : {0, 3}) {
        FlitConfig c = grid(3, 1);
        c.vcs = 2;
        c.buffer = 64;
        c.router_delay = delay;
        c.links[0].interval = interval;  // router 0 to 1
        FlitNetwork network(c);
        const Delivery got = replay(network, {{0, 2, flits, 5}}).front();
        const Cycle crossing = (interval + 1023) / 1024 - 1;
        // The n-th flit starts over the narrow link (n - 1) intervals after the first, in a whole cycle.
        const Cycle serial = (static_cast<Cycle>(flits - 1) * interval + 1023) / 1024;
        CAPTURE(interval);
        CAPTURE(flits);
        CHECK(got.tail - got.inject == 3 * 2 + 5 + 3 * delay + crossing + serial);
      }
}

TEST_CASE("flit: a torus needs its VC classes, adaptive routing its escape; the circle is named") {
  for (const int w : {4, 5}) {  // ways of a ring of three are one link long
    FlitConfig c = torus(w, w);
    CHECK(check(c).has_value());
    c.vcs = 3;
    c.adaptive = true;
    CHECK(check(c).has_value());
    c.classes = 1;
    c.vc_class.clear();
    const auto refused = check(c);
    REQUIRE(!refused);
    CHECK(refused.error().diagnostics.text().find("may deadlock") != std::string::npos);
    CHECK(refused.error().diagnostics.text().find(" -> ") != std::string::npos);
  }
}

TEST_CASE("flit: adaptive routing goes round a busy row and stays within minimal paths") {
  FlitConfig table = grid(4, 4), adaptive = table;
  table.vcs = adaptive.vcs = 4;
  adaptive.adaptive = true;
  std::vector<TracePacket> packets;
  for (int i = 0; i < 50; ++i)
    for (const int source : {0, 1, 2}) packets.push_back({source, source + 12, 8, 0});  // up the columns
  for (int i = 0; i < 50; ++i) packets.push_back({0, 15, 8, 0});
  for (int i = 0; i < 50; ++i) packets.push_back({3, 0, 8, 0});
  for (int i = 0; i < 50; ++i) packets.push_back({4, 3, 8, 0});
  FlitNetwork a(table), b(adaptive);
  Cycle table_end = 0, adaptive_end = 0;
  for (const Delivery& d : replay(a, packets)) table_end = std::max(table_end, d.tail);
  for (const Delivery& d : replay(b, packets)) adaptive_end = std::max(adaptive_end, d.tail);
  CHECK(adaptive_end < table_end);
  CHECK(a.router_hops() == b.router_hops());
}

TEST_CASE("flit: hostile traffic in accepted configurations never stops") {
  // SOJOURN_HOSTILE_CYCLES makes it longer (10000000 takes minutes).
  const char* wish = std::getenv("SOJOURN_HOSTILE_CYCLES");
  const Cycle cycles = wish != nullptr ? std::strtoll(wish, nullptr, 10) : 20'000;
  for (const bool wraps : {false, true})
    for (const bool adaptive : {false, true})
      for (const bool oldest : {false, true}) {
        FlitConfig c = wraps ? torus(4, 4) : grid(4, 4);
        c.adaptive = adaptive;
        c.vcs = c.classes + (adaptive ? 1 : 0);
        c.buffer = 1;
        c.oldest_first = oldest;
        c.links[5].interval = 3 * kFullRate;
        REQUIRE(check(c).has_value());
        FlitNetwork network(c);
        Rng rng(7, "hostile");
        Cycle last_progress = 0;
        std::int64_t ejected = 0;
        while (network.now() < cycles) {
          // Every source always has a packet; long and short ones, to corners, opposite nodes and anywhere.
          for (int t = 0; t < 16; ++t)
            if (network.source_idle(t)) {
              const int kind = static_cast<int>(rng.below(3)), corner = static_cast<int>(rng.below(4));
              const int to = kind == 0   ? corner / 2 * 12 + corner % 2 * 3
                             : kind == 1 ? 15 - t
                                         : static_cast<int>(rng.below(16));
              network.send(t, to, 1 + static_cast<int>(rng.below(rng.below(4) == 0 ? 40 : 4)), 0);
            }
          network.step();
          network.delivered().clear();
          if (network.flits_ejected() != ejected) {
            ejected = network.flits_ejected();
            last_progress = network.now();
          }
          if (network.now() - last_progress > 500) FAIL("no flit arrived for 500 cycles");
        }
        CHECK(ejected > cycles / 4);
        // Everything under way still arrives.
        while (network.packets_held() > 0 && network.now() < cycles + 100'000) network.step();
        CHECK(network.packets_held() == 0);
        CHECK(network.inconsistency() == "");
      }
}
