// Latency of one packet alone in a flit network, against the closed form of the router pipeline.
//
//   T = h D + r + (L - 1) + b floor((L - 1) / B),  h = 3, r = 5 speculative; h = 4, r = 6 otherwise
//   B = flits a buffer, b = max(0, 5 - B): a credit is back five cycles after its flit won the switch.
#include <doctest/doctest.h>

#include <algorithm>

#include "network/flit/traffic.h"

using namespace sojourn::flit;

namespace {

Delivery alone(const FlitConfig& config, int source, int destination, int flits) {
  FlitNetwork network(config);
  return replay(network, {{source, destination, flits, 7}}).front();
}

}  // namespace

TEST_CASE("flit zero-load latency is the pipeline's closed form for every distance, length, buffer and VC count") {
  for (const bool speculative : {true, false})
    for (const int buffer : {4, 8})
      for (const int vcs : {1, 2, 4})
        for (const int flits : {1, 2, 4, 5, 8, 9, 16, 64})
          for (const int destination : {0, 1, 2, 3, 7, 11, 15, 12}) {
            FlitConfig c = grid(4, 4);
            c.speculative = speculative;
            c.buffer = buffer;
            c.vcs = vcs;
            const int d = destination % 4 + destination / 4;
            const Delivery got = alone(c, 0, destination, flits);
            const Cycle bubbles = buffer == 4 ? (flits - 1) / 4 : 0;
            CAPTURE(speculative);
            CAPTURE(buffer);
            CAPTURE(vcs);
            CAPTURE(flits);
            CAPTURE(destination);
            CHECK(got.inject == 7);
            CHECK(got.tail - got.inject == (speculative ? 3 * d + 5 : 4 * d + 6) + (flits - 1) + bubbles);
          }
}

TEST_CASE("flit routing without look-ahead costs one more cycle a router; a longer link its latency") {
  FlitConfig c = grid(4, 1);
  c.look_ahead = false;
  CHECK(alone(c, 0, 3, 1).tail - 7 == 4 * 3 + 6);
  c.speculative = false;
  CHECK(alone(c, 0, 3, 1).tail - 7 == 5 * 3 + 7);
  for (const int latency : {1, 2, 7, 40}) {
    FlitConfig far = grid(4, 1, latency);
    CHECK(alone(far, 0, 3, 1).tail - 7 == (2 + latency) * 3 + 5);
  }
}

TEST_CASE("flit throughput of one VC is its buffer over the credit loop") {
  // 3 + 2 l cycles round the loop: buffer / (3 + 2 l) flits a cycle, at most one.
  for (const int latency : {1, 2, 4})
    for (const int buffer : {2, 4, 8}) {
      FlitConfig c = grid(2, 1, latency);
      c.buffer = buffer;
      const int flits = 2000;
      const Delivery d = alone(c, 0, 1, flits);
      const double rate = (flits - 1) / static_cast<double>(d.tail - d.head);
      CHECK(rate == doctest::Approx(std::min(1.0, buffer / (3.0 + 2.0 * latency))).epsilon(0.005));
    }
}
