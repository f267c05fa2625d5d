// Vega-Lite specifications of the study's charts; the numbers of each stand in its table.
#include "report/reproduce_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/html_spec.h"
#include "report/reproduce_table.h"
#include "report/text_table.h"

namespace sojourn {
namespace {

constexpr Mode kModes[] = {Mode::prefill, Mode::decode};
const char* const kAll = "all (geomean)";

std::string label_of(const ReproduceResult& study, const std::string& arm) {
  for (const Arm& a : study.inputs.arms)
    if (a.id == arm) return a.label;
  return arm;
}

/// Colour by arm; the legend shows labels.
Json arm_colours(const ReproduceResult& study, const std::vector<std::string>& arms, int columns) {
  const auto colours = policy_colours(arms);
  Json domain = Json::array(), range = Json::array();
  for (const std::string& a : arms) {
    domain.push_back(label_of(study, a));
    range.push_back(colours.at(a));
  }
  return {
      {"field", "policy"},
      {"type", "nominal"},
      {"scale", {{"domain", domain}, {"range", range}}},
      {"legend",
       {{"orient", "bottom"}, {"columns", columns}, {"title", nullptr}, {"labelLimit", 330}, {"symbolOpacity", 1}}}};
}

Json labels(const ReproduceResult& study, const std::vector<std::string>& arms) {
  Json out = Json::array();
  for (const std::string& a : arms) out.push_back(label_of(study, a));
  return out;
}

Json quantitative(const std::string& field, const std::string& title, bool zero) {
  return {{"field", field}, {"type", "quantitative"}, {"title", title}, {"scale", {{"zero", zero}}}};
}

/// Panels in the order of the rows; left to itself the library sorts them by name.
Json panel_facet(const Json& rows, const Json& header) {
  Json order = Json::array();
  for (const Json& row : rows)
    if (std::find(order.begin(), order.end(), row["panel"]) == order.end()) order.push_back(row["panel"]);
  return {{"field", "panel"}, {"type", "nominal"}, {"sort", order}, {"title", nullptr}, {"header", header}};
}

Json header() { return {{"labelFontSize", 12}, {"labelFontWeight", "bold"}, {"labelLimit", 330}}; }

/// A dashed line at `value`.
Json rule_at(double value) {
  return {{"mark", {{"type", "rule"}, {"color", "#555"}, {"strokeDash", {4, 3}}}},
          {"encoding", {{"y", {{"datum", value}}}}}};
}

std::string interval(const Estimate& e, double factor = 1) {
  return e.has_interval ? fmt::format("{:.3f} .. {:.3f}", factor * e.low, factor * e.high) : "-";
}

std::vector<std::string> readings_with(const ReproduceResult& study, const StudyView& view,
                                       const std::function<std::string(const std::string&)>& place) {
  std::vector<std::string> out;
  for (const std::string& r : study.readings)
    if (view.has({place(r), "hcrmap"}, Mode::prefill) || view.has({place(r), "hcrmap"}, Mode::decode)) out.push_back(r);
  return out;
}

/// Lines over a sweep, a panel a mode and reading.
Figure lines(const ReproduceResult& study, Json rows, FigureTable table, const std::vector<std::string>& arms,
             const std::string& x_title, const std::string& y_title) {
  Figure f;
  f.table = std::move(table);
  if (rows.empty()) return f;
  Json spec = base_spec();
  spec["facet"] = panel_facet(rows, header());
  spec["data"] = {{"values", std::move(rows)}};
  spec["columns"] = 2;
  const Json x = {{"field", "x"}, {"type", "quantitative"}, {"title", x_title}, {"scale", {{"zero", false}}}};
  const Json colour = arm_colours(study, arms, 3);
  spec["spec"] = {
      {"width", 400},
      {"height", 190},
      {"layer",
       Json::array(
           {rule_at(1),
            {{"mark", {{"type", "area"}, {"opacity", 0.15}}},
             {"encoding",
              {{"x", x}, {"y", quantitative("low", y_title, false)}, {"y2", {{"field", "high"}}}, {"color", colour}}}},
            {{"mark", {{"type", "line"}, {"point", true}, {"tooltip", true}}},
             {"encoding", {{"x", x}, {"y", quantitative("value", y_title, false)}, {"color", colour}}}}})}};
  f.spec = spec_text(spec);
  return f;
}

}  // namespace

Figure readings_figure(const ReproduceResult& study) {
  Figure f;
  f.id = "readings";
  f.title = "Reduction of latency by hcrmap at each reading, beside the paper";
  f.caption =
      "Geometric mean over models, with the 95 % interval over windows and seeds. Black bar: the paper. Red triangle: "
      "what "
      "any policy could reach at most, with the MoE part at its proven lower bound.";
  f.table.headers = {"mode", "against", "reading", "measured %", "95 % interval", "paper %", "limit %"};
  f.table.text_columns = 3;
  Json rows = Json::array();
  for (const Mode mode : kModes)
    for (const char* rival : {"hydra", "moentwine", "pimoe", "strongest fixed"})
      for (const std::string& place : study.readings) {
        const bool fixed = std::string(rival) == "strongest fixed";
        const ReproduceCheck* c = study.find(fixed ? fmt::format("matched.{}.strongest", mode_name(mode))
                                                   : fmt::format("fig5.{}.vs-{}", mode_name(mode), rival),
                                             place);
        if (c == nullptr || !c->measured) continue;
        Json row = {
            {"panel", fmt::format("{}, over {}", mode_name(mode), rival)}, {"reading", place}, {"value", *c->measured}};
        if (c->low) row["low"] = *c->low, row["high"] = *c->high;
        if (c->paper) row["paper"] = *c->paper;
        if (c->limit) row["limit"] = *c->limit;
        rows.push_back(std::move(row));
        f.table.rows.push_back({mode_name(mode), rival, place, fmt::format("{:.1f}", *c->measured),
                                c->low ? fmt::format("{:.1f} .. {:.1f}", *c->low, *c->high) : "-",
                                c->paper ? paper_number(*c->paper, c->unit) : "-",
                                c->limit ? fmt::format("{:.1f}", *c->limit) : "-"});
      }
  if (rows.empty()) return f;
  Json spec = base_spec();
  spec["data"] = {{"values", rows}};
  spec["facet"] = panel_facet(rows, header());
  spec["columns"] = 4;
  const Json x = {{"field", "reading"},
                  {"type", "nominal"},
                  {"sort", study.readings},
                  {"title", nullptr},
                  {"axis", {{"labelAngle", -30}}}};
  const auto y = [](const char* field) { return quantitative(field, "reduction, %", true); };
  const Json colour = {{"field", "reading"},
                       {"type", "nominal"},
                       {"sort", study.readings},
                       {"scale", {{"domain", study.readings}, {"range", {"#08519c", "#6baed6", "#54278f", "#9e9ac8"}}}},
                       {"legend", nullptr}};
  spec["spec"] = {
      {"width", 190},
      {"height", 170},
      {"layer",
       Json::array(
           {{{"mark", {{"type", "bar"}, {"tooltip", true}}},
             {"encoding", {{"x", x}, {"y", y("value")}, {"color", colour}}}},
            {{"mark", {{"type", "rule"}, {"color", "#111"}}},
             {"encoding", {{"x", x}, {"y", y("low")}, {"y2", {{"field", "high"}}}}}},
            {{"mark", {{"type", "tick"}, {"color", "#000"}, {"thickness", 3}, {"size", 34}}},
             {"encoding", {{"x", x}, {"y", y("paper")}}}},
            {{"mark",
              {{"type", "point"}, {"shape", "triangle-down"}, {"filled", true}, {"color", "#cb181d"}, {"size", 55}}},
             {"encoding", {{"x", x}, {"y", y("limit")}}}}})}};
  f.spec = spec_text(spec);
  return f;
}

Figure traffic_figure(const ReproduceResult& study, const StudyView& view) {
  Figure f;
  f.id = "fig2a";
  f.title = "Figure 2 (a): communication-oriented placement of one copy";
  f.caption =
      "Relative to static, geometric mean over models: bytes x hops between chiplets, and latency. The paper: traffic "
      "falls much, latency little.";
  f.table.headers = {"mode", "policy", "traffic / static", "latency / static"};
  f.table.text_columns = 2;
  const std::vector<std::string> arms = {"hydra", "pimoe"};
  const std::vector<std::string> quantities = {"bytes x hops", "latency"};
  Json rows = Json::array();
  for (const Mode mode : kModes)
    for (const std::string& arm : arms) {
      const At a{kDefaultPlace, arm}, b{kDefaultPlace, "static"};
      const Estimate bytes =
          view.value_ratio(a, b, mode, [](const RunResult& r) { return static_cast<double>(r.energy.d2d); });
      const Estimate time = view.latency_ratio(a, b, mode);
      if (!bytes.valid || !time.valid) continue;
      rows.push_back(
          {{"panel", mode_name(mode)}, {"policy", arm}, {"quantity", quantities[0]}, {"value", bytes.value}});
      rows.push_back({{"panel", mode_name(mode)}, {"policy", arm}, {"quantity", quantities[1]}, {"value", time.value}});
      f.table.rows.push_back(
          {mode_name(mode), arm, fmt::format("{:.3f}", bytes.value), fmt::format("{:.3f}", time.value)});
    }
  if (rows.empty()) return f;
  Json spec = base_spec();
  spec["data"] = {{"values", rows}};
  spec["facet"] = panel_facet(rows, header());
  spec["columns"] = 2;
  spec["spec"] = {{"width", 300},
                  {"height", 170},
                  {"layer", Json::array({{{"mark", {{"type", "bar"}, {"tooltip", true}}},
                                          {"encoding",
                                           {{"x",
                                             {{"field", "quantity"},
                                              {"type", "nominal"},
                                              {"sort", quantities},
                                              {"title", nullptr},
                                              {"axis", {{"labelAngle", 0}}}}},
                                            {"xOffset", {{"field", "policy"}, {"sort", arms}}},
                                            {"y", quantitative("value", "relative to static", true)},
                                            {"color", arm_colours(study, arms, 4)}}}},
                                         rule_at(1)})}};
  f.spec = spec_text(spec);
  return f;
}

Figure copies_figure(const ReproduceResult& study, const StudyView& view, const std::string& id,
                     const std::string& title, const std::vector<std::string>& arms) {
  const std::vector<double> points = copies_points(study.options.quick);
  Json rows = Json::array();
  FigureTable table{{"mode", "reading", "policy", "copies", "latency / fixed, one copy", "95 % interval"}, {}, 3};
  for (const std::string& reading :
       readings_with(study, view, [](const std::string& r) { return copies_place(1.0, r); }))
    for (const Mode mode : kModes)
      for (const std::string& arm : arms)
        for (const double c : points) {
          const Estimate e =
              view.latency_ratio({copies_place(c, reading), arm}, {copies_place(1.0, reading), "fixed:nearest"}, mode);
          if (!e.valid) continue;
          rows.push_back({{"panel", fmt::format("{}, {}", mode_name(mode), reading)},
                          {"policy", label_of(study, arm)},
                          {"x", c},
                          {"value", e.value},
                          {"low", e.low},
                          {"high", e.high}});
          table.rows.push_back(
              {mode_name(mode), reading, arm, fmt::format("{}", c), fmt::format("{:.4f}", e.value), interval(e)});
        }
  Figure f = lines(study, std::move(rows), std::move(table), arms, "resident copies an expert (byte budget)",
                   "latency, fixed one copy = 1");
  f.id = id;
  f.title = title;
  f.caption =
      "Geometric mean over models; shaded: 95 % interval. Every budget runs on the pipeline that the largest budget "
      "needs.";
  return f;
}

Figure capacity_figure(const ReproduceResult& study, const StudyView& view, const std::string& id,
                       const std::string& title, const std::vector<std::string>& arms) {
  const std::vector<double> points = scale_points(study.options.quick);
  Json rows = Json::array();
  FigureTable table{
      {"mode", "reading", "policy", "capacity", "latency / static, full capacity", "95 % interval"}, {}, 3};
  for (const std::string& reading :
       readings_with(study, view, [](const std::string& r) { return scale_place(1.0, r); }))
    for (const Mode mode : kModes)
      for (const std::string& arm : arms)
        for (const double c : points) {
          const Estimate e =
              view.latency_ratio({scale_place(c, reading), arm}, {scale_place(1.0, reading), "static"}, mode);
          if (!e.valid) continue;
          rows.push_back({{"panel", fmt::format("{}, {}", mode_name(mode), reading)},
                          {"policy", label_of(study, arm)},
                          {"x", c},
                          {"value", e.value},
                          {"low", e.low},
                          {"high", e.high}});
          table.rows.push_back(
              {mode_name(mode), reading, arm, fmt::format("{}", c), fmt::format("{:.4f}", e.value), interval(e)});
        }
  Figure f = lines(study, std::move(rows), std::move(table), arms, "SRAM and HBM capacity (1 = Table 1)",
                   "latency, static at 1 = 1");
  f.id = id;
  f.title = title;
  f.caption =
      "Geometric mean over models; shaded: 95 % interval. Bandwidths stay, DRAM stays; every point runs on the "
      "pipeline "
      "that the smallest capacity needs.";
  return f;
}

Figure stacked_figure(const ReproduceResult& study, const StudyView& view, Mode mode,
                      const std::vector<std::string>& arms) {
  Figure f;
  f.id = fmt::format("fig5-{}", mode_name(mode));
  f.title = fmt::format("Figure 5 ({}): normalised end-to-end latency, {}", mode == Mode::prefill ? "a" : "b",
                        mode_name(mode));
  f.caption =
      "Relative to static's latency of the same model, mean over windows and seeds; lower is better. The MoE part is "
      "divided in the proportions of its critical group's stages. Black tick: the MoE part at its proven lower bound.";
  f.table.headers = {"model", "policy", "latency / static", "latency ms", "MoE %", "above bound %"};
  for (const char* s : kStageNames) f.table.headers.push_back(fmt::format("{} %", s));
  f.table.text_columns = 2;
  Json rows = Json::array();
  std::vector<std::string> models, names, colours;
  for (std::size_t m = 0; m < study.inputs.models.size(); ++m) {
    const std::string& model = study.inputs.models[m].name;
    const double unit = view.latency({kDefaultPlace, "static"}, mode, m);
    if (!(unit > 0)) continue;
    models.push_back(model);
    for (const std::string& arm : arms) {
      const At at{kDefaultPlace, arm};
      const double total = view.latency(at, mode, m);
      if (!(total > 0)) continue;
      const double moe =
          view.value(at, mode, m, [](const RunResult& r) { return static_cast<double>(r.moe_latency_ps); });
      const double bound =
          view.value(at, mode, m, [](const RunResult& r) { return static_cast<double>(r.lower_bound_ps); });
      std::vector<std::string> cells = {model,
                                        arm,
                                        fmt::format("{:.3f}", total / unit),
                                        significant(total / kPsPerMs),
                                        fmt::format("{:.1f}", 100 * moe / total),
                                        fmt::format("{:.1f}", 100 * (moe / bound - 1))};
      const auto push = [&](std::size_t part, double share) {
        rows.push_back({{"model", model},
                        {"policy", arm},
                        {"part", kLatencyParts[part].name},
                        {"order", part},
                        {"value", share / unit}});
      };
      push(0, total - moe);
      for (std::size_t s = 0; s < kStages; ++s) {
        const double share = view.value(at, mode, m, [&](const RunResult& r) {
          double all = 0;
          for (const Ps t : r.stages_ps) all += static_cast<double>(t);
          return all > 0 ? static_cast<double>(r.stages_ps[s]) / all : 0;
        });
        push(s + 1, share * moe);
        cells.push_back(fmt::format("{:.1f}", 100 * share));
      }
      rows.push_back({{"model", model},
                      {"policy", arm},
                      {"part", "__mark"},
                      {"order", 99},
                      {"value", (total - moe + bound) / unit}});
      f.table.rows.push_back(std::move(cells));
    }
  }
  if (rows.empty()) return f;
  for (const LatencyPart& p : kLatencyParts) {
    names.emplace_back(p.name);
    colours.emplace_back(p.colour);
  }
  f.spec = spec_text(stacked_spec(models, arms, rows, "latency / static", names, colours, true, true));
  return f;
}

Figure ratio_figure(const ReproduceResult& study, const StudyView& view, const std::string& id,
                    const std::string& title, const std::string& caption, const std::string& base,
                    const std::vector<std::string>& arms) {
  Figure f;
  f.id = id;
  f.title = title;
  f.caption = caption;
  f.table.headers = {"mode", "model", "policy", "latency / " + base, "95 % interval"};
  f.table.text_columns = 3;
  Json rows = Json::array();
  std::vector<std::string> order = {kAll};
  std::vector<std::string> used;
  for (const ModelShape& m : study.inputs.models) order.push_back(m.name);
  for (const Mode mode : kModes)
    for (const std::string& arm : arms) {
      const auto add = [&](const std::string& model, const std::vector<std::size_t>& only) {
        const Estimate e = view.latency_ratio({kDefaultPlace, arm}, {kDefaultPlace, base}, mode, only);
        if (!e.valid) return;
        if (std::find(used.begin(), used.end(), arm) == used.end()) used.push_back(arm);
        rows.push_back({{"panel", mode_name(mode)},
                        {"model", model},
                        {"policy", label_of(study, arm)},
                        {"value", e.value},
                        {"low", e.low},
                        {"high", e.high}});
        f.table.rows.push_back({mode_name(mode), model, arm, fmt::format("{:.4f}", e.value), interval(e)});
      };
      add(kAll, {});
      for (std::size_t m = 0; m < study.inputs.models.size(); ++m) add(study.inputs.models[m].name, {m});
    }
  if (rows.empty()) return f;
  Json spec = base_spec();
  spec["data"] = {{"values", rows}};
  spec["facet"] = panel_facet(rows, header());
  spec["columns"] = 1;
  const Json x = {{"field", "model"},
                  {"type", "nominal"},
                  {"sort", order},
                  {"title", nullptr},
                  {"axis", {{"labelAngle", -20}, {"labelLimit", 170}, {"grid", true}}}};
  const Json offset = {{"field", "policy"}, {"sort", labels(study, used)}};
  const Json colour = arm_colours(study, used, 3);
  const std::string axis = "latency / " + label_of(study, base);
  spec["spec"] = {
      {"width", 900},
      {"height", 190},
      {"layer",
       Json::array(
           {rule_at(1),
            {{"mark", {{"type", "rule"}, {"strokeWidth", 2}}},
             {"encoding",
              {{"x", x},
               {"xOffset", offset},
               {"y", quantitative("low", axis, false)},
               {"y2", {{"field", "high"}}},
               {"color", colour}}}},
            {{"mark", {{"type", "point"}, {"filled", true}, {"size", 60}, {"opacity", 1}, {"tooltip", true}}},
             {"encoding",
              {{"x", x}, {"xOffset", offset}, {"y", quantitative("value", axis, false)}, {"color", colour}}}}})}};
  spec["resolve"] = {{"scale", {{"y", "independent"}}}};
  f.spec = spec_text(spec);
  return f;
}

Figure ranking_figure(const ReproduceResult& study, const StudyView& view, const std::string& id,
                      const std::string& title, const std::string& caption, const std::vector<std::string>& arms) {
  Figure f;
  f.id = id;
  f.title = title;
  f.caption = caption;
  f.table.headers = {"mode", "policy", "latency / static", "95 % interval", "seeds", "EDP / static", "MoE over bound"};
  f.table.text_columns = 2;
  Json rows = Json::array();
  std::vector<std::string> used;
  for (const Mode mode : kModes)
    for (const std::string& arm : arms) {
      const At at{kDefaultPlace, arm}, base{kDefaultPlace, "static"};
      const Estimate e = view.latency_ratio(at, base, mode);
      if (!e.valid) continue;
      const Estimate edp = view.value_ratio(at, base, mode, [](const RunResult& r) { return r.edp_js; });
      double logs = 0;
      const std::vector<std::size_t> models = view.models({at}, mode);
      for (const std::size_t m : models)
        logs += std::log(view.value(at, mode, m, [](const RunResult& r) {
          return static_cast<double>(r.moe_latency_ps) / static_cast<double>(std::max<Ps>(1, r.lower_bound_ps));
        }));
      if (std::find(used.begin(), used.end(), arm) == used.end()) used.push_back(arm);
      rows.push_back({{"panel", mode_name(mode)},
                      {"policy", label_of(study, arm)},
                      {"value", e.value},
                      {"low", e.low},
                      {"high", e.high}});
      f.table.rows.push_back({mode_name(mode), label_of(study, arm), fmt::format("{:.4f}", e.value), interval(e),
                              std::to_string(e.seeds), edp.valid ? fmt::format("{:.4f}", edp.value) : "-",
                              fmt::format("{:.3f}", std::exp(logs / static_cast<double>(models.size())))});
    }
  if (rows.empty()) return f;
  Json spec = base_spec();
  spec["data"] = {{"values", rows}};
  spec["facet"] = panel_facet(rows, header());
  spec["columns"] = 2;
  const Json y = {{"field", "policy"},
                  {"type", "nominal"},
                  {"sort", labels(study, used)},
                  {"title", nullptr},
                  {"axis", {{"labelLimit", 300}}}};
  Json colour = arm_colours(study, used, 4);
  colour["legend"] = nullptr;
  const auto x = [](const char* field) {
    Json encoding = quantitative(field, "latency / static", true);
    encoding["axis"] = {{"tickCount", 6}};
    return encoding;
  };
  spec["spec"] = {
      {"width", 300},
      {"height", Json{{"step", 24}}},
      {"layer", Json::array({{{"mark", {{"type", "bar"}, {"tooltip", true}}},
                              {"encoding", {{"y", y}, {"x", x("value")}, {"color", colour}}}},
                             {{"mark", {{"type", "rule"}, {"color", "#111"}}},
                              {"encoding", {{"y", y}, {"x", x("low")}, {"x2", {{"field", "high"}}}}}},
                             {{"mark", {{"type", "text"}, {"align", "left"}, {"dx", 6}, {"fontSize", 11}}},
                              {"encoding",
                               {{"y", y},
                                {"x", x("high")},
                                {"text", {{"field", "value"}, {"type", "quantitative"}, {"format", ".3f"}}}}}}})}};
  f.spec = spec_text(spec);
  return f;
}

Figure heat_figure(const ReproduceResult& study, const StudyView& view, const std::vector<std::string>& arms) {
  Figure f;
  f.id = "fig8";
  f.title = "Figure 8: compute load on the chiplet grid";
  f.caption =
      "Busy time of a chiplet's cores over the mean of all chiplets, summed over layers, mean over seeds and windows; "
      "1 is "
      "an even load. One colour scale for every policy, model and mode, which ends at 0.7 and 1.3; the number in a "
      "cell is "
      "exact. Choose the model and mode in the menu.";
  f.table.headers = {"model", "mode", "policy", "fullest / mean", "emptiest / mean", "fullest chiplet"};
  f.table.text_columns = 3;
  f.table.last_is_text = true;
  const Package& p = study.inputs.packages.front().second;
  Json rows = Json::array();
  std::vector<std::string> cases;
  for (std::size_t m = 0; m < study.inputs.models.size(); ++m)
    for (const Mode mode : kModes)
      for (const std::string& arm : arms) {
        const At at{kDefaultPlace, arm};
        const auto n = static_cast<std::size_t>(p.compute_count);
        std::vector<double> load(n, 0);
        double sum = 0;
        for (std::size_t c = 0; c < n; ++c) {
          load[c] = view.value(at, mode, m,
                               [&](const RunResult& r) { return c < r.chiplet_load.size() ? r.chiplet_load[c] : 0; });
          sum += load[c];
        }
        if (!(sum > 0)) continue;
        const std::string shown = fmt::format("{}, {}", study.inputs.models[m].name, mode_name(mode));
        if (std::find(cases.begin(), cases.end(), shown) == cases.end()) cases.push_back(shown);
        for (std::size_t c = 0; c < n; ++c) {
          load[c] *= static_cast<double>(n) / sum;
          rows.push_back({{"shown", shown},
                          {"policy", arm},
                          {"x", p.chiplets[c].x},
                          {"y", p.chiplets[c].y},
                          {"chiplet", p.chiplets[c].name},
                          {"load", std::round(load[c] * 1e4) / 1e4}});
        }
        const auto most = std::max_element(load.begin(), load.end());
        const double least = *std::min_element(load.begin(), load.end());
        f.table.rows.push_back({study.inputs.models[m].name, mode_name(mode), arm, fmt::format("{:.3f}", *most),
                                fmt::format("{:.3f}", least),
                                p.chiplets[static_cast<std::size_t>(most - load.begin())].name});
      }
  if (rows.empty()) return f;
  std::sort(cases.begin(), cases.end(), [](const std::string& a, const std::string& b) {
    // A model with more experts than chiplets first: it says more than one with idle chiplets.
    return std::make_pair(a.find("deepseek-v2-lite") == std::string::npos, a) <
           std::make_pair(b.find("deepseek-v2-lite") == std::string::npos, b);
  });
  Json spec = base_spec();
  spec["data"] = {{"values", rows}};
  spec["params"] = Json::array({{{"name", "shown"},
                                 {"value", cases.front()},
                                 {"bind", {{"input", "select"}, {"options", cases}, {"name", "Model and mode: "}}}}});
  spec["transform"] = Json::array({{{"filter", "datum.shown == shown"}}});
  spec["facet"] = {{"field", "policy"}, {"type", "nominal"}, {"sort", arms}, {"title", nullptr}, {"header", header()}};
  spec["columns"] = 5;
  const Json x = {{"field", "x"}, {"type", "ordinal"}, {"axis", nullptr}},
             y = {{"field", "y"}, {"type", "ordinal"}, {"axis", nullptr}};
  const Json colour = {
      {"field", "load"},
      {"type", "quantitative"},
      {"title", "load / mean"},
      {"scale", {{"domain", {0.7, 1, 1.3}}, {"range", {"#2166ac", "#f7f7f7", "#b2182b"}}, {"clamp", true}}},
      {"legend", {{"format", ".1f"}, {"orient", "right"}, {"values", {0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3}}}}};
  const int cell = std::clamp(168 / std::max(1, p.width), 6, 42);
  spec["spec"] = {
      {"width", cell * p.width},
      {"height", cell * p.height},
      {"layer", Json::array({{{"mark", {{"type", "rect"}, {"stroke", "white"}, {"tooltip", true}}},
                              {"encoding", {{"x", x}, {"y", y}, {"color", colour}}}},
                             {{"mark", {{"type", "text"}, {"fontSize", 10}}},
                              {"encoding",
                               {{"x", x},
                                {"y", y},
                                {"text", {{"field", "load"}, {"type", "quantitative"}, {"format", ".2f"}}},
                                {"color",
                                 {{"condition", {{"test", "datum.load > 1.2 || datum.load < 0.8"}, {"value", "white"}}},
                                  {"value", "#1a1a1a"}}}}}}})}};
  f.spec = spec_text(spec);
  return f;
}

}  // namespace sojourn
