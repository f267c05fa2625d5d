// EPLB against recorded outputs of deepseek-ai/EPLB (commit d52c72d): the maps of its stable-sort variant exactly, and
// the shipped (unstable) ones by replica counts and sorted device loads. A few small cases live in tests/reference/eplb
// (the README's and FlashLB's examples, one synthetic Zipf load); all of them in ../shared/reference/eplb where
// present.
#include "policy/eplb.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/hash.h"

using namespace sojourn;
using nlohmann::json;

namespace {

std::vector<std::vector<float>> read_loads(const std::filesystem::path& csv) {
  std::vector<std::vector<float>> out;
  std::ifstream in(csv);
  for (std::string line; std::getline(in, line);) {
    out.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) out.back().push_back(std::stof(cell));
    if (out.back().empty()) out.pop_back();
  }
  return out;
}

/// Replicas joined by ",", experts by ";", layers by a newline: the text whose digest the reference states.
std::string text_of_log2phy(const EplbPlan& plan) {
  std::string out;
  for (int l = 0; l < plan.layers; ++l) {
    if (l > 0) out += '\n';
    for (int e = 0; e < plan.experts; ++e) {
      if (e > 0) out += ';';
      for (int i = 0; i < plan.count(l, e); ++i)
        out += (i > 0 ? "," : "") + std::to_string(plan.log2phy[(l * plan.experts + e) * plan.width + i]);
    }
  }
  return out;
}

std::vector<double> device_loads(const json& slots, const json& counts, const std::vector<float>& load, int devices) {
  std::vector<double> out(devices, 0.0);
  const std::size_t each = slots.size() / devices;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const int e = slots[s];
    out[s / each] += load[e] / counts[e].get<double>();
  }
  std::sort(out.begin(), out.end());
  return out;
}

void check_case(const json& golden, const std::vector<std::vector<float>>& loads) {
  std::vector<float> flat;
  for (const auto& row : loads) flat.insert(flat.end(), row.begin(), row.end());
  EplbShape shape;
  shape.layers = static_cast<int>(loads.size());
  shape.experts = static_cast<int>(loads[0].size());
  shape.replicas = golden["num_replicas"];
  shape.groups = golden["num_groups"];
  shape.nodes = golden["num_nodes"];
  shape.devices = golden["num_gpus"];
  const auto plan = eplb_plan(flat, shape);
  if (!plan) FAIL(plan.error().diagnostics.text());
  CHECK(plan->width == golden["log2phy_width"].get<int>());
  CHECK(plan->slots == shape.replicas);
  CHECK(plan->hierarchical == (shape.groups % shape.nodes == 0));
  for (int l = 0; l < shape.layers; ++l) {
    const auto cut = [&](const std::vector<int>& v, int n) {
      return std::vector<int>(v.begin() + l * n, v.begin() + (l + 1) * n);
    };
    CHECK(cut(plan->logcnt, shape.experts) == golden["logcnt"][l].get<std::vector<int>>());
    CHECK(cut(plan->phy2log, plan->slots) == golden["phy2log_stable"][l].get<std::vector<int>>());
    const double imbalance = eplb_imbalance(*plan, l, loads[l], shape.devices);
    CHECK(1.0 / imbalance == doctest::Approx(golden["balancedness_per_layer"][l].get<double>()).epsilon(1e-5));
    if (golden.contains("log2phy_stable"))
      for (int e = 0; e < shape.experts; ++e) {
        const auto from = plan->log2phy.begin() + (l * shape.experts + e) * plan->width;
        CHECK(std::vector<int>(from, from + plan->count(l, e)) ==
              golden["log2phy_stable"][l][e].get<std::vector<int>>());
      }
    if (!golden.contains("phy2log_as_shipped") || !golden["phy2log_as_shipped"].is_array()) continue;
    const auto shipped = device_loads(golden["phy2log_as_shipped"][l], golden["logcnt"][l], loads[l], shape.devices);
    const auto mine =
        device_loads(cut(plan->phy2log, plan->slots), cut(plan->logcnt, shape.experts), loads[l], shape.devices);
    for (std::size_t d = 0; d < mine.size(); ++d) CHECK(mine[d] == doctest::Approx(shipped[d]).epsilon(1e-5));
  }
  CHECK(sha256_hex(text_of_log2phy(*plan)) == golden["log2phy_stable_sha256"].get<std::string>());
}

int check_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& f : std::filesystem::directory_iterator(folder / "golden")) files.push_back(f.path());
  std::sort(files.begin(), files.end());
  int cases = 0;
  for (const auto& file : files) {
    if (file.extension() != ".jsonl") continue;
    const auto loads = read_loads(folder / "loads" / (file.stem().string() + ".csv"));
    REQUIRE(!loads.empty());
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      if (line.empty()) continue;
      const json golden = json::parse(line);
      const std::string name = golden["case"];
      CAPTURE(name);
      check_case(golden, loads);
      ++cases;
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("eplb gives the recorded maps of the original on the small cases of this repository") {
  CHECK(check_folder(std::string(SOJOURN_SOURCE_DIR) + "/tests/reference/eplb") == 5);
}

TEST_CASE("eplb gives every recorded map of the original") {
  const char* env = std::getenv("SOJOURN_SHARED");
  const std::string folder =
      (env != nullptr ? env : std::string(SOJOURN_SOURCE_DIR) + "/../shared") + "/reference/eplb";
  if (!std::filesystem::exists(folder + "/golden")) {
    MESSAGE("skipped: " << folder << " is not here");
    return;
  }
  const int cases = check_folder(folder);
  MESSAGE(cases << " cases");
  CHECK(cases > 0);
}
