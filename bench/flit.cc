// Speed of the flit network in flit-router-hops a second: uniform traffic on a k x k mesh, 4-flit buffers, speculative
// routers, at the loads of ../shared/reference/noc/speed.csv (eleven equal periods, the first as warm-up, then
// drained). Where that file is present, `times_reference` is the rate over the recorded one.
//   sojourn_bench --benchmark_filter=flit
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "network/flit/traffic.h"

namespace {

using namespace sojourn::flit;

struct Case {
  const char* name;
  int k, vcs, flits;
  double offered;
  Cycle period;
};
constexpr Case kCases[] = {
    {"speed_4x4_vc2_L5_low", 4, 2, 5, 0.02, 40000},     {"speed_4x4_vc2_L5_mid", 4, 2, 5, 0.2, 10000},
    {"speed_4x4_vc2_L5_nearsat", 4, 2, 5, 0.5, 4000},   {"speed_8x8_vc2_L5_low", 8, 2, 5, 0.01, 10000},
    {"speed_8x8_vc2_L5_mid", 8, 2, 5, 0.15, 2000},      {"speed_8x8_vc2_L5_nearsat", 8, 2, 5, 0.3, 1000},
    {"speed_8x8_vc1_L1_low", 8, 1, 1, 0.01, 10000},     {"speed_8x8_vc1_L1_mid", 8, 1, 1, 0.1, 2000},
    {"speed_8x8_vc1_L1_nearsat", 8, 1, 1, 0.2, 1000},   {"speed_8x8_vc4_L64_low", 8, 4, 64, 0.01, 10000},
    {"speed_8x8_vc4_L64_mid", 8, 4, 64, 0.15, 2000},    {"speed_8x8_vc4_L64_nearsat", 8, 4, 64, 0.3, 1000},
    {"speed_16x16_vc2_L5_low", 16, 2, 5, 0.005, 3000},  {"speed_16x16_vc2_L5_mid", 16, 2, 5, 0.07, 500},
    {"speed_16x16_vc2_L5_nearsat", 16, 2, 5, 0.14, 300}};

/// Flit-router-hops a second recorded for a case, or 0. Its column is the last but one.
double recorded(const std::string& name) {
  const char* env = std::getenv("SOJOURN_SHARED");
  std::ifstream file((env != nullptr ? env : std::string(SOJOURN_SOURCE_DIR) + "/../shared") +
                     "/reference/noc/speed.csv");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, name.size() + 1, name + ",") != 0) continue;
    std::vector<std::string> cells;
    std::stringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
    return cells.size() < 2 ? 0 : std::strtod(cells[cells.size() - 2].c_str(), nullptr);
  }
  return 0;
}

void flit_network(benchmark::State& state, const Case& c) {
  FlitConfig config = grid(c.k, c.k);
  config.vcs = c.vcs;
  std::int64_t hops = 0;
  for (auto _ : state) {
    FlitNetwork network(config);
    open_loop(network, {Pattern::uniform, c.k, c.flits, c.offered, c.period, 10 * c.period});
    hops += network.router_hops();
  }
  state.SetItemsProcessed(hops);
  const auto n = static_cast<double>(hops);
  state.counters["hops"] = benchmark::Counter(n, benchmark::Counter::kIsRate);
  if (const double reference = recorded(c.name); reference > 0)
    state.counters["times_reference"] = benchmark::Counter(n / reference, benchmark::Counter::kIsRate);
}

const bool kRegistered = [] {
  for (const Case& c : kCases)
    benchmark::RegisterBenchmark((std::string("flit network, ") + c.name).c_str(), [&c](benchmark::State& s) {
      flit_network(s, c);
    })->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
