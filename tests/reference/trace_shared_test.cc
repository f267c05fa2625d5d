// Every importer on the recorded traces of ../shared/traces, where they are present: counts of layers, tokens and
// experts, the warm-up rows dropped, and the statistics FORMATS.md states.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "trace/formats.h"
#include "trace/stats.h"

using namespace sojourn;

namespace {

std::string shared() {
  const char* env = std::getenv("SOJOURN_SHARED");
  return env != nullptr ? env : std::string(SOJOURN_SOURCE_DIR) + "/../shared";
}

bool present(const std::string& path) {
  if (std::filesystem::exists(path)) return true;
  MESSAGE("skipped: " << path << " is not here");
  return false;
}

Imported import(const std::string& folder, const std::string& expected, Diagnostics& warnings) {
  auto inputs = expand_inputs({shared() + "/traces/" + folder});
  REQUIRE(inputs);
  auto out = import_inputs("auto", std::move(*inputs), {}, warnings);
  if (!out) FAIL(out.error().diagnostics.text());
  CHECK((out->trace ? out->trace->meta.format : out->loads->meta.format) == expected);
  return std::move(*out);
}

void shape(const TraceData& d, int layers, int experts, int k, std::int64_t tokens, std::size_t sequences) {
  const TraceMeta& m = d.meta;
  CHECK(m.layers == layers);
  CHECK(m.experts == experts);
  CHECK(m.top_k == k);
  CHECK(m.tokens == tokens);
  CHECK(static_cast<std::size_t>(d.sequence_id.back()) + 1 == sequences);
}

bool warned(const Diagnostics& d, const std::string& text) {
  return std::any_of(d.items().begin(), d.items().end(),
                     [&](const Diagnostic& i) { return i.message.find(text) != std::string::npos; });
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.size() % 2 == 1 ? v[v.size() / 2] : (v[v.size() / 2 - 1] + v[v.size() / 2]) / 2;
}

/// Prints min/median/max over layers and checks the medians against FORMATS.md, whose table also counts held-back
/// files.
void table_row(const std::string& model, const TraceStats& s, double top10, double ratio, double gini,
               double tolerance) {
  std::vector<double> a, b, c;
  for (const LayerStats& l : s.layers) {
    a.push_back(l.shape.top10pct_share);
    b.push_back(l.shape.max_over_mean);
    c.push_back(l.shape.gini);
  }
  const auto line = [](const std::vector<double>& v) {
    return std::to_string(*std::min_element(v.begin(), v.end())) + "/" + std::to_string(median(v)) + "/" +
           std::to_string(*std::max_element(v.begin(), v.end()));
  };
  MESSAGE(model << ": top10 " << line(a) << " max/mean " << line(b) << " gini " << line(c) << " corr512 "
                << s.mean.correlation[0].value_or(-9) << " corr2048 " << s.mean.correlation[1].value_or(-9) << " reuse "
                << s.mean.reuse.value_or(-9));
  CHECK(median(a) == doctest::Approx(top10).epsilon(tolerance));
  CHECK(median(b) == doctest::Approx(ratio).epsilon(tolerance));
  CHECK(median(c) == doctest::Approx(gini).epsilon(2 * tolerance));
}

TraceStats stats(Imported& i) { return trace_stats(*make_trace(std::move(*i.trace))); }

}  // namespace

TEST_CASE("recorded traces import with the layers, experts and tokens their READMEs state") {
  if (!present(shared() + "/traces")) return;
  Diagnostics w;
  SUBCASE("gpt-oss-20b") {
    auto i = import("gpt-oss-20b", "gpt-oss", w);
    shape(*i.trace, 24, 32, 4, i.trace->meta.tokens, 11);
    CHECK(i.trace->weights.size() == 24);
    CHECK(std::count(i.trace->phase.begin(), i.trace->phase.end(), 1) == i.trace->meta.tokens);
    CHECK(i.trace->meta.domains.size() == 10);  // high_school_chemistry is in two benchmarks
    CHECK(warned(w, "loops"));
    table_row("gpt-oss-20b", stats(i), .30, 2.6, .42, .25);
  }
  SUBCASE("mixtral") {
    auto i = import("mixtral-8x7b-hdmoe", "hdmoe", w);
    shape(*i.trace, 32, 8, 2, i.trace->meta.tokens, 4);
    CHECK(i.trace->meta.domains == std::vector<std::string>{"coding", "extraction", "math", "reasoning"});
    CHECK(i.trace->meta.tokens > 4 * 8000);
    table_row("Mixtral-8x7B", stats(i), .16, 1.3, .09, .12);
  }
  SUBCASE("deepseek-v2-lite") {
    auto i = import("deepseek-v2-lite-moe-beyond", "moe-beyond", w);
    shape(*i.trace, 26, 64, 6, i.trace->meta.tokens, 25);
    CHECK(i.trace->meta.layer_ids.front() == 1);
    table_row("DeepSeek-V2-Lite", stats(i), .16, 1.8, .12, .15);
  }
  SUBCASE("qwen1.5 ocs") {
    auto i = import("qwen1.5-moe-a2.7b-ocs", "ocs", w);
    shape(*i.trace, 24, 60, 4, i.trace->meta.tokens, 3);
    CHECK(i.trace->weights.size() == 24);
    CHECK(i.trace->meta.domains == std::vector<std::string>{"cooking", "history", "ml_moe"});
    CHECK(std::count(i.trace->phase.begin(), i.trace->phase.end(), 1) >= 3 * 127);
    stats(i);
  }
  SUBCASE("qwen1.5 vllm log drops 8448 of 12805 rows") {
    auto i = import("qwen1.5-moe-vllm-log", "vllm-log", w);
    shape(*i.trace, 1, 60, 4, 12805 - 8448, 129);
    CHECK(warned(w, "8448 of 12805 rows"));
    CHECK(warned(w, "2 prefill and 127 decode passes"));
    table_row("Qwen1.5-MoE", stats(i), .13, 1.5, .09, .12);
  }
  SUBCASE("olmoe vllm log drops 2048 of 6519 rows") {
    auto i = import("olmoe-vllm-log", "vllm-log", w);
    shape(*i.trace, 1, 64, 8, 6519 - 2048, 1);
    CHECK(warned(w, "2048 of 6519 rows"));
  }
  SUBCASE("moelens") {
    auto i = import("deepseek-moe-16b-moelens", "moelens", w);
    shape(*i.trace, 27, 64, 6, 5, 1);
    CHECK(i.trace->ids[0][0] == 14);
  }
}

TEST_CASE("recorded counts import as loads") {
  if (!present(shared() + "/traces")) return;
  Diagnostics w;
  const auto sum = [](const LoadData& d, int layer) {
    double s = 0;
    const auto total = d.total();
    for (double v : total[static_cast<std::size_t>(layer)]) s += v;
    return s;
  };
  SUBCASE("deepseek-moe-16b counts") {
    auto i = import("deepseek-moe-16b-counts", "torch-counts", w);
    CHECK(i.loads->layers == 27);
    CHECK(i.loads->experts == 64);
    for (int l = 0; l < 27; ++l) CHECK(sum(*i.loads, l) == doctest::Approx(16932864));
    const LoadStats s = load_stats(*i.loads);
    std::vector<double> gini, ratio, top;
    for (const LoadShape& l : s.layers) {
      gini.push_back(l.gini);
      ratio.push_back(l.max_over_mean);
      top.push_back(l.top10pct_share);
    }
    CHECK(median(gini) == doctest::Approx(.09).epsilon(.06));
    CHECK(median(ratio) == doctest::Approx(1.5).epsilon(.04));
    CHECK(median(top) == doctest::Approx(.14).epsilon(.04));
  }
  SUBCASE("olmoe requests") {
    auto i = import("olmoe-request-counts", "experts4bit-sets", w);
    CHECK(i.loads->steps == 1024);
    CHECK(i.loads->layers == 16);
    CHECK(i.loads->experts == 64);
    CHECK(sum(*i.loads, 3) == 8 * 88098);
    std::vector<double> gini;
    for (const LoadShape& l : load_stats(*i.loads).layers) gini.push_back(l.gini);
    CHECK(median(gini) == doctest::Approx(.28).epsilon(.03));
  }
  SUBCASE("olmoe domains") {
    auto i = import("olmoe-mixtral-domain-counts/olmoe", "olmoe-pickle", w);
    CHECK(i.loads->steps == 3);
    CHECK(i.loads->meta.layer_ids == std::vector<int>{0, 7, 15});
    CHECK(sum(*i.loads, 0) == 3 * 8 * 208896.0);
    REQUIRE(i.loads->transitions.size() == 2);
    double pairs = 0;
    for (double v : i.loads->transitions[0].counts) pairs += v;
    CHECK(pairs == 3 * 8 * 208896.0);
  }
  SUBCASE("mixtral domains, cross-layer files alone") {
    auto i = import("olmoe-mixtral-domain-counts/mistral/expert_counts_crosslayer", "olmoe-pickle", w);
    auto plain = import("olmoe-mixtral-domain-counts/mistral/expert_counts", "olmoe-pickle", w);
    CHECK(i.loads->counts == plain.loads->counts);
  }
  SUBCASE("route profile") {
    auto i = import("qwen3-30b-hybrid-placement", "route-profile", w);
    CHECK(i.loads->layers == 48);
    CHECK(i.loads->experts == 128);
    CHECK(sum(*i.loads, 0) == 96 * 8);
    CHECK(warned(w, "passed over"));
  }
  SUBCASE("switch") {
    for (int e : {64, 128}) {
      auto i = import("switch-base-batch-counts/encoder_" + std::to_string(e), "switch-batch", w);
      CHECK(i.loads->experts == e);
      CHECK(i.loads->meta.layer_ids == std::vector<int>{1, 3, 5, 7, 9, 11});
      CHECK(i.loads->steps > 90);
    }
  }
  SUBCASE("prompt counts are not traffic") {
    auto i = import("qwen3-coder-next-profile", "prompt-profile", w);
    CHECK(i.loads->layers == 48);
    CHECK(i.loads->experts == 512);
    CHECK(!i.loads->traffic);
    CHECK(warned(w, "prompt counts"));
  }
  SUBCASE("eplb loads") {
    if (!present(shared() + "/reference/eplb/loads")) return;
    auto inputs = expand_inputs({shared() + "/reference/eplb/loads/real_mixtral_coding.csv"});
    REQUIRE(inputs);
    auto i = import_inputs("auto", std::move(*inputs), {}, w);
    REQUIRE(i);
    CHECK(i->loads->meta.format == "eplb-csv");
    CHECK(i->loads->experts == 8);
    auto trace = import("mixtral-8x7b-hdmoe/experts_coding_mixtral.json", "hdmoe", w);
    CHECK(loads_of(*make_trace(std::move(*trace.trace))).counts == i->loads->counts);
  }
}
