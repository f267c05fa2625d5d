// JSON, tables, HTML and timeline of the report layer, on made-up results.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../golden/report_sample.h"
#include "report/analysis.h"
#include "report/html.h"
#include "report/html_figures.h"
#include "report/json.h"
#include "report/json_writer.h"
#include "report/table.h"
#include "report/timeline.h"

using namespace sojourn;
using nlohmann::json;

TEST_CASE("JSON strings escape quotes, controls, markup and bytes that are not UTF-8") {
  std::string out;
  append_json_string(out, std::string("a\"\\\n</script>\x01\xff\xc3\xa9\xed\xa0\x80", 22));
  CHECK(out.find('<') == std::string::npos);
  const std::string back = json::parse(out).get<std::string>();
  CHECK(back.substr(0, 13) == "a\"\\\n</script>");
  CHECK(back.find("\xc3\xa9") != std::string::npos);
}

TEST_CASE("JSON doubles are the shortest text that reads back to the same value") {
  CHECK(json_double(0.1) == "0.1");
  CHECK(json_double(1.0) == "1");
  CHECK(json_double(-0.0) == "0");
  CHECK(json_double(std::nan("")) == "null");
  CHECK(json_double(std::numeric_limits<double>::infinity()) == "null");
  for (const double v : {1.0 / 3, 1e300, 5e-324, 123456789.123, -2.5})
    CHECK(std::strtod(json_double(v).c_str(), nullptr) == v);
}

TEST_CASE("compare JSON parses, keeps integers exact and differs only in wall_s between equal runs") {
  CompareResult a = testing::sample_comparison();
  a.runs[0].latency_ps = 9'007'199'254'740'993;  // not a double
  CompareResult b = a;
  b.runs[1].wall_s = 77.125;
  const json d = json::parse(compare_json(a));
  CHECK(d["schema"] == "sojourn.compare/1");
  CHECK(d["runs"].size() == a.runs.size());
  CHECK(d["runs"][0]["latency_ps"].get<std::int64_t>() == 9'007'199'254'740'993);
  CHECK(d["runs"][0]["energy_pj"]["total"].get<double>() == doctest::Approx(a.runs[0].energy.total() / 1000.0));
  CHECK(d["manifest"]["seed"] == 1);
  CHECK_FALSE(d.contains("interrupted"));
  CHECK(compare_json(a) != compare_json(b));
  CHECK(without_timings(compare_json(a)) == without_timings(compare_json(b)));
  b.interrupted = true;
  CHECK(json::parse(compare_json(b))["interrupted"] == true);
}

TEST_CASE("the winner's reason names the stage that gained most and the resource that changed") {
  const std::vector<Winner> all = winners(testing::sample_comparison());
  REQUIRE(all.size() == 6);
  CHECK(all[0].policy == "sojourn");
  CHECK(all[0].against == "static");
  CHECK(all[0].reason.starts_with("compute 12.0 -> 7.00 us"));
  CHECK(all[0].reason.find("static bound by link c1->c2") != std::string::npos);
}

TEST_CASE("names from files cannot steer the terminal or the page") {
  CHECK(printable("a\033[31mb\r\n") == "a?[31mb??");
  CHECK(html_escape("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#39;");
  const std::string evil = "</script><script>alert(1)</script>";
  const CompareResult r = testing::sample_comparison({evil, "dbrx"});
  const std::string page = compare_html(r, HtmlAssets{"v", "l", "e"});
  CHECK(page.find(evil) == std::string::npos);
  CHECK(page.find("alert(1)") != std::string::npos);
}

TEST_CASE("figures are valid JSON, with one colour a policy and every chiplet and link") {
  const CompareResult r = testing::sample_comparison();
  for (const Figure& f : {normalized_latency_figure(r, "prefill"), stage_figure(r, "decode"),
                          energy_figure(r, "prefill"), edp_figure(r, "decode"), pressure_figure(r), link_figure(r)}) {
    CAPTURE(f.id);
    const json spec = json::parse(f.spec);
    CHECK(spec["data"]["values"].size() > 0);
    CHECK(f.table.rows.size() > 0);
    for (const auto& row : f.table.rows) CHECK(row.size() == f.table.headers.size());
  }
  CHECK(json::parse(pressure_figure(r).spec)["data"]["values"].size() == r.runs.size() * 16);
  CHECK(json::parse(link_figure(r).spec)["data"]["values"].size() == r.runs.size() * r.package.links.size());
  const auto colours = policy_colours({"static", "hydra", "mine", "yours"});
  CHECK(colours.at("mine") != colours.at("yours"));
  CHECK(colours.at("hydra") == policy_colours({"hydra"}).at("hydra"));
}

TEST_CASE("a timeline is valid JSON with exact times, names and no overlap in a thread") {
  const Package package = testing::sample_package();
  std::ostringstream out;
  {
    TimelineWriter w(out);
    w.begin_run("dbrx, decode, hydra", &package);
    w.span(0, SpanTrack::chiplet, 3, 0, 1'234'567, "expert \"7\"");
    w.span(0, SpanTrack::chiplet, 3, 1'000'000, 2'000'000, "overlaps");
    w.span(0, SpanTrack::chiplet, 3, 2'000'000, 3'000'000, "fits lane 1 again");
    w.span(0, SpanTrack::link, 0, 5, 6, "x");
    w.span(0, SpanTrack::link, 0, 9, 8, "negative");
    w.counter(0, "queue", 10, 2.5);
    CHECK(w.dropped() == 1);
    CHECK(w.events() == 5);
    CHECK(w.finish());
  }
  CHECK(out.str().find("\"dur\":1.234567,") != std::string::npos);
  const json d = json::parse(out.str());
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  bool named = false;
  for (const json& e : d["traceEvents"]) {
    if (e["ph"] == "M") named = named || e["args"].value("name", "") == "c3 cores (lane 2)";
    if (e["ph"] != "X") continue;
    CHECK(e["dur"].get<double>() >= 0);
    tracks[{e["pid"], e["tid"]}].emplace_back(e["ts"], e["ts"].get<double>() + e["dur"].get<double>());
  }
  CHECK(named);
  for (auto& [id, spans] : tracks) {
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) CHECK(spans[i].first >= spans[i - 1].second - 1e-9);
  }
  CHECK(trace_microseconds(0) == "0");
  CHECK(trace_microseconds(1) == "0.000001");
  CHECK(trace_microseconds(std::numeric_limits<Ps>::max()) == "9223372036854.775807");
}

TEST_CASE("tables align wide and combining characters") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("\xe6\xa8\xa1") == 2);
  CHECK(display_width("e\xcc\x81") == 1);
  CHECK(significant(0.0012345, 3) == "0.00123");
  CHECK(significant(12345.6, 3) == "12346");
}
