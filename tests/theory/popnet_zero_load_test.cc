// popnet model, one packet in an empty network: 5 * hops + flits - 1 cycles, for every distance, length, VC count and
// buffer from which a flit a cycle can be kept up; on a graph 5 * hops + link delays read at the next step.
#include <doctest/doctest.h>

#include "network/popnet/network.h"

using namespace sojourn;
using namespace sojourn::popnet;

namespace {

double alone(const PopnetConfig& c, int source, int destination, std::int64_t flits, double ready = 0) {
  const Run run = simulate(c, {{ready, source, destination, flits, -1}}, 1e9);
  REQUIRE(run.arrivals.size() == 1);
  return run.arrivals[0].time - run.arrivals[0].ready;
}

}  // namespace

TEST_CASE("a packet alone on a mesh takes 5 cycles a hop and one a flit more") {
  for (const int k : {2, 3, 5, 8})
    for (const int vcs : {1, 2, 3, 4, 6})
      for (const int flits : {1, 2, 5, 16, 300})
        for (int to = 0; to<k * k; to += k> 4 ? 7 : 1) {
          PopnetConfig c = grid(k, Routing::mesh);
          c.vcs = vcs;
          c.in_buffer = 12;
          c.out_buffer = 12;
          const int from = k + 1, hops = std::abs(to / k - from / k) + std::abs(to % k - from % k);
          CHECK(alone(c, from, to, flits, 40 * to) == 5 * hops + flits - 1);
        }
}

TEST_CASE("a torus goes the shorter way round") {
  PopnetConfig c = grid(6, Routing::torus);
  CHECK(alone(c, 0, 5, 5) == 5 + 4);
  CHECK(alone(c, 0, 5 * 6 + 5, 5) == 10 + 4);
  CHECK(alone(c, 0, 3 * 6, 1) == 15);
}

TEST_CASE("a graph takes the shorter of two ways, and links delay as they say") {
  const std::vector<Edge> edges = {{0, 1, 0.9}, {1, 2, 0.9}, {2, 3, 0.9}, {0, 3, 20.9}, {0, 4, 7.9}};
  const PopnetConfig c = graph(5, edges, {1, 1, 1, 1, 1}, {0, 1, 2, 3, 4});
  CHECK(alone(c, 0, 3, 4) == 15 + 3);
  CHECK(alone(c, 3, 0, 4) == 15 + 3);
  CHECK(alone(c, 4, 0, 1) == 4 + 8);
  const PopnetConfig slow = graph(2, {{0, 1, 1.9}}, {2, 2}, {0, 1});
  CHECK(alone(slow, 0, 1, 3) == 10 + 2 * 2);
}

TEST_CASE("a source hands a packet for itself over, a flit a cycle") {
  CHECK(alone(grid(3, Routing::mesh), 4, 4, 1) == 0);
  CHECK(alone(grid(3, Routing::mesh), 4, 4, 7) == 6);
}

TEST_CASE("small buffers slow a packet: one flit waits for the credit of the one before") {
  PopnetConfig c = grid(4, Routing::mesh);
  c.vcs = 1;
  c.in_buffer = 1;
  CHECK(alone(c, 0, 3, 9) > 15 + 8);
}
