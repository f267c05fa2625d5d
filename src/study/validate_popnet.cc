// Reads pairs of packet and delay files, replays the packets.
//
//   packets of equal time, source and destination are matched in order of completion
//
// Assumption, source: validate_popnet.h.
#include "study/validate_popnet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <sstream>

#include "network/popnet/bench.h"

namespace sojourn {
namespace {

using popnet::Bench;
using popnet::BenchFormat;

constexpr std::array<const char*, 7> kColumns = {"k", "vcs", "in_buffer", "out_buffer", "flit_size", "seed", "routing"};
using Settings = std::array<std::int64_t, kColumns.size()>;
constexpr Settings kDefaults = {0, 3, 12, 12, 4, 1, 0};

std::vector<std::string> cells(std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) out.push_back(cell);
  return out;
}

/// By name; empty if the file is not there.
std::map<std::string, Settings> read_settings(const std::string& path, Diagnostics& problems) {
  std::map<std::string, Settings> out;
  if (!std::filesystem::exists(path)) return out;
  auto text = popnet::read_text(path, "--reference");
  if (!text) {
    problems.append(text.error().diagnostics);
    return out;
  }
  std::istringstream in(*text);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> header = cells(line);
  for (int number = 2; std::getline(in, line); ++number) {
    const std::vector<std::string> row = cells(line);
    if (row.empty()) continue;
    Settings s = kDefaults;
    std::string name;
    for (std::size_t i = 0; i < row.size() && i < header.size(); ++i) {
      if (header[i] == "name") name = row[i];
      const auto column = std::find(kColumns.begin(), kColumns.end(), header[i]);
      if (column == kColumns.end() || row[i].empty()) continue;
      std::istringstream value(row[i]);
      std::int64_t v = -1;
      if (!(value >> v) || !value.eof() || v < 0 || v > 1'000'000)
        problems.error({path, number, 0}, header[i], "'" + row[i] + "': not a whole number of 0 or more", "");
      s[static_cast<std::size_t>(column - kColumns.begin())] = v;
    }
    out[name] = s;
  }
  return out;
}

using Key = std::array<std::int64_t, 5>;  // time, source, destination
struct Recorded {
  Key key;
  double delay;
};

std::vector<Recorded> read_delays(const std::string& path, Diagnostics& problems) {
  std::vector<Recorded> out;
  auto text = popnet::read_text(path, "--reference");
  if (!text) {
    problems.append(text.error().diagnostics);
    return out;
  }
  std::istringstream in(*text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::istringstream words(line);
    Recorded r{};
    for (std::int64_t& v : r.key) words >> v;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (!(words >> r.delay) || r.delay < 0) {
      problems.error({path, number, 0}, "", "not a delay",
                     "expected: time source_x source_y destination_x destination_y delay");
      return out;
    }
    out.push_back(r);
  }
  return out;
}

Key key_of(const popnet::BenchRow& r) {
  return {static_cast<std::int64_t>(r.time), r.source[0], r.source[1], r.destination[0], r.destination[1]};
}

std::vector<ValidationCase> replay(const std::string& name, const popnet::PopnetConfig& config, const Bench& bench,
                                   const std::vector<Recorded>& recorded) {
  const std::string file = name + ".bench";
  const popnet::Run run = simulate(config, bench.packets, 1e18);
  std::map<Key, std::vector<double>> measured;
  std::vector<ValidationCase> out;
  double sum = 0, last = 0, recorded_sum = 0, recorded_last = 0;
  for (const popnet::Arrival& a : run.arrivals) {
    measured[key_of(bench.rows[a.packet])].push_back(a.time - a.ready);
    sum += a.time - a.ready;
    last = std::max(last, a.time);
  }
  std::map<Key, std::size_t> used;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const Recorded& r = recorded[i];
    const std::vector<double>& list = measured[r.key];
    const std::size_t n = used[r.key]++;
    out.push_back({file, fmt::format("{} #{}", name, i), "packet", r.delay, n < list.size() ? list[n] : 0});
    recorded_sum += r.delay;
    recorded_last = std::max(recorded_last, static_cast<double>(r.key[0]) + r.delay);
  }
  if (recorded.empty() || run.arrivals.empty()) return out;
  out.push_back({file, name, "plat_avg", recorded_sum / static_cast<double>(recorded.size()),
                 sum / static_cast<double>(run.arrivals.size())});
  out.push_back({file, name, "makespan", recorded_last, last});
  return out;
}

}  // namespace

std::vector<std::function<std::vector<ValidationCase>()>> plan_popnet(const std::string& folder,
                                                                      Diagnostics& problems) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".bench") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  std::vector<std::function<std::vector<ValidationCase>()>> jobs;
  if (names.empty()) return jobs;
  const auto settings = read_settings(folder + "/settings.csv", problems);
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name + ".bench", delays = folder + "/" + name + ".delay.txt";
    if (!std::filesystem::exists(delays)) {
      problems.error({path, 0, 0}, "", "has no recorded delays beside it", "expected " + delays);
      continue;
    }
    auto text = popnet::read_text(path, "--reference");
    auto bench = text ? popnet::read_bench(*text, path, BenchFormat{2, popnet::kLargestSide, false})
                      : tl::unexpected<Failure>(text.error());
    if (!bench) {
      problems.append(bench.error().diagnostics);
      continue;
    }
    const auto found = settings.find(name);
    const Settings s = found == settings.end() ? kDefaults : found->second;
    std::int64_t k = 1;
    for (const popnet::BenchRow& r : bench->rows)
      k = std::max({k, r.source[0] + 1, r.source[1] + 1, r.destination[0] + 1, r.destination[1] + 1});
    if (s[0] != 0 && s[0] < k) {
      problems.error({folder + "/settings.csv", 0, 0}, "k",
                     fmt::format("{}: {} has coordinates up to {}", s[0], name, k - 1), "");
      continue;
    }
    if (s[0] != 0) k = std::min<std::int64_t>(s[0], popnet::kLargestSide);
    popnet::PopnetConfig config = grid(static_cast<int>(k), s[6] == 1 ? popnet::Routing::torus : popnet::Routing::mesh);
    config.vcs = static_cast<int>(s[1]);
    config.in_buffer = static_cast<int>(s[2]);
    config.out_buffer = static_cast<int>(s[3]);
    config.flit_words = s[4];
    config.seed = static_cast<std::uint32_t>(s[5]);
    if (auto fine = popnet::check(config); !fine) {
      problems.append(fine.error().diagnostics);
      continue;
    }
    for (std::size_t i = 0; i < bench->packets.size(); ++i) {
      const popnet::BenchRow& r = bench->rows[i];
      bench->packets[i].source = static_cast<int>(r.source[0] * k + r.source[1]);
      bench->packets[i].destination = static_cast<int>(r.destination[0] * k + r.destination[1]);
    }
    const std::vector<Recorded> recorded = read_delays(delays, problems);
    jobs.emplace_back([=, b = std::move(*bench)] { return replay(name, config, b, recorded); });
  }
  return jobs;
}

}  // namespace sojourn
