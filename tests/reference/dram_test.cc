// The DRAM channel model against the recorded data of ../shared/reference/memory, where they are present: every row.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "study/validate_memory.h"

using namespace sojourn;

TEST_CASE("DRAM model keeps the tolerances of the recorded runs wherever their addresses are known") {
  const char* env = std::getenv("SOJOURN_SHARED");
  const std::string folder =
      (env != nullptr ? env : std::string(SOJOURN_SOURCE_DIR) + "/../shared") + "/reference/memory";
  if (!std::filesystem::exists(folder + "/systems.csv")) {
    MESSAGE("no " << folder << ": skipped");
    return;
  }
  SilentProgress quiet;
  const auto found = validate_memory(folder, 2, quiet);
  REQUIRE(found.has_value());
  for (const MemoryTolerance& t : found->tolerances) {
    MESSAGE(t.system << " " << t.quantity << ": " << t.held << " of " << t.rows << " within " << t.tolerance);
    CAPTURE(t.system);
    CAPTURE(t.quantity);
    if (t.quantity != "stream_efficiency") CHECK(t.held == t.rows);
  }
  int exact = 0;
  for (const ValidationCase& c : found->cases) {
    if (c.quantity != "stream_efficiency") continue;
    const bool one_channel = c.id.find("1pc ") != std::string::npos || c.id.find("1sub") != std::string::npos ||
                             c.id.find("-1ch ") != std::string::npos || c.id.find("1ch128b") != std::string::npos;
    if (!one_channel || c.id.find(" spread ") != std::string::npos) continue;
    CAPTURE(c.id);
    CHECK(std::abs(c.measured - c.reference) < 0.005);
    ++exact;
  }
  MESSAGE(exact << " rows of one channel with fixed bases");
  CHECK(exact > 0);
}
