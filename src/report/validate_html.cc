// Tables, JSON and page of a network validation; see validate_html.h.
#include "report/validate_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "report/html_page.h"
#include "report/html_spec.h"
#include "report/json_writer.h"

namespace sojourn {
namespace {

std::string signed_percent(double x) { return fmt::format("{:+.1f}", 100 * x); }
std::string plain_percent(double x) { return fmt::format("{:.1f}", 100 * x); }

/// Mean error over all rows of one kind, weighted by their cases.
double mean_error(const std::vector<ModelRow>& rows, const char* what, double ModelRow::*error) {
  double sum = 0, n = 0;
  for (const ModelRow& r : rows)
    if (r.what == what || (std::string(what) == "traffic" && r.what != "layer")) {
      sum += r.*error * static_cast<double>(r.n);
      n += static_cast<double>(r.n);
    }
  return n > 0 ? sum / n : 0;
}

struct Advice {
  std::string model, when, errors;
};

std::vector<Advice> advice(const std::vector<ModelRow>& rows) {
  const auto pct = [&](const char* what, double ModelRow::*e) { return plain_percent(mean_error(rows, what, e)); };
  return {{"closed", "a first look, and the paper's own equations; never for a phase of communication alone",
           fmt::format("traffic {} %, layers {} %", pct("traffic", &ModelRow::closed_mean),
                       pct("layer", &ModelRow::closed_mean))},
          {"packet", "comparing policies and packages, whole layers and studies (the default)",
           fmt::format("traffic {} %, layers {} %", pct("traffic", &ModelRow::packet_mean),
                       pct("layer", &ModelRow::packet_mean))},
          {"flit", "buffers, virtual channels, arbitration, routing and single packets; the last word on communication",
           "what the two above are measured against"}};
}

FigureTable rows_table(const std::vector<ModelRow>& rows) {
  FigureTable t;
  t.headers = {"what",           "mode",   "cases",     "closed: mean |error| %",       "bias %", "largest %",
               "packet: mean %", "bias %", "largest %", "flit / packet, processor time"};
  t.text_columns = 2;
  for (const ModelRow& r : rows)
    t.rows.push_back({r.what, r.mode, std::to_string(r.n), plain_percent(r.closed_mean), signed_percent(r.closed_bias),
                      plain_percent(r.closed_worst), plain_percent(r.packet_mean), signed_percent(r.packet_bias),
                      plain_percent(r.packet_worst), fmt::format("{:.0f}", r.speed)});
  return t;
}

Json scale(const std::vector<std::string>& domain, const std::vector<std::string>& range) {
  return {{"domain", domain}, {"range", range}};
}

/// "setting offered seed n" of an open-loop case.
bool split_open_loop(const std::string& id, std::string& setting, double& offered, std::string& seed) {
  std::vector<std::string> words;
  std::istringstream in(id);
  for (std::string w; in >> w;) words.push_back(w);
  if (words.size() < 4 || words[words.size() - 2] != "seed") return false;
  seed = words.back();
  offered = std::strtod(words[words.size() - 3].c_str(), nullptr);
  setting.clear();
  for (std::size_t i = 0; i + 3 < words.size(); ++i) setting += (i ? " " : "") + words[i];
  return true;
}

Figure curves(const NetworkValidation& v) {
  Figure f;
  f.id = "curves";
  f.title = "Latency against load: reference and ours";
  f.caption =
      "Mean packet latency from creation to the tail's arrival, for the loads the reference is stable at. Pick a "
      "setting: mesh, virtual channels, buffer, speculation, traffic, flits a packet.";
  f.table.headers = {"setting", "offered, flits/node/cycle", "reference, cycles", "ours, cycles", "error %"};
  Json rows = Json::array();
  std::set<std::string> settings;
  for (const ValidationCase& c : v.cases) {
    std::string setting, seed;
    double offered = 0;
    if (c.quantity != "plat_avg" || c.file != "open_loop.csv" || !split_open_loop(c.id, setting, offered, seed))
      continue;
    settings.insert(setting);
    rows.push_back({{"setting", setting}, {"offered", offered}, {"latency", c.reference}, {"who", "reference"}});
    rows.push_back({{"setting", setting}, {"offered", offered}, {"latency", c.measured}, {"who", "ours"}});
    f.table.rows.push_back({setting, fmt::format("{:.4f}", offered), fmt::format("{:.2f}", c.reference),
                            fmt::format("{:.2f}", c.measured), signed_percent(c.error())});
  }
  if (settings.empty()) return {};
  Json spec = base_spec();
  spec["width"] = 720;
  spec["height"] = 320;
  spec["data"] = {{"values", rows}};
  spec["params"] = Json::array({{{"name", "setting"},
                                 {"value", *settings.begin()},
                                 {"bind", {{"input", "select"}, {"options", settings}, {"name", "setting "}}}}});
  spec["transform"] = Json::array({{{"filter", "datum.setting == setting"}}});
  spec["mark"] = {{"type", "line"}, {"point", true}, {"tooltip", true}};
  spec["encoding"] = {
      {"x", {{"field", "offered"}, {"type", "quantitative"}, {"title", "offered load, flits a node and cycle"}}},
      {"y", {{"field", "latency"}, {"type", "quantitative"}, {"title", "mean packet latency, cycles"}}},
      {"strokeDash", {{"field", "who"}, {"type", "nominal"}, {"legend", nullptr}, {"sort", {"ours", "reference"}}}},
      {"color",
       {{"field", "who"},
        {"type", "nominal"},
        {"scale", scale({"reference", "ours"}, {"#d55e00", "#0072b2"})},
        {"legend", {{"orient", "bottom"}, {"title", nullptr}}}}}};
  f.spec = spec_text(spec);
  return f;
}

Figure histogram(const NetworkValidation& v) {
  Figure f;
  f.id = "errors";
  f.title = "Errors against the reference";
  f.caption =
      "Cases by relative error. Random traffic is drawn anew, so that rows with few packets differ as two seeds of the "
      "reference do; packet traces and fixed destinations have no such spread.";
  static const double kEdges[] = {-0.10, -0.05, -0.02, -0.01, -0.005, -0.0005, 0.0005, 0.005, 0.01, 0.02, 0.05, 0.10};
  static const char* kNames[] = {"below -10", "-10 to -5", "-5 to -2", "-2 to -1", "-1 to -0.5", "-0.5 to 0", "0",
                                 "0 to 0.5",  "0.5 to 1",  "1 to 2",   "2 to 5",   "5 to 10",    "above 10"};
  std::map<std::string, std::vector<int>> counts;
  for (const ValidationCase& c : v.cases) {
    std::vector<int>& list = counts[c.quantity];
    list.resize(std::size(kNames));
    ++list[static_cast<std::size_t>(std::upper_bound(std::begin(kEdges), std::end(kEdges), c.error()) - kEdges)];
  }
  if (counts.empty()) return {};
  Json rows = Json::array(), order = Json::array();
  for (const char* name : kNames) order.push_back(name);
  f.table.headers = {"error, %"};
  for (const auto& [quantity, list] : counts) f.table.headers.push_back(quantity);
  for (std::size_t b = 0; b < std::size(kNames); ++b) {
    std::vector<std::string> cells{kNames[b]};
    for (const auto& [quantity, list] : counts) {
      rows.push_back({{"quantity", quantity}, {"error", kNames[b]}, {"cases", list[b]}});
      cells.push_back(std::to_string(list[b]));
    }
    f.table.rows.push_back(cells);
  }
  Json spec = base_spec();
  spec["data"] = {{"values", rows}};
  spec["facet"] = {{"field", "quantity"}, {"type", "nominal"}, {"title", nullptr}};
  spec["columns"] = 3;
  spec["spec"] = {{"width", 300},
                  {"height", 150},
                  {"mark", {{"type", "bar"}, {"color", "#0072b2"}, {"tooltip", true}}},
                  {"encoding",
                   {{"x", {{"field", "error"}, {"type", "ordinal"}, {"sort", order}, {"title", "relative error, %"}}},
                    {"y", {{"field", "cases"}, {"type", "quantitative"}, {"title", "cases"}}}}}};
  spec["resolve"] = {{"scale", {{"y", "independent"}}}};
  f.spec = spec_text(spec);
  return f;
}

Figure model_errors(const NetworkModels& m) {
  Figure f;
  f.id = "models";
  f.title = "Closed form and packet model against flit, on real MoE layers";
  f.caption =
      "Each dot is one layer's dispatch, gather or whole time under a model, relative to the flit network. Dispatch "
      "and "
      "gather are sent all at once, the hardest case; inside a layer they are spread over it.";
  f.table.headers = {"model",      "mode",       "policy",   "what",           "window",
                     "closed, us", "packet, us", "flit, us", "closed error %", "packet error %"};
  f.table.text_columns = 4;
  Json rows = Json::array();
  for (const ModelCase& c : m.cases) {
    const auto us = [](Ps t) { return static_cast<double>(t) / kPsPerUs; };
    const double flit = us(c.flit), closed = us(c.closed) / flit - 1, packet = us(c.packet) / flit - 1;
    for (const auto& [network, error] : {std::pair("closed", closed), {"packet", packet}})
      rows.push_back({{"kind", c.what + ", " + c.mode},
                      {"network", network},
                      {"error", 100 * error},
                      {"model", c.model},
                      {"policy", c.policy}});
    f.table.rows.push_back({c.model, c.mode, c.policy, c.what, std::to_string(c.window),
                            fmt::format("{:.2f}", us(c.closed)), fmt::format("{:.2f}", us(c.packet)),
                            fmt::format("{:.2f}", flit), signed_percent(closed), signed_percent(packet)});
  }
  if (m.cases.empty()) return {};
  Json spec = base_spec();
  spec["data"] = {{"values", rows}};
  spec["width"] = 720;
  spec["height"] = 260;
  spec["mark"] = {{"type", "point"}, {"filled", true}, {"opacity", 0.5}, {"tooltip", true}};
  spec["encoding"] = {
      {"y", {{"field", "kind"}, {"type", "nominal"}, {"title", nullptr}}},
      {"yOffset", {{"field", "network"}, {"type", "nominal"}}},
      {"x", {{"field", "error"}, {"type", "quantitative"}, {"title", "error of the makespan against flit, %"}}},
      {"color",
       {{"field", "network"},
        {"type", "nominal"},
        {"scale", scale({"closed", "packet"}, {"#e69f00", "#0072b2"})},
        {"legend", {{"orient", "bottom"}, {"title", nullptr}}}}}};
  f.spec = spec_text(spec);
  return f;
}

}  // namespace

std::string models_table(const NetworkModels& models, TextStyle style) {
  const std::vector<ModelRow> rows = models.rows();
  if (rows.empty()) return {};
  TextTable t;
  t.column("what", "", TextTable::Align::left);
  t.column("mode", "", TextTable::Align::left);
  for (const auto& [name, unit] : {std::pair("cases", ""),
                                   {"closed", "mean |e| %"},
                                   {"", "bias %"},
                                   {"", "largest %"},
                                   {"packet", "mean |e| %"},
                                   {"", "bias %"},
                                   {"", "largest %"},
                                   {"flit/packet", "cpu time"}})
    t.column(name, unit);
  for (const std::vector<std::string>& cells : rows_table(rows).rows) t.row(cells);
  std::string out = "Network models against flit, makespan on MoE layers (dispatch and gather: all sent at once)\n" +
                    t.text(style) + "\nUse this model when\n";
  TextTable use;
  for (const char* name : {"model", "use it for", "error against flit, mean"})
    use.column(name, "", TextTable::Align::left);
  for (const Advice& a : advice(rows)) use.row({a.model, a.when, a.errors});
  return out + use.text(style);
}

void write_models(JsonWriter& w, const NetworkModels& models) {
  w.key("models").begin_array();
  for (const ModelCase& c : models.cases)
    w.begin_object()
        .field("model", c.model)
        .field("mode", c.mode)
        .field("policy", c.policy)
        .field("window", c.window)
        .field("layer", c.layer)
        .field("what", c.what)
        .field("bytes", c.bytes)
        .field("closed_ps", c.closed)
        .field("packet_ps", c.packet)
        .field("flit_ps", c.flit)
        .field("packet_cpu_s", c.packet_s)
        .field("flit_cpu_s", c.flit_s)
        .end_object();
  w.end_array().key("model_summary").begin_array();
  for (const ModelRow& r : models.rows())
    w.begin_object()
        .field("what", r.what)
        .field("mode", r.mode)
        .field("n", static_cast<std::int64_t>(r.n))
        .field("closed_mean_abs", r.closed_mean)
        .field("closed_bias", r.closed_bias)
        .field("closed_max_abs", r.closed_worst)
        .field("packet_mean_abs", r.packet_mean)
        .field("packet_bias", r.packet_bias)
        .field("packet_max_abs", r.packet_worst)
        .field("flit_over_packet_cpu", r.speed)
        .end_object();
  w.end_array();
}

std::string validate_html(const NetworkValidation& reference, const NetworkModels& models, const HtmlAssets& assets) {
  Page page;
  page.begin("Network validation");
  page.out +=
      "<p class=\"sub\">How far Sojourn's network models are from recorded simulator data and "
      "from one another. Errors are relative: ours / reference - 1.</p>\n";
  if (!reference.cases.empty()) {
    page.out += "<h2>Flit network against recorded simulators</h2>\n";
    FigureTable t;
    t.headers = {"quantity", "cases", "median |error| %", "95 % of cases within %", "largest %"};
    for (const ValidationSummary& s : reference.summary())
      t.rows.push_back({s.quantity, std::to_string(s.n), fmt::format("{:.3f}", 100 * s.median_abs),
                        fmt::format("{:.3f}", 100 * s.p95_abs), fmt::format("{:.3f}", 100 * s.max_abs)});
    page.table(t);
    for (const Figure& f : {curves(reference), histogram(reference)})
      if (!f.spec.empty()) page.figure(f);
    if (!reference.speed.empty()) {
      FigureTable speed;
      speed.headers = {"speed, one core", "flit-router-hops a second", "times the reference"};
      for (const ValidationSpeed& s : reference.speed)
        speed.rows.push_back(
            {s.id, fmt::format("{:.3g}", s.hops_per_s),
             s.reference_hops_per_s > 0 ? fmt::format("{:.1f}", s.hops_per_s / s.reference_hops_per_s) : "-"});
      page.out += "<h3>Speed</h3>\n";
      page.table(speed);
    }
  }
  if (!models.cases.empty()) {
    const std::vector<ModelRow> rows = models.rows();
    page.out += "<h2>Use this model when</h2>\n";
    FigureTable use;
    use.headers = {"model", "use it for", "error against flit, mean"};
    use.text_columns = 3;
    for (const Advice& a : advice(rows)) use.rows.push_back({a.model, a.when, a.errors});
    page.table(use);
    page.table(rows_table(rows));
    page.figure(model_errors(models));
  }
  page.end(assets);
  return page.out;
}

}  // namespace sojourn
