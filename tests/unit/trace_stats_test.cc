// Statistics against values worked out by hand; the generator's determinism, its knobs, and fitting; exports.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "trace/api.h"

using namespace sojourn;

namespace {

std::string temp(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("sojourn_stats_" + std::to_string(::getpid()) + "_" + name))
      .string();
}

ParamSet knobs(const GivenParams& given) {
  auto p = resolve(synth_params(), given, {"test"}, "synth");
  if (!p) FAIL(p.error().diagnostics.text());
  return *p;
}

TraceStats stats(const GivenParams& given, std::uint64_t seed = 7) {
  auto d = synthesise(knobs(given), seed);
  REQUIRE(d);
  return trace_stats(*make_trace(std::move(*d)));
}

}  // namespace

TEST_CASE("load shape of known vectors") {
  const LoadShape even = load_shape({5, 5, 5, 5});
  CHECK(even.gini == doctest::Approx(0));
  CHECK(even.entropy_bits == doctest::Approx(2));
  CHECK(even.entropy == doctest::Approx(1));
  CHECK(even.max_over_mean == doctest::Approx(1));
  CHECK(even.top10pct_share == doctest::Approx(.25));
  const LoadShape one = load_shape({0, 0, 0, 8});
  CHECK(one.gini == doctest::Approx(.75));
  CHECK(one.entropy_bits == doctest::Approx(0));
  CHECK(one.max_over_mean == doctest::Approx(4));
  CHECK(load_shape({1, 2, 3, 4}).gini == doctest::Approx(.25));
  CHECK(load_shape({0, 0}).gini == 0);
  std::vector<double> eleven(11, 1.0);
  CHECK(load_shape(eleven).top10pct_share == doctest::Approx(2.0 / 11));  // ceil(1.1) = 2 experts
}

TEST_CASE("union, reuse and window correlation of a small trace") {
  TraceData d;
  d.meta.layers = 1;
  d.meta.experts = 4;
  d.meta.top_k = 2;
  d.meta.tokens = 1024;
  d.ids.resize(1);
  for (int t = 0; t < 1024; ++t) {  // tokens alternate between {0,1} and {1,2}
    d.ids[0].push_back(static_cast<std::uint16_t>(t % 2));
    d.ids[0].push_back(static_cast<std::uint16_t>(t % 2 + 1));
    d.sequence_id.push_back(t / 512);
    d.position.push_back(t % 512);
  }
  const TraceStats s = trace_stats(*make_trace(std::move(d)));
  CHECK(*s.layers[0].unions[0] == doctest::Approx(2));
  CHECK(*s.layers[0].unions[1] == doctest::Approx(3));
  CHECK(*s.layers[0].reuse == doctest::Approx(.5));
  CHECK(*s.layers[0].correlation[0] == doctest::Approx(1));
  CHECK(!s.layers[0].correlation[1]);
  CHECK(s.sequences == 2);
  CHECK(s.length_max == 512);
}

TEST_CASE("the generator gives the same trace for the same seed, and another for another") {
  const ParamSet p = knobs({{"tokens", "600"}, {"layers", "2"}});
  auto a = synthesise(p, 1), b = synthesise(p, 1), c = synthesise(p, 2);
  REQUIRE(a);
  CHECK(a->ids == b->ids);
  CHECK(a->sequence_id == b->sequence_id);
  CHECK(a->ids != c->ids);
  CHECK(a->meta.origin == Origin::synthetic);
  for (std::size_t t = 0; t < 600; ++t)
    for (int i = 1; i < 6; ++i)
      for (int j = 0; j < i; ++j)
        CHECK_FALSE(a->ids[1][t * 6 + static_cast<std::size_t>(i)] == a->ids[1][t * 6 + static_cast<std::size_t>(j)]);
}

TEST_CASE("each knob moves its statistic") {
  const GivenParams base{{"tokens", "4096"}, {"layers", "2"}};
  const auto with = [&](const char* name, const char* value) {
    GivenParams p = base;
    p.emplace_back(name, value);
    return stats(p);
  };
  CHECK(with("zipf", "0").mean.shape.gini < with("zipf", "1").mean.shape.gini);
  CHECK(*with("persistence", "0").mean.reuse + 0.2 < *with("persistence", "0.4").mean.reuse);
  CHECK(*with("drift", "1.5").mean.correlation[0] < *with("drift", "0").mean.correlation[0]);
  const TraceStats own = with("domain_mix", "1"), shared = with("domain_mix", "0");
  CHECK(own.domain_correlation[0][1] < shared.domain_correlation[0][1]);
  CHECK(shared.domain_correlation[0][0] == doctest::Approx(1));
}

TEST_CASE("a generator can produce every token of a model that uses all its experts") {
  CHECK(stats({{"experts", "4"}, {"top_k", "4"}, {"tokens", "64"}, {"layers", "1"}, {"zipf", "8"}}).mean.shape.gini ==
        doctest::Approx(0));
  auto p = knobs({{"experts", "4"}, {"top_k", "5"}});
  CHECK(!synthesise(p, 1));
}

TEST_CASE("fitting finds knobs for given statistics and writes down what it missed") {
  SynthTargets t;
  t.gini = .30;
  t.reuse = .35;
  auto fit = fit_synth(t, knobs({{"tokens", "4096"}, {"layers", "2"}}), 3);
  REQUIRE(fit);
  auto d = synthesise(fit->params, 3);
  const TraceStats s = trace_stats(*make_trace(std::move(*d)));
  CHECK(s.mean.shape.gini == doctest::Approx(.30).epsilon(.08));
  CHECK(*s.mean.reuse == doctest::Approx(.35).epsilon(.08));
  CHECK(fit->details.find("\"statistic\": \"gini\", \"target\": 0.3, \"reached\": ") != std::string::npos);
  auto again = fit_synth(t, knobs({{"tokens", "4096"}, {"layers", "2"}}), 3);
  CHECK(again->details == fit->details);
}

TEST_CASE("check: a weight that is no number and a phase that does not exist are pointed at") {
  const auto first_finding = [](auto spoil) {
    auto data = synthesise(knobs({{"tokens", "64"}, {"layers", "2"}, {"experts", "8"}, {"top_k", "2"}}), 3);
    REQUIRE(data);
    data->weights.assign(2, std::vector<std::uint16_t>(128, 0x3800));  // 0.5
    data->phase.assign(64, 0);
    spoil(*data);
    const std::string path = temp("odd.npz");
    REQUIRE(write_trace(*data, path));
    const auto checked = check_trace(path);
    std::filesystem::remove(path);
    REQUIRE(checked);
    return checked->empty() ? std::string() : checked->text();
  };
  CHECK(first_finding([](TraceData&) {}).empty());
  const auto nan = first_finding([](TraceData& d) { d.weights[1][5] = 0x7E00; });
  CHECK(nan.find("weights[1, 2, 1]: is not a finite number") != std::string::npos);
  CHECK(first_finding([](TraceData& d) { d.weights[0][0] = 0xFC00; }).find("not a finite") != std::string::npos);
  CHECK(first_finding([](TraceData& d) { d.weights[0][1] = 0xB800; }).find("is negative") != std::string::npos);
  CHECK(first_finding([](TraceData& d) { d.weights[0][1] = 0x8000; }).empty());  // -0
  CHECK(first_finding([](TraceData& d) { d.phase[7] = 9; }).find("phase[7]: 9 is neither") != std::string::npos);
}

TEST_CASE("synth, info, export and read_loads agree with each other") {
  const std::string path = temp("s.npz"), csv = temp("s.csv"), json = temp("s.json"), npy = temp("s.npy"),
                    lines = temp("s.jsonl"), back = temp("b.npz");
  auto made = synth_trace(
      {{"tokens", "700"}, {"layers", "3"}, {"experts", "16"}, {"top_k", "2"}, {"length_mean", "100"}}, "", 5, path);
  if (!made) FAIL(made.error().diagnostics.text());
  auto info = trace_info_json(path);
  REQUIRE(info);
  for (const char* key : {"\"schema\": \"sojourn.trace_info/1\"", "\"layers\": 3", "\"experts\": 16", "\"top_k\": 2",
                          "\"tokens\": 700", "\"origin\": \"synthetic\"",
                          "\"union\": {\"1\": ", "\"window_correlation\": {\"512\": ", "\"gini\": ", "\"manifest\": "})
    CHECK_MESSAGE(info->find(key) != std::string::npos, key);
  CHECK(info->find(made->sha256) != std::string::npos);
  CHECK(trace_info_text(path));
  CHECK(check_trace(path)->empty());
  for (const auto& [format, out] : {std::pair<std::string, std::string>{"eplb-csv", csv},
                                    {"expert-load", json},
                                    {"npy", npy},
                                    {"moe-balance", lines}}) {
    auto hash = export_trace(path, format, out);
    if (!hash) FAIL(hash.error().diagnostics.text());
  }
  const auto counts = read_loads(path)->counts;
  for (const std::string& f : {csv, json, npy, lines}) {
    auto l = read_loads(f);
    if (!l) FAIL(l.error().diagnostics.text());
    auto padded = l->counts;  // an expert never chosen may be unknown to a format that does not state their number
    if (padded.size() == counts.size()) CHECK(padded == counts);
  }
  auto imported = import_trace("auto", {lines}, {{"experts", "16"}}, back);
  REQUIRE(imported);
  CHECK(imported->format == "moe-balance");
  CHECK(read_loads(back)->counts == counts);
  auto loads = import_trace("auto", {csv}, {}, back);
  REQUIRE(loads);
  CHECK(loads->loads);
  CHECK(loads->json().find("trace synth --fit") != std::string::npos);
  CHECK(!export_trace(back, "npy", npy));
  CHECK(export_trace(path, "eplb_csv", csv).error().diagnostics.text().find("did you mean eplb-csv") !=
        std::string::npos);
  auto fitted = synth_trace({{"tokens", "1024"}}, back, 5, path);
  if (!fitted) FAIL(fitted.error().diagnostics.text());
  auto opened = open_trace(path);
  CHECK((*opened)->meta().origin == Origin::calibrated);
  CHECK((*opened)->meta().experts == 16);
  CHECK((*opened)->meta().details.find("residual") != std::string::npos);
  for (const std::string& f : {path, csv, json, npy, lines, back}) std::filesystem::remove(f);
}
