// Packet by packet replay of the recorded mesh traces of ../shared/reference/noc/traces, where they are present.
#include <doctest/doctest.h>

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
  if (!std::filesystem::exists(folder() + "traces/summary.csv")) {
    MESSAGE("skipped: " << folder() << " is not here");
    return;
  }
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
