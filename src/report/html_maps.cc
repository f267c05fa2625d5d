// Maps of the page: compute pressure on the chiplet grid, link utilisation. Also the shared look of every figure.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/analysis.h"
#include "report/html_figures.h"
#include "report/html_spec.h"
#include "report/text_table.h"

namespace sojourn {
namespace {

std::string case_name(const RunResult& r) { return r.model + ", " + r.mode; }

std::vector<std::string> cases_of(const CompareResult& result) {
  std::vector<std::string> out;
  for (const RunResult& r : result.runs)
    if (std::find(out.begin(), out.end(), case_name(r)) == out.end()) out.push_back(case_name(r));
  return out;
}

/// Small multiples, one a policy, of the (model, mode) chosen in a menu.
Json map_spec(const CompareResult& result, size_t columns) {
  const std::vector<std::string> cases = cases_of(result), policies = policies_of(result);
  Json spec = base_spec();
  spec["params"] = Json::array({{{"name", "shown"},
                                 {"value", cases.empty() ? "" : cases.front()},
                                 {"bind", {{"input", "select"}, {"options", cases}, {"name", "Model and mode: "}}}}});
  spec["transform"] = Json::array({{{"filter", "datum.shown == shown"}}});
  spec["facet"] = {{"field", "policy"},
                   {"type", "nominal"},
                   {"sort", policies},
                   {"title", nullptr},
                   {"header", {{"labelFontSize", 12}, {"labelFontWeight", "bold"}, {"labelLimit", 230}}}};
  spec["columns"] = columns;
  return spec;
}

struct Box {
  double x0 = 0, x1 = 0, y0 = 0, y1 = 0;
};

Box box_of(const Package& p, bool compute_only) {
  Box b{std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max(),
        std::numeric_limits<double>::lowest()};
  for (const Chiplet& c : p.chiplets) {
    if (compute_only && !c.compute) continue;
    b.x0 = std::min<double>(b.x0, c.x);
    b.x1 = std::max<double>(b.x1, c.x);
    b.y0 = std::min<double>(b.y0, c.y);
    b.y1 = std::max<double>(b.y1, c.y);
  }
  if (b.x1 < b.x0) return {};
  return b;
}

}  // namespace

Json base_spec() {
  Json spec;
  spec["$schema"] = "https://vega.github.io/schema/vega-lite/v5.json";
  spec["background"] = "white";
  spec["config"] = {{"font", "system-ui, 'DejaVu Sans', sans-serif"},
                    {"axis",
                     {{"labelColor", "#1a1a1a"},
                      {"titleColor", "#1a1a1a"},
                      {"labelFontSize", 11},
                      {"titleFontSize", 12},
                      {"gridColor", "#e8e8e8"},
                      {"titleFontWeight", "normal"}}},
                    {"legend",
                     {{"labelColor", "#1a1a1a"},
                      {"titleColor", "#1a1a1a"},
                      {"labelFontSize", 11},
                      {"titleFontSize", 12},
                      {"titleFontWeight", "normal"},
                      {"labelLimit", 200}}},
                    {"header", {{"labelColor", "#1a1a1a"}}},
                    {"view", {{"stroke", "#d5d5d5"}}}};
  return spec;
}

Json policy_colour_encoding(const std::vector<std::string>& policies) {
  const std::map<std::string, std::string> colours = policy_colours(policies);
  Json range = Json::array();
  for (const std::string& p : policies) range.push_back(colours.at(p));
  return {{"field", "policy"},
          {"type", "nominal"},
          {"scale", {{"domain", policies}, {"range", range}}},
          {"legend", {{"orient", "bottom"}, {"columns", 8}, {"title", nullptr}}}};
}

std::string spec_text(const Json& spec) {
  const std::string raw = spec.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string out;
  out.reserve(raw.size());
  for (const char c : raw) {
    if (c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  return out;
}

Figure pressure_figure(const CompareResult& result) {
  const Package& p = result.package;
  Figure f;
  f.id = "pressure";
  f.title = "Compute pressure on the chiplet grid";
  f.caption =
      "Share of the routed-MoE time in which a chiplet's cores are busy, mean over scored windows. One colour scale "
      "for "
      "every policy, model and mode.";
  f.table.text_columns = 3;
  f.table.headers = {"model", "mode", "policy", "mean %", "max %", "fullest chiplet", "max/mean"};
  Json rows = Json::array();
  double top = 0;
  for (const RunResult& r : result.runs) {
    const size_t n = std::min({r.chiplet_load.size(), static_cast<size_t>(p.compute_count), p.chiplets.size()});
    double sum = 0, most = 0;
    size_t fullest = 0;
    for (size_t c = 0; c < n; ++c) {
      const double load = r.chiplet_load[c];
      rows.push_back({{"shown", case_name(r)},
                      {"policy", r.policy},
                      {"x", p.chiplets[c].x},
                      {"y", p.chiplets[c].y},
                      {"chiplet", p.chiplets[c].name},
                      {"load", load}});
      sum += load;
      if (load > most) {
        most = load;
        fullest = c;
      }
    }
    top = std::max(top, most);
    if (n == 0) continue;
    const double mean = sum / static_cast<double>(n);
    f.table.rows.push_back({r.model, r.mode, r.policy, percent(mean), percent(most), p.chiplets[fullest].name,
                            mean > 0 ? fmt::format("{:.2f}", most / mean) : "-"});
  }
  if (rows.empty()) return f;
  const Box box = box_of(p, true);
  const int wide = static_cast<int>(std::max(box.x1 - box.x0, box.y1 - box.y0)) + 1;
  const int cell = std::clamp(220 / std::max(1, wide), 6, 48);
  const double limit = std::max(top, 1e-9);
  Json x = {{"field", "x"}, {"type", "ordinal"}, {"title", nullptr}, {"axis", nullptr}};
  Json y = {{"field", "y"}, {"type", "ordinal"}, {"title", nullptr}, {"axis", nullptr}};
  Json colour = {{"field", "load"},
                 {"type", "quantitative"},
                 {"title", "cores busy"},
                 {"scale", {{"domain", {0, limit}}, {"scheme", "yelloworangered"}}},
                 {"legend", {{"format", ".0%"}, {"orient", "right"}}}};
  Json tooltip = Json::array(
      {{{"field", "chiplet"}, {"type", "nominal"}}, {{"field", "load"}, {"type", "quantitative"}, {"format", ".1%"}}});
  Json layers = Json::array({{{"mark", {{"type", "rect"}, {"stroke", "white"}}},
                              {"encoding", {{"x", x}, {"y", y}, {"color", colour}, {"tooltip", tooltip}}}}});
  if (cell >= 30)
    layers.push_back({{"mark", {{"type", "text"}, {"fontSize", 10}}},
                      {"encoding",
                       {{"x", x},
                        {"y", y},
                        {"text", {{"field", "load"}, {"type", "quantitative"}, {"format", ".0%"}}},
                        {"color",
                         {{"condition", {{"test", fmt::format("datum.load > {}", 0.6 * limit)}, {"value", "white"}}},
                          {"value", "#1a1a1a"}}}}}});
  const int width = cell * (static_cast<int>(box.x1 - box.x0) + 1);
  Json spec = map_spec(result, static_cast<size_t>(std::max(1, 980 / (width + 24))));
  spec["data"] = {{"values", rows}};
  spec["spec"] = {{"width", width}, {"height", cell * (static_cast<int>(box.y1 - box.y0) + 1)}, {"layer", layers}};
  f.spec = spec_text(spec);
  return f;
}

Figure link_figure(const CompareResult& result) {
  const Package& p = result.package;
  Figure f;
  f.id = "links";
  f.title = "Link utilisation";
  f.caption =
      "Share of the routed-MoE time in which a link between chiplets carries data, mean over scored windows. Links are "
      "one-way: each is "
      "drawn to the right of its own direction of travel. Squares are compute chiplets, circles IO/memory chiplets.";
  f.table.text_columns = 3;
  f.table.headers = {"model", "mode", "policy", "mean %", "max %", "busiest link"};
  std::vector<const Chiplet*> at_node(static_cast<size_t>(std::max(0, p.nodes)), nullptr);
  Json nodes = Json::array();
  for (const Chiplet& c : p.chiplets) {
    if (c.node >= 0 && c.node < p.nodes) at_node[static_cast<size_t>(c.node)] = &c;
    nodes.push_back({{"x", c.x}, {"y", c.y}, {"name", c.name}, {"kind", c.compute ? "compute" : "IO/memory"}});
  }
  // A router is drawn at the chiplet it serves: the first one that an on-chip link joins it to.
  const auto is_node = [&](int node) { return node >= 0 && node < p.nodes; };
  for (const Link& u : p.links) {
    if (u.cls != LinkClass::noc || !is_node(u.from) || !is_node(u.to)) continue;
    const Chiplet*& router = at_node[static_cast<size_t>(u.to)];
    if (router == nullptr) router = at_node[static_cast<size_t>(u.from)];
  }
  const auto place = [&](int node) {
    return node >= 0 && node < p.nodes ? at_node[static_cast<size_t>(node)] : nullptr;
  };
  Json rows = Json::array();
  double top = 0;
  for (const RunResult& r : result.runs) {
    const size_t n = std::min(r.link_util.size(), p.links.size());
    double sum = 0, most = 0;
    size_t busiest = 0;
    for (size_t u = 0; u < n; ++u) {
      const double util = r.link_util[u];
      sum += util;
      if (util > most) {
        most = util;
        busiest = u;
      }
      const Chiplet* a = place(p.links[u].from);
      const Chiplet* b = place(p.links[u].to);
      if (a == nullptr || b == nullptr || a == b) continue;
      const double dx = b->x - a->x, dy = b->y - a->y, length = std::hypot(dx, dy);
      if (length == 0) continue;
      const double shift = 0.07 + 0.05 * (length - 1);
      const double sx = -dy / length * shift, sy = dx / length * shift;
      const double inset = std::min(0.22, 0.3 * length) / length;
      const auto round4 = [](double v) { return std::round(v * 1e4) / 1e4; };
      rows.push_back({{"shown", case_name(r)},
                      {"policy", r.policy},
                      {"link", p.links[u].name},
                      {"util", util},
                      {"x", round4(a->x + sx + dx * inset)},
                      {"y", round4(a->y + sy + dy * inset)},
                      {"x2", round4(b->x + sx - dx * inset)},
                      {"y2", round4(b->y + sy - dy * inset)}});
    }
    top = std::max(top, most);
    if (n == 0) continue;
    f.table.rows.push_back(
        {r.model, r.mode, r.policy, percent(sum / static_cast<double>(n)), percent(most), p.links[busiest].name});
  }
  if (rows.empty()) return f;
  const Box box = box_of(p, false);
  const double span = std::max({box.x1 - box.x0, box.y1 - box.y0, 1.0}) + 1;
  const double cell = std::clamp(288.0 / span, 10.0, 52.0);
  const Json sx = {{"domain", {box.x0 - 0.5, box.x1 + 0.5}}, {"nice", false}, {"zero", false}};
  const Json sy = {{"domain", {box.y0 - 0.5, box.y1 + 0.5}}, {"nice", false}, {"zero", false}, {"reverse", true}};
  const auto axis = [](const char* field, const Json& scale) {
    return Json{{"field", field}, {"type", "quantitative"}, {"scale", scale}, {"axis", nullptr}};
  };
  Json links = {{"mark", {{"type", "rule"}, {"strokeWidth", std::clamp(cell / 10, 1.5, 4.5)}}},
                {"encoding",
                 {{"x", axis("x", sx)},
                  {"y", axis("y", sy)},
                  {"x2", {{"field", "x2"}}},
                  {"y2", {{"field", "y2"}}},
                  {"color",
                   {{"field", "util"},
                    {"type", "quantitative"},
                    {"title", "busy"},
                    {"scale", {{"domain", {0, std::max(top, 1e-9)}}, {"scheme", "yelloworangered"}}},
                    {"legend", {{"format", ".0%"}, {"orient", "right"}}}}},
                  {"tooltip", Json::array({{{"field", "link"}, {"type", "nominal"}},
                                           {{"field", "util"}, {"type", "quantitative"}, {"format", ".1%"}}})}}}};
  Json chips = {
      {"data", {{"values", nodes}}},
      {"mark",
       {{"type", "point"}, {"filled", true}, {"opacity", 1}, {"size", cell * cell * 0.1}, {"color", "#5b6470"}}},
      {"encoding",
       {{"x", axis("x", sx)},
        {"y", axis("y", sy)},
        {"shape",
         {{"field", "kind"},
          {"type", "nominal"},
          {"title", nullptr},
          {"scale", {{"domain", {"compute", "IO/memory"}}, {"range", {"square", "circle"}}}}}},
        {"tooltip", Json::array({{{"field", "name"}, {"type", "nominal"}}})}}}};
  const double width = cell * (box.x1 - box.x0 + 1);
  Json spec = map_spec(result, static_cast<size_t>(std::max(1.0, 1000 / (width + 24))));
  spec["data"] = {{"values", rows}};
  spec["spec"] = {{"width", width}, {"height", cell * (box.y1 - box.y0 + 1)}, {"layer", Json::array({links, chips})}};
  f.spec = spec_text(spec);
  return f;
}

}  // namespace sojourn
