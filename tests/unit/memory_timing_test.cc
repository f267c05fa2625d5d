// Service curves of the shipped memories, the closed form of banked memories, and the key `timing` of a package.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "base/rng.h"
#include "memory/timing.h"
#include "package/load.h"

using namespace sojourn;

TEST_CASE("every shipped memory has a positive latency and a curve that never passes 1") {
  for (const std::string& name : memory_preset_names()) {
    const auto m = memory_preset(name);
    REQUIRE_MESSAGE(m.has_value(), name);
    CAPTURE(name);
    CHECK(m->idle_ns > 0);
    CHECK(m->peak > 1e9);
    CHECK(m->curve.front().streams == 1);
    for (const MemoryTiming::Point& p : m->curve) CHECK((p.efficiency > 0 && p.efficiency <= 1));
  }
  CHECK(memory_preset("hbm2-1800")->peak == doctest::Approx(460.8e9).epsilon(0.001));
  CHECK_FALSE(memory_preset("hbm9").has_value());
  CHECK(dram_preset("ddr4-3200").has_value());
  CHECK_FALSE(dram_preset("reram").has_value());
}

TEST_CASE("efficiency lies between the points of the curve, and is flat beyond them") {
  MemoryTiming m;
  m.curve = {{1, 1.0}, {2, 0.8}, {4, 0.4}};
  CHECK(m.efficiency(1) == 1.0);
  CHECK(m.efficiency(3) == doctest::Approx(0.6));
  CHECK(m.efficiency(64) == 0.4);
}

TEST_CASE("banked memory: Strecker's formula counts the banks that random requesters ask in a cycle") {
  BankedMemory m;
  m.banks = 16;
  const MemoryTiming t = derive(m);
  Rng rng(1, "banked");
  for (const int streams : {2, 8, 32}) {
    double served = 0;
    constexpr int kCycles = 20000;
    for (int cycle = 0; cycle < kCycles; ++cycle) {
      std::set<std::uint64_t> asked;
      for (int s = 0; s < streams; ++s) asked.insert(rng.below(16));
      served += static_cast<double>(asked.size());
    }
    CHECK(t.efficiency(streams) == doctest::Approx(served / kCycles / streams).epsilon(0.01));
  }
  CHECK(t.efficiency(1) == doctest::Approx(1.0));
}

TEST_CASE("timing on a memory table gives its banks the record's idle latency and the part of the peak") {
  std::ifstream in(std::string(SOJOURN_SOURCE_DIR) + "/packages/hcrmap-table1.toml");
  std::stringstream whole;
  whole << in.rdbuf();
  const std::string text = whole.str();
  const auto plain = parse_package(text, "p.toml");
  REQUIRE(plain.has_value());
  std::string timed, line;
  bool hbm = false;
  while (std::getline(whole, line)) {
    if (line.rfind("[[", 0) == 0) hbm = false;
    if (line.rfind("tier = \"hbm\"", 0) == 0) hbm = true;
    timed += hbm && line.rfind("latency", 0) == 0 ? "timing = \"hbm2-1800\"\ntiming_streams = 2\n" : line + "\n";
  }
  const auto p = parse_package(timed, "p.toml");
  if (!p) FAIL(p.error().diagnostics.text());
  const MemoryTiming m = *memory_preset("hbm2-1800");
  int seen = 0;
  for (std::size_t b = 0; b < p->banks.size(); ++b) {
    const Bank &a = p->banks[b], &was = plain->banks[b];
    if (a.tier != Tier::hbm) {
      CHECK(a.latency == was.latency);
      continue;
    }
    ++seen;
    CHECK(a.latency == std::llround(1000 * m.idle_ns));
    const double part = static_cast<double>(a.bandwidth.per_second()) / static_cast<double>(was.bandwidth.per_second());
    CHECK(part == doctest::Approx(m.efficiency(2)).epsilon(1e-6));
  }
  CHECK(seen > 0);
  std::string wrong = timed;
  wrong.replace(wrong.find("hbm2-1800"), 9, "hbm2-1801");
  const auto bad = parse_package(wrong, "p.toml");
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().diagnostics.text().find("there is no memory 'hbm2-1801'") != std::string::npos);
  std::string both = timed;
  both.insert(both.find("timing_streams"), "latency = \"50 ns\"\n");
  CHECK_FALSE(parse_package(both, "p.toml").has_value());
}
