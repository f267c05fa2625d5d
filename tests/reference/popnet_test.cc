// The popnet model against the recorded popnet runs of ../shared/reference/popnet, where they are present: delay files
// must come out byte for byte, every packet in its recorded place and cycle.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "base/progress.h"
#include "network/popnet/bench.h"
#include "study/validate_network.h"

using namespace sojourn;
using namespace sojourn::popnet;

namespace {

std::string folder() {
  const char* env = std::getenv("SOJOURN_SHARED");
  return (env != nullptr ? env : std::string(SOJOURN_SOURCE_DIR) + "/../shared") + "/reference/popnet/";
}

}  // namespace

TEST_CASE("popnet model writes the recorded delay files") {
  if (!std::filesystem::exists(folder() + "tiny4.bench")) {
    MESSAGE("skipped: " << folder() << " is not here");
    return;
  }
  for (const auto& [name, k] : {std::pair{"tiny4", 4}, std::pair{"hotspot15", 4}, std::pair{"uniform4_low", 4},
                                std::pair{"uniform4_mid", 4}, std::pair{"uniform6_mixed", 6}, std::pair{"burst6", 6}}) {
    const BenchFormat format{2, k, false};
    const std::string path = folder() + name;
    const auto bench = read_bench(*read_text(path + ".bench", ""), path, format);
    REQUIRE(bench.has_value());
    PopnetConfig c = grid(k, Routing::mesh);
    c.vcs = 3;
    c.in_buffer = c.out_buffer = 12;
    const Run run = simulate(c, bench->packets, 1e9);
    CAPTURE(name);
    CHECK(delay_text(*bench, format, run.arrivals) == *read_text(path + ".delay.txt", ""));
  }
}
