// The workload adapter: pipeline cuts, trace layers, routing and profiles.
#include <numeric>

#include "../theory/kit.h"
#include "moe/model_load.h"
#include "package/load.h"

using namespace kit;

namespace {

const std::string kRoot = SOJOURN_SOURCE_DIR;

ModelShape preset_model(const std::string& name) {
  auto m = load_model(name, {kRoot + "/models"});
  if (!m) FAIL(m.error().diagnostics.text());
  return *m;
}
Package preset_package(const std::string& name) {
  auto p = load_package(name, {kRoot + "/packages"});
  if (!p) FAIL(p.error().diagnostics.text());
  return *p;
}

/// Every block and MoE layer in exactly one stage, in order; one head, at the end.
void check_cover(const ModelShape& m, const std::vector<PipelineStage>& stages) {
  int block = 0, moe = 0;
  for (const PipelineStage& s : stages) {
    CHECK(s.first_block == block);
    CHECK(s.first_moe == moe);
    int here = 0;
    for (int b = block; b < block + s.block_count; ++b) here += m.is_moe(b);
    CHECK(here == s.moe_count);
    CHECK(s.head == (&s == &stages.back()));
    block += s.block_count;
    moe += s.moe_count;
  }
  CHECK(block == m.layers);
  CHECK(moe == m.moe_layers());
}

}  // namespace

TEST_CASE("DeepSeek-V3 on hcrmap-table1 is cut into the fewest packages whose tiers hold 1.3 copies") {
  const ModelShape m = preset_model("deepseek-v3");
  const Package p = preset_package("hcrmap-table1");
  const auto stages = partition(m, p, 1.3, false);
  REQUIRE(stages);
  check_cover(m, *stages);
  int most = 0, least = 1 << 30;
  for (const PipelineStage& s : *stages) {
    most = std::max(most, s.moe_count);
    least = std::min(least, s.moe_count);
    CHECK(static_cast<double>(expert_slots(p, m.expert_bytes(), s.fixed)) >= 1.3 * s.moe_count * m.experts);
  }
  CHECK(most - least <= 1);
  // 64 GiB of HBM and DRAM hold at most 1560 experts of 42 MiB, 4 layers of 333 copies: 58 layers need 15 packages.
  CHECK(m.expert_bytes() == 3 * 7168 * 2048);
  CHECK(stages->size() == 15);
}

TEST_CASE("more copies never need fewer packages") {
  const ModelShape m = preset_model("deepseek-v3");
  const Package p = preset_package("hcrmap-table1");
  std::size_t before = 0;
  for (const double copies : {1.0, 1.3, 2.0, 3.0}) {
    const auto stages = partition(m, p, copies, false);
    REQUIRE(stages);
    CHECK(stages->size() >= before);
    before = stages->size();
  }
}

TEST_CASE("per_layer gives every MoE layer a package of its own; leading dense blocks stay with the first") {
  const ModelShape m = preset_model("deepseek-v3");
  const auto stages = partition(m, preset_package("hcrmap-table1"), 1.3, true);
  REQUIRE(stages);
  check_cover(m, *stages);
  CHECK(static_cast<int>(stages->size()) == m.moe_layers());
  for (const PipelineStage& s : *stages) CHECK(s.moe_count == 1);
  CHECK(stages->front().block_count == m.dense_first + 1);
}

TEST_CASE("models that cannot run are told why") {
  Builder b(1);
  b.banks(Tier::sram, 0, 1, 100, kGB);
  const Package p = b.build();
  const auto text = [&](const ModelShape& m, double copies, bool per_layer) {
    const auto stages = partition(m, p, copies, per_layer);
    return stages ? std::string() : stages.error().diagnostics.text();
  };
  CHECK_FALSE(text(tiny_model(1, 2, 1, 10, 6), 1.0, false).empty());        // an expert of 120 B: no tier holds it
  const std::string crowded = text(tiny_model(1, 4, 1, 4, 5), 1.0, false);  // four of 40 B
  CHECK(crowded.find("does not fit") != std::string::npos);
  CHECK(text(tiny_model(1, 4, 1, 4, 5), 1.0, true).find("does not fit") != std::string::npos);
  CHECK(text(tiny_model(1, 2, 1, 4, 5), 1.0, false).empty());
  CHECK_FALSE(text(tiny_model(1, 2, 1, 4, 5), 1.5, false).empty());
  CHECK(text(tiny_model(1, 0, 0, 4, 5), 1.0, false).find("no routed experts") != std::string::npos);
}

TEST_CASE("expert_slots counts whole experts a bank set, striped over its banks, beside what is fixed") {
  Builder b(1);
  b.banks(Tier::sram, 0, 2, 100, kGB);
  b.banks(Tier::dram, 0, 1, 95, kGB);
  const Package p = b.build();
  CHECK(expert_slots(p, 40, {}) == 5 + 2);
  CHECK(expert_slots(p, 41, {}) == 4 + 2);       // 21 B a bank
  CHECK(expert_slots(p, 40, {41, 0}) == 3 + 2);  // 21 B a bank are taken
  CHECK(expert_slots(p, 40, {400, 95}) == 0);
}

TEST_CASE("trace_layer: one to one when the trace has enough layers, else spread evenly and in order") {
  for (int i = 0; i < 4; ++i) CHECK(trace_layer(i, 4, 4) == i);
  CHECK(trace_layer(3, 4, 9) == 3);
  CHECK(trace_layer(5, 6, 1) == 0);
  std::vector<int> used(16, 0);
  int before = 0;
  for (int i = 0; i < 58; ++i) {
    const int l = trace_layer(i, 58, 16);
    CHECK(l >= before);
    before = l;
    ++used[l];
  }
  CHECK(before == 15);
  for (const int n : used) CHECK((n == 3 || n == 4));
}

TEST_CASE("Router counts tokens by source i mod |C| and expert, ordered by source, then expert; padding is skipped") {
  const ModelShape m = tiny_model(1, 3, 2, 2, 2);
  const int ids[4][2] = {{0, 2}, {2, 1}, {2, 65535}, {0, 1}};
  const auto trace = tiny_trace(m, 1, 4, [&](int, int t, int j) { return ids[t][j]; });
  Router r(*trace, 3, 2);
  r.route(0, {0, 1, 2, 3});
  CHECK(r.demand() == std::vector<int>{2, 2, 3});
  CHECK(r.counts() == std::vector<int>{1, 0, 2, 1, 2, 1});
  std::vector<std::vector<int>> groups;
  for (const TokenGroup& g : r.groups()) groups.push_back({g.source, g.expert, g.tokens});
  CHECK(groups == std::vector<std::vector<int>>{{0, 0, 1}, {0, 2, 2}, {1, 0, 1}, {1, 1, 2}, {1, 2, 1}});
  r.route(0, {0});
  CHECK(r.demand() == std::vector<int>{1, 0, 1});
}

TEST_CASE("profile: means over warm-up windows only, transitions that sum to one, and slices of it") {
  const ModelShape m = tiny_model(2, 2, 1, 2, 2);
  const auto trace = tiny_trace(m, 4, 2, [](int l, int t, int) { return l == 0 ? t % 2 : 1; });
  WindowOptions o;
  o.size = 2;
  o.warmup = 2;
  o.scored = 2;
  const WindowPlan plan = plan_windows(*trace, o);
  const Profile p = profile_windows(*trace, plan, 2, 2, 2);
  CHECK(p.windows == 2);
  CHECK(p.demand == std::vector<double>{1, 1, 0, 2});
  CHECK(p.active == std::vector<double>{1, 1, 0, 1});
  CHECK(p.src(0, 0, 0) == 1);
  CHECK(p.src(0, 1, 1) == 1);
  CHECK(p.src(1, 1, 0) == 1);
  for (int l = 0; l < 2; ++l)
    for (int e = 0; e < 2; ++e) CHECK(p.p_next(l, e, 0) + p.p_next(l, e, 1) == doctest::Approx(1));
  CHECK(p.p_next(0, 0, 1) == doctest::Approx(3.0 / 4));  // two seen, Laplace one each
  const Profile second = slice(p, 1, 1);
  CHECK(second.layers == 1);
  CHECK(second.demand == std::vector<double>{0, 2});
  CHECK(second.src(0, 1, 1) == 1);
}

TEST_CASE("non-routed time is the longer of compute on all cores and streaming from HBM or the widest tier") {
  Builder b(2);
  b.banks(Tier::sram, 0, 1, 100, 3 * kGB);
  b.banks(Tier::dram, 1, 1, 100, kGB);
  CHECK(streaming_tier(b.build()) == Tier::sram);
  b.banks(Tier::hbm, 0, 1, 100, kGB / 2);
  const Package p = b.build();
  CHECK(streaming_tier(p) == Tier::hbm);
  BlockWork w;
  w.dense_macs = 1000;
  w.weight_bytes = 100;
  w.kv_read_bytes = 50;
  w.gate_macs = 10;
  CHECK(block_time(p, w, 1024).duration == 500'000);  // 2 GMAC/s against 150 B at 0.5 GB/s
  CHECK(block_time(p, w, 512).duration == 1'000'000);
  w.dense_macs = 10;
  CHECK(block_time(p, w, 1024).duration == 300'000);
  CHECK(gate_time(p, w, 1024) == 5'000);
  CHECK(gate_time(p, w, 512) == 10'000);
}
