// Bar charts of the page: latency, stages, energy, EDP.
#include "report/html_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/analysis.h"
#include "report/html_spec.h"
#include "report/text_table.h"

namespace sojourn {
namespace {

double ms(Ps t) { return static_cast<double>(t) / kPsPerMs; }
double mj(Fj e) { return static_cast<double>(e) / 1e12; }

struct Term {
  const char* name;
  const char* colour;
  Fj EnergyTerms::*value;
};
constexpr std::array<Term, 8> kTerms = {{{"compute", "#1b7837", &EnergyTerms::compute},
                                         {"NoC", "#92c5de", &EnergyTerms::noc},
                                         {"D2D", "#4393c3", &EnergyTerms::d2d},
                                         {"SRAM", "#fddbc7", &EnergyTerms::sram},
                                         {"HBM", "#f4a582", &EnergyTerms::hbm},
                                         {"DRAM", "#b2182b", &EnergyTerms::dram},
                                         {"migration", "#8c6bb1", &EnergyTerms::migration},
                                         {"gate", "#5a4a3a", &EnergyTerms::gate}}};

/// A bar group a model, a bar a policy, relative to static.
Figure grouped(const CompareResult& result, const std::string& mode, const std::string& id, const std::string& title,
               const std::string& axis, const std::function<double(const RunResult&)>& value,
               const std::function<double(const RunResult&)>& half_width) {
  const std::vector<std::string> models = models_of(result), policies = policies_of(result);
  Json rows = Json::array();
  Figure f;
  f.table.headers = {"model"};
  for (const std::string& p : policies) f.table.headers.push_back(p);
  for (const std::string& model : models) {
    std::vector<std::string> cells{model};
    bool any = false;
    for (const std::string& policy : policies) {
      const RunResult* r = find_run(result, model, mode, policy);
      if (r == nullptr || !(value(*r) > 0)) {
        cells.emplace_back("-");
        continue;
      }
      const double v = value(*r), h = half_width(*r);
      rows.push_back({{"model", model}, {"policy", policy}, {"value", v}, {"low", v - h}, {"high", v + h}});
      cells.push_back(fmt::format("{:.3f}", v));
      any = true;
    }
    if (any) f.table.rows.push_back(cells);
  }
  Json x = {{"field", "model"},
            {"type", "nominal"},
            {"sort", models},
            {"title", nullptr},
            {"axis", {{"labelAngle", models.size() > 5 ? -20 : 0}, {"labelLimit", 170}}}};
  Json offset = {{"field", "policy"}, {"sort", policies}};
  Json bars = {{"mark", {{"type", "bar"}, {"tooltip", true}}},
               {"encoding",
                {{"x", x},
                 {"xOffset", offset},
                 {"y", {{"field", "value"}, {"type", "quantitative"}, {"title", axis}}},
                 {"color", policy_colour_encoding(policies)}}}};
  Json whiskers = {{"mark", {{"type", "rule"}, {"color", "#111"}, {"strokeWidth", 1.2}}},
                   {"encoding",
                    {{"x", x},
                     {"xOffset", offset},
                     {"y", {{"field", "low"}, {"type", "quantitative"}, {"title", axis}}},
                     {"y2", {{"field", "high"}}}}}};
  Json one = {{"data", {{"values", Json::array({{{"one", 1}}})}}},
              {"mark", {{"type", "rule"}, {"color", "#555"}, {"strokeDash", {4, 3}}}},
              {"encoding", {{"y", {{"field", "one"}, {"type", "quantitative"}}}}}};
  Json spec = base_spec();
  spec["data"] = {{"values", rows}};
  spec["width"] = std::min<size_t>(kFigureWidth - 160, 120 + models.size() * policies.size() * 26);
  spec["height"] = 260;
  spec["layer"] = Json::array({bars, whiskers, one});
  f.id = id + "-" + mode;
  f.title = title;
  f.spec = spec_text(spec);
  return f;
}

}  // namespace

Json stacked_spec(const std::vector<std::string>& models, const std::vector<std::string>& policies, const Json& rows,
                  const std::string& axis, const std::vector<std::string>& names,
                  const std::vector<std::string>& colours, bool marks, bool shared_scale) {
  const size_t columns = std::min<size_t>(4, std::max<size_t>(1, models.size()));
  Json x = {{"field", "policy"},
            {"type", "nominal"},
            {"sort", policies},
            {"title", nullptr},
            {"axis", {{"labelAngle", -40}, {"labelLimit", 110}}}};
  Json bars = {{"transform", Json::array({{{"filter", "datum.part != '__mark'"}}})},
               {"mark", {{"type", "bar"}, {"tooltip", true}}},
               {"encoding",
                {{"x", x},
                 {"y", {{"field", "value"}, {"type", "quantitative"}, {"title", axis}, {"stack", "zero"}}},
                 {"order", {{"field", "order"}, {"type", "quantitative"}}},
                 {"color",
                  {{"field", "part"},
                   {"type", "nominal"},
                   {"title", "part"},
                   {"scale", {{"domain", names}, {"range", colours}}},
                   {"legend", {{"orient", "bottom"}, {"columns", names.size()}, {"title", nullptr}}}}}}}};
  Json layers = Json::array({bars});
  if (marks)
    layers.push_back(
        {{"transform", Json::array({{{"filter", "datum.part == '__mark'"}}})},
         {"mark", {{"type", "tick"}, {"color", "#000"}, {"thickness", 2}, {"tooltip", {{"content", "data"}}}}},
         {"encoding", {{"x", x}, {"y", {{"field", "value"}, {"type", "quantitative"}, {"title", axis}}}}}});
  Json spec = base_spec();
  spec["data"] = {{"values", rows}};
  spec["facet"] = {{"field", "model"},
                   {"type", "nominal"},
                   {"sort", models},
                   {"title", nullptr},
                   {"header", {{"labelFontSize", 12}, {"labelFontWeight", "bold"}, {"labelLimit", 230}}}};
  spec["columns"] = columns;
  spec["spec"] = {
      {"width", std::min<size_t>(static_cast<size_t>(kFigureWidth) / columns - 75, 60 + policies.size() * 40)},
      {"height", 180},
      {"layer", layers}};
  spec["resolve"] = {{"scale", {{"y", shared_scale ? "shared" : "independent"}}},
                     {"axis", {{"x", "independent"}, {"y", "independent"}}}};
  return spec;
}

namespace {

const RunResult* static_of(const CompareResult& result, const RunResult& r) {
  return find_run(result, r.model, r.mode, "static");
}

}  // namespace

Figure normalized_latency_figure(const CompareResult& result, const std::string& mode) {
  Figure f = grouped(
      result, mode, "latency", fmt::format("Latency of a serving window relative to static, {}", mode),
      "latency / static", [](const RunResult& r) { return r.normalized_latency; },
      [&](const RunResult& r) {
        const RunResult* base = static_of(result, r);
        return base == nullptr || base->latency_ps <= 0
                   ? 0.0
                   : static_cast<double>(r.latency_ps_ci95) / static_cast<double>(base->latency_ps);
      });
  f.caption = "Lower is better; static = 1 (dashed). Whiskers: 95 % interval of the mean over scored windows.";
  return f;
}

Figure stage_figure(const CompareResult& result, const std::string& mode) {
  const std::vector<std::string> models = models_of(result), policies = policies_of(result);
  Json rows = Json::array();
  Figure f;
  f.table.text_columns = 2;
  f.table.headers = {"model", "policy", "latency ms", "95 % +- ms", "MoE ms", "bound ms", "above bound %"};
  for (const char* s : kStageNames) f.table.headers.push_back(fmt::format("{} us", s));
  for (const RunResult& r : result.runs) {
    if (r.mode != mode) continue;
    const double outside = std::max(0.0, ms(r.latency_ps - r.moe_latency_ps));
    const auto shares = stage_shares(r);
    for (size_t p = 0; p < kLatencyParts.size(); ++p) {
      const double value = p == 0 ? outside : shares[p - 1] * ms(r.moe_latency_ps);
      rows.push_back(
          {{"model", r.model}, {"policy", r.policy}, {"part", kLatencyParts[p].name}, {"order", p}, {"value", value}});
    }
    if (r.lower_bound_ps > 0)
      rows.push_back({{"model", r.model},
                      {"policy", r.policy},
                      {"part", "__mark"},
                      {"order", 99},
                      {"value", outside + ms(r.lower_bound_ps)},
                      {"bound by", r.bound_resource}});
    const auto above = above_bound(r);
    std::vector<std::string> cells = {r.model,
                                      r.policy,
                                      significant(ms(r.latency_ps)),
                                      significant(ms(r.latency_ps_ci95)),
                                      significant(ms(r.moe_latency_ps)),
                                      significant(ms(r.lower_bound_ps)),
                                      above ? percent(*above) : "-"};
    for (const Ps t : r.stages_ps) cells.push_back(significant(static_cast<double>(t) / kPsPerUs));
    f.table.rows.push_back(std::move(cells));
  }
  std::vector<std::string> names, colours;
  for (const LatencyPart& p : kLatencyParts) {
    names.emplace_back(p.name);
    colours.emplace_back(p.colour);
  }
  f.id = "stages-" + mode;
  f.title = fmt::format("Latency by stage, {}", mode);
  f.caption =
      "Milliseconds a window; each model has its own scale. The routed-MoE part is divided in the proportions of its "
      "critical group's stages; \"outside MoE\" is attention, dense layers and hand-over. Black tick: the same window "
      "with the MoE part at its proven lower bound. The table lists the stages of one layer.";
  f.spec = spec_text(stacked_spec(models, policies, rows, "ms", names, colours, true, false));
  return f;
}

Figure energy_figure(const CompareResult& result, const std::string& mode) {
  const std::vector<std::string> models = models_of(result), policies = policies_of(result);
  Json rows = Json::array();
  Figure f;
  f.table.text_columns = 2;
  f.table.headers = {"model", "policy", "total mJ"};
  for (const Term& t : kTerms) f.table.headers.push_back(fmt::format("{} mJ", t.name));
  for (const RunResult& r : result.runs) {
    if (r.mode != mode) continue;
    std::vector<std::string> cells = {r.model, r.policy, significant(mj(r.energy.total()))};
    int order = 0;
    for (const Term& t : kTerms) {
      rows.push_back({{"model", r.model},
                      {"policy", r.policy},
                      {"part", t.name},
                      {"order", order++},
                      {"value", mj(r.energy.*t.value)}});
      cells.push_back(significant(mj(r.energy.*t.value)));
    }
    f.table.rows.push_back(std::move(cells));
  }
  std::vector<std::string> names, colours;
  for (const Term& t : kTerms) {
    names.emplace_back(t.name);
    colours.emplace_back(t.colour);
  }
  f.id = "energy-" + mode;
  f.title = fmt::format("Energy of a serving window, {}", mode);
  f.caption = "Millijoules, mean over scored windows; each model has its own scale.";
  f.spec = spec_text(stacked_spec(models, policies, rows, "mJ", names, colours, false, false));
  return f;
}

Figure edp_figure(const CompareResult& result, const std::string& mode) {
  const auto edp = [&](const RunResult& r) {
    const RunResult* base = static_of(result, r);
    return base == nullptr || !(base->edp_js > 0) ? 0.0 : r.edp_js / base->edp_js;
  };
  Figure f = grouped(result, mode, "edp", fmt::format("Energy-delay product relative to static, {}", mode),
                     "EDP / static", edp, [](const RunResult&) { return 0.0; });
  f.caption = "Lower is better; static = 1 (dashed).";
  return f;
}

}  // namespace sojourn
