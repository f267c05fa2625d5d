// Flit network on random graphs: nothing lost, doubled or reordered, credits conserved, runs repeat, idle time may be
// jumped, and configurations that may deadlock are refused by name.
#include <doctest/doctest.h>

#include <algorithm>

#include "network/flit/traffic.h"
#include "random_package.h"

using namespace sojourn;
using namespace sojourn::flit;
using kit::pick;

namespace {

/// A mesh, or a tree with a few terminals more, with random microarchitecture.
FlitConfig random_config() {
  FlitConfig c;
  if (pick(0, 2) != 0) {
    c = grid(pick(1, 4), pick(1, 4), pick(1, 3));
  } else {
    c.routers = pick(1, 12);
    for (int r = 1; r < c.routers; ++r) {
      const int up = pick(std::max(0, r - 3), r - 1), latency = pick(1, 9);
      c.add_link(r, up, latency);
      c.add_link(up, r, latency);
    }
    for (int r = 0; r < c.routers; ++r)
      for (int i = r == 0 ? 1 : pick(0, 2); i > 0; --i) c.terminals.push_back(r);
    route_shortest(c);
  }
  c.vcs = pick(1, 4);
  c.buffer = pick(1, 9);
  c.speculative = pick(0, 1) == 1;
  c.look_ahead = pick(0, 1) == 1;
  c.terminal_latency = pick(1, 2);
  return c;
}

std::vector<TracePacket> random_packets(const FlitConfig& c) {
  Rng rng(static_cast<std::uint64_t>(pick(0, 1 << 20)), "packets");
  const auto terminals = static_cast<std::uint64_t>(c.terminals.size());
  const bool hot = pick(0, 3) == 0;
  std::vector<TracePacket> packets(static_cast<std::size_t>(pick(1, 120)));
  Cycle ready = 0;
  const auto most = static_cast<std::uint64_t>(pick(1, 20));
  for (TracePacket& p : packets) {
    ready += static_cast<Cycle>(rng.below(30) == 0 ? rng.below(400) : rng.below(3));
    p = {static_cast<int>(rng.below(terminals)), hot ? 0 : static_cast<int>(rng.below(terminals)),
         1 + static_cast<int>(rng.below(most)), ready};
  }
  return packets;
}

/// A directed ring, the only way round.
FlitConfig ring(int n) {
  FlitConfig c;
  c.routers = n;
  for (int r = 0; r < n; ++r) {
    c.terminals.push_back(r);
    c.add_link(r, (r + 1) % n);
  }
  route_shortest(c);
  return c;
}

}  // namespace

TEST_CASE(
    "flit network loses, doubles and reorders nothing, conserves credits and repeats, with idle time or without") {
  CHECK(rc::check("flit conservation", [] {
    const FlitConfig c = random_config();
    const auto ok = check(c);
    RC_ASSERT(ok.has_value());
    const std::vector<TracePacket> packets = random_packets(c);
    FlitNetwork jumping(c), walking(c);
    const std::vector<Delivery> got = replay(jumping, packets);  // a flit out of order throws
    RC_ASSERT(jumping.packets_held() == 0);
    RC_ASSERT(jumping.inconsistency() == "");
    std::int64_t flits = 0, delivered = 0;
    for (const TracePacket& p : packets) flits += p.flits;
    RC_ASSERT(jumping.flits_injected() == flits);
    RC_ASSERT(jumping.flits_ejected() == flits);
    // The same cycle by cycle, with the books checked on the way.
    std::size_t next = 0;
    while (next < packets.size() || walking.next_work() != kNever) {
      for (; next < packets.size() && packets[next].ready == walking.now(); ++next)
        walking.send(packets[next].source, packets[next].destination, packets[next].flits, next);
      walking.step();
      if (walking.now() % 16 == 0) RC_ASSERT(walking.inconsistency() == "");
      for (const Delivery& d : walking.delivered()) {
        const Delivery& other = got[d.tag];
        RC_ASSERT(d.tail == other.tail);
        RC_ASSERT(d.head == other.head);
        RC_ASSERT(d.inject == other.inject);
        RC_ASSERT(d.destination == packets[d.tag].destination);
        RC_ASSERT(d.flits == packets[d.tag].flits);
        RC_ASSERT(d.tail - d.head >= d.flits - 1);
        ++delivered;
      }
      walking.delivered().clear();
    }
    RC_ASSERT(delivered == static_cast<std::int64_t>(packets.size()));
  }));
}

TEST_CASE("flit configurations whose channels wait in a circle are refused, and the circle is named") {
  CHECK(rc::check("ring", [] {
    const int n = pick(3, 9);
    const FlitConfig c = ring(n);
    const std::vector<int> circle = dependency_cycle(c);
    RC_ASSERT(static_cast<int>(circle.size()) == n + 1);
    RC_ASSERT(circle.front() == circle.back());
    for (std::size_t i = 0; i + 1 < circle.size(); ++i) RC_ASSERT(circle[i + 1] == (circle[i] + 1) % n);
  }));
  const auto refused = check(ring(4));
  REQUIRE(!refused);
  CHECK(refused.error().diagnostics.text().find("0 -> 1 -> 2 -> 3 -> 0") != std::string::npos);
}

TEST_CASE("flit: a refused ring does deadlock") {
  FlitConfig c = ring(4);
  c.buffer = 1;
  FlitNetwork network(c);
  for (int r = 0; r < 4; ++r)
    for (int i = 0; i < 4; ++i) network.send(r, (r + 3) % 4, 8, 0);
  while (network.next_work() != kNever) {
    network.skip_to(network.next_work());
    network.step();
  }
  CHECK(network.packets_held() > 0);
  CHECK(network.inconsistency() == "");
}

TEST_CASE("flit: XY grids of any size have no circle; a table that goes in squares has one") {
  for (int w = 1; w <= 5; ++w)
    for (int h = 1; h <= 5; ++h) CHECK(check(grid(w, h)).has_value());
  FlitConfig c = grid(2, 2);
  // Clockwise round the four routers, whatever the destination.
  const int next[] = {1, 3, 0, 2};
  for (int r = 0; r < 4; ++r)
    for (int t = 0; t < 4; ++t)
      for (std::size_t l = 0; l < c.links.size(); ++l)
        if (r != t && c.links[l].from == r && c.links[l].to == next[r])
          c.routes[static_cast<std::size_t>(r * 4 + t)] = static_cast<int>(l);
  CHECK(dependency_cycle(c).size() == 5);
}

TEST_CASE("flit: hostile traffic on a full grid never stops moving") {
  for (const int vcs : {1, 3}) {
    FlitConfig c = grid(4, 4);
    c.vcs = vcs;
    c.buffer = 2;
    FlitNetwork network(c);
    const auto packets = burst(Pattern::transpose, 4, 11, 60, 3), hot = burst(Pattern::hotspot4, 4, 7, 60, 4);
    for (std::size_t i = 0; i < packets.size(); ++i) {
      network.send(packets[i].source, packets[i].destination, packets[i].flits, 0);
      network.send(hot[i].source, hot[i].destination, hot[i].flits, 0);
    }
    std::int64_t last = -1;
    while (network.packets_held() > 0) {
      if (network.now() % 64 == 63) {
        REQUIRE(network.flits_ejected() > last);
        last = network.flits_ejected();
      }
      network.step();
    }
    CHECK(network.flits_ejected() == 960 * 18);
  }
}
