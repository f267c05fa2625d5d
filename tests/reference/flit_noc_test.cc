// The flit network against the recorded mesh data of ../shared/reference/noc, where they are present: packet by packet
// replay of traces, bursts, and open-loop latency.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "network/flit/traffic.h"

using namespace sojourn;
using namespace sojourn::flit;

namespace {

std::string folder() {
  const char* env = std::getenv("SOJOURN_SHARED");
  return (env != nullptr ? env : std::string(SOJOURN_SOURCE_DIR) + "/../shared") + "/reference/noc/";
}

std::vector<std::vector<std::string>> rows(const std::string& path) {
  std::vector<std::vector<std::string>> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    out.emplace_back();
    std::stringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) out.back().push_back(cell);
  }
  return out;
}

using Row = std::map<std::string, std::string>;

std::vector<Row> table(const std::string& path) {
  const auto cells = rows(path);
  std::vector<Row> out;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    out.emplace_back();
    for (std::size_t c = 0; c < cells[0].size() && c < cells[i].size(); ++c) out.back()[cells[0][c]] = cells[i][c];
  }
  return out;
}

FlitConfig setting(Row& row) {
  FlitConfig c = grid(std::stoi(row["k"]), std::stoi(row["k"]));
  c.vcs = std::stoi(row["num_vcs"]);
  c.buffer = std::stoi(row["vc_buf_size"]);
  c.speculative = row["speculative"] == "1";
  return c;
}

bool present(const std::string& file) {
  if (std::filesystem::exists(folder() + file)) return true;
  MESSAGE("skipped: " << folder() << file << " is not here");
  return false;
}

/// "open_4x4_vc1_uniform_L5_r0.20_buf8" names the setting.
FlitConfig setting(const std::string& name) {
  const int k = name[name.find('x') + 1] - '0';
  FlitConfig c = grid(k, k);
  c.vcs = name[name.find("_vc") + 3] - '0';
  c.buffer = name.find("_buf8") != std::string::npos ? 8 : 4;
  c.speculative = name.find("_nospec") == std::string::npos;
  return c;
}

}  // namespace

TEST_CASE("flit network replays the recorded packet traces of BookSim2 exactly") {
  if (!present("traces/summary.csv")) return;
  const auto summary = rows(folder() + "traces/summary.csv");
  for (std::size_t s = 1; s < summary.size(); ++s) {
    const std::string& name = summary[s][0];
    const auto recorded = rows(folder() + "traces/" + name + ".csv");
    REQUIRE(recorded.size() > 1);
    std::vector<TracePacket> packets;
    for (std::size_t i = 1; i < recorded.size(); ++i)
      packets.push_back({std::stoi(recorded[i][1]), std::stoi(recorded[i][2]), std::stoi(recorded[i][3]),
                         std::stoll(recorded[i][4])});
    FlitNetwork network(setting(name));
    const auto got = replay(network, packets);
    std::size_t exact = 0, first = 0;
    Cycle makespan = 0;
    double mean = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const bool same = got[i].inject == std::stoll(recorded[i + 1][5]) &&
                        got[i].head == std::stoll(recorded[i + 1][6]) && got[i].tail == std::stoll(recorded[i + 1][7]);
      exact += same ? 1 : 0;
      if (!same && (first == 0 || got[i].tail < got[first - 1].tail)) first = i + 1;
      makespan = std::max(makespan, got[i].tail + 1);
      mean += static_cast<double>(got[i].tail - got[i].ready) / static_cast<double>(got.size());
    }
    MESSAGE(name << ": " << exact << " of " << got.size() << " exact, makespan " << makespan << " (" << summary[s][3]
                 << "), mean " << mean << " (" << summary[s][4] << ")");
    if (first != 0) {
      const auto& r = recorded[first];
      const Delivery& d = got[first - 1];
      MESSAGE("first that differs: id " << r[0] << " " << r[1] << "->" << r[2] << " ready " << r[4] << ": inject "
                                        << d.inject << " (" << r[5] << ") head " << d.head << " (" << r[6] << ") tail "
                                        << d.tail << " (" << r[7] << ")");
    }
    CHECK(exact == got.size());
    CHECK(makespan == std::stoll(summary[s][3]));
    CHECK(mean == doctest::Approx(std::stod(summary[s][4])).epsilon(0.0001));
  }
}

TEST_CASE("flit network empties the recorded bursts of fixed destinations in exactly the recorded time") {
  if (!present("batch.csv")) return;
  int checked = 0;
  for (Row& row : table(folder() + "batch.csv")) {
    const Pattern pattern = *pattern_named(row["traffic"]);
    if (pattern == Pattern::uniform || pattern == Pattern::hotspot4) continue;  // random destinations
    FlitNetwork network(setting(row));
    const auto packets = burst(pattern, std::stoi(row["k"]), std::stoi(row["packet_size"]),
                               std::stoi(row["packets_per_node"]), std::stoull(row["seed"]));
    Cycle makespan = 0;
    double mean = 0;
    for (const Delivery& d : replay(network, packets)) {
      makespan = std::max(makespan, d.tail + 1);
      mean += static_cast<double>(d.tail - d.inject) / static_cast<double>(packets.size());
    }
    CHECK(makespan == std::stoll(row["makespan_cycles"]));
    CHECK(mean == doctest::Approx(std::stod(row["nlat_avg"])).epsilon(0.0001));
    ++checked;
  }
  MESSAGE(checked << " bursts");
  CHECK(checked > 0);
}

TEST_CASE("flit network in open loop, up to 80 % of saturation: mean latency of the seeds of seed_spread.csv") {
  if (!present("seed_spread.csv") || !present("seed_runs.csv") || !present("saturation.csv")) return;
  const auto key = [](Row& r) {
    return r["k"] + "," + r["num_vcs"] + "," + r["vc_buf_size"] + "," + r["speculative"] + "," + r["traffic"] + "," +
           r["packet_size"];
  };
  std::map<std::string, double> stable;
  for (Row& r : table(folder() + "saturation.csv"))
    if (!r["max_stable_offered"].empty()) stable[key(r)] = std::stod(r["max_stable_offered"]);
  std::map<std::string, Row> lengths;  // warm-up and window of a point
  for (Row& r : table(folder() + "seed_runs.csv")) lengths.emplace(key(r) + "," + r["offered"], r);
  int checked = 0;
  double worst = 0;
  for (Row& r : table(folder() + "seed_spread.csv")) {
    const std::string point = key(r) + "," + r["offered"];
    if (stable.count(key(r)) != 0 && std::stod(r["offered"]) > 0.8 * stable[key(r)]) continue;
    if (r["unstable_seeds"] != "0" || r["plat_avg_mean"].empty() || lengths.count(point) == 0) continue;
    Row& run = lengths[point];
    double mean = 0;
    constexpr int kSeeds = 3;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      FlitNetwork network(setting(r));
      mean += open_loop(network, {*pattern_named(r["traffic"]), std::stoi(r["k"]), std::stoi(r["packet_size"]),
                                  std::stod(r["offered"]), std::stoll(run["warmup_cycles"]),
                                  std::stoll(run["measured_cycles"]), seed})
                  .latency /
              kSeeds;
    }
    const double error = mean / std::stod(r["plat_avg_mean"]) - 1;
    CAPTURE(point);
    CHECK(std::abs(error) <= std::max(0.02, 3 * std::stod(r["plat_avg_rel_sd"])));
    worst = std::max(worst, std::abs(error));
    ++checked;
  }
  MESSAGE(checked << " points, largest error " << worst);
  CHECK(checked > 0);
}
