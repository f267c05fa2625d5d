// popnet model on random networks and packets: every packet arrives once and no sooner than alone, runs repeat, replies
// come after what they answer, a limit cuts a run short without changing what came before.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "network/popnet/network.h"
#include "random_package.h"

using namespace sojourn;
using namespace sojourn::popnet;
using kit::pick;

namespace {

PopnetConfig random_config() {
  PopnetConfig c;
  if (pick(0, 2) != 0) {
    c = grid(pick(1, 5), Routing::mesh);
  } else {  // a tree: paths without circles; a flit that comes with a step would be read by it or by the next one
    const int n = pick(1, 12);
    std::vector<Edge> edges;
    std::vector<int> order;
    for (int r = 0; r < n; ++r) {
      order.push_back(r);
      if (r > 0) edges.push_back({pick(std::max(0, r - 3), r - 1), r, pick(0, 30) + 0.5});
    }
    c = graph(n, edges, std::vector<double>(static_cast<std::size_t>(n), 1.0), order);
  }
  c.vcs = pick(1, 5);
  c.in_buffer = pick(1, 12);
  c.out_buffer = pick(1, 4);
  c.flit_words = pick(0, 3);
  c.seed = static_cast<std::uint32_t>(pick(0, 1000));
  return c;
}

std::vector<Packet> random_packets(const PopnetConfig& c) {
  std::vector<Packet> out;
  double time = 0;
  const int n = pick(1, 60), gap = pick(0, 20);
  for (int i = 0; i < n; ++i) {
    time += pick(0, gap);
    out.push_back({time, pick(0, c.routers - 1), pick(0, c.routers - 1), pick(1, 20),
                   pick(0, 3) == 0 ? time + pick(0, 100) : -1.0});
  }
  return out;
}

/// In buffers so deep that no flit waits for a credit: with shallow ones a cycle more or less is a matter of ties.
double alone(PopnetConfig c, const Packet& p) {
  c.in_buffer = c.out_buffer = 1000;
  return simulate(c, {{0, p.source, p.destination, p.flits, -1}}, 1e9).arrivals.at(0).time;
}

bool same(const std::vector<Arrival>& a, const std::vector<Arrival>& b, std::size_t n) {
  return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin(),
                    [](const Arrival& x, const Arrival& y) {
                      return x.packet == y.packet && x.reply == y.reply && x.ready == y.ready && x.time == y.time;
                    });
}

}  // namespace

TEST_CASE("popnet model: every packet arrives once, no sooner than alone, and every run repeats") {
  CHECK(rc::check([] {
    const PopnetConfig c = random_config();
    const std::vector<Packet> packets = random_packets(c);
    const Run run = simulate(c, packets, 1e9);
    RC_ASSERT(run.ending == Ending::all_arrived);
    std::vector<int> arrived(packets.size(), 0), answered(packets.size(), 0);
    std::vector<double> at(packets.size(), 0);
    double now = 0;
    for (const Arrival& a : run.arrivals) {
      const Packet& p = packets[a.packet];
      RC_ASSERT(a.time >= now);
      now = a.time;
      if (a.reply) {
        ++answered[a.packet];
        RC_ASSERT(arrived[a.packet] == 1);
        RC_ASSERT(a.ready == std::max(at[a.packet], p.reply_from));
        RC_ASSERT(a.time - a.ready >= std::floor(alone(c, {0, p.destination, p.source, 1, -1})));
      } else {
        ++arrived[a.packet];
        at[a.packet] = a.time;
        RC_ASSERT(a.ready == p.ready);
        RC_ASSERT(a.time - a.ready >= alone(c, p));
      }
    }
    for (std::size_t i = 0; i < packets.size(); ++i) {
      RC_ASSERT(arrived[i] == 1);
      RC_ASSERT(answered[i] == (packets[i].reply_from >= 0 ? 1 : 0));
    }
    const Run again = simulate(c, packets, 1e9);
    RC_ASSERT(again.arrivals.size() == run.arrivals.size());
    RC_ASSERT(same(again.arrivals, run.arrivals, run.arrivals.size()));
    const Run cut = simulate(c, packets, std::floor(now / 2));
    RC_ASSERT(cut.arrivals.size() <= run.arrivals.size());
    RC_ASSERT(same(cut.arrivals, run.arrivals, cut.arrivals.size()));
  }));
}
