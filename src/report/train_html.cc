// Tables, JSON and page of a training run; see train_html.h.
#include "report/train_html.h"

#include <fmt/format.h>

#include "report/html_spec.h"
#include "report/json_writer.h"

namespace sojourn {
namespace {

constexpr const char* kStyle = R"css(
body{margin:0 auto;padding:24px 32px;max-width:1000px;background:#fff;color:#1a1a1a;
 font:14px/1.45 system-ui,"DejaVu Sans",sans-serif}
h1{font-size:24px;margin:0 0 4px}.sub{color:#4a4a4a;max-width:900px}figure{margin:18px 0}
figcaption{font-weight:600;margin-bottom:4px}pre{font-size:12px;background:#f6f6f6;padding:8px;overflow-x:auto}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:3px 10px;text-align:right;border-bottom:1px solid #ececec}
)css";

std::string script_text(std::string script) {
  const size_t at = script.rfind("//# sourceMappingURL=");
  if (at != std::string::npos) script.resize(at);
  return script;
}

Json line(const char* field, const char* title, const char* colour, double at_least_zero) {
  Json y = {{"field", field}, {"type", "quantitative"}, {"title", title}};
  if (at_least_zero >= 0) y["scale"] = {{"zero", true}};
  return {{"width", 400},
          {"height", 160},
          {"mark", {{"type", "line"}, {"color", colour}, {"tooltip", true}}},
          {"encoding", {{"x", {{"field", "steps"}, {"type", "quantitative"}, {"title", "windows served"}}}, {"y", y}}}};
}

}  // namespace

std::string train_table(const TrainResult& r, TextStyle style) {
  TextTable table;
  for (const auto& [name, unit] : {std::pair("windows", "served"),
                                   {"reward", "share of a layer"},
                                   {"loss", ""},
                                   {"epsilon", ""},
                                   {"legal", "actions"},
                                   {"acted", "% of windows"}})
    table.column(name, unit);
  const std::size_t step = std::max<std::size_t>(1, r.curve.size() / 12);
  for (std::size_t i = 0; i < r.curve.size(); ++i)
    if (i % step == 0 || i + 1 == r.curve.size()) {
      const TrainPoint& p = r.curve[i];
      table.row({std::to_string(p.steps), fmt::format("{:+.5f}", p.reward), significant(p.loss),
                 fmt::format("{:.3f}", p.epsilon), fmt::format("{:.1f}", p.legal), percent(p.acted)});
    }
  std::string out = "Training: means since the row before\n" + table.text(style);
  if (!r.validation.empty()) {
    TextTable v;
    v.column("windows", "served");
    v.column("routed-MoE time", "% of no updates");
    for (const ValidationPoint& p : r.validation) v.row({std::to_string(p.steps), fmt::format("{:+.3f}", 100 * p.dqn)});
    for (const MarginPoint& p : r.margins)
      v.row({fmt::format("margin {:.2f}", p.margin), fmt::format("{:+.3f}", 100 * p.over)});
    v.row({"amortised", fmt::format("{:+.3f}", 100 * r.amortised)}, true);
    out += "Validation traces (never learned from), closed form, greedy\n" + v.text(style);
  }
  return out;
}

std::string train_json(const TrainResult& r) {
  JsonWriter w;
  w.begin_object().field("schema", "sojourn.train/1");
  w.field("weights_sha256", r.weights_sha256);
  w.key("curve").begin_array();
  for (const TrainPoint& p : r.curve) {
    w.begin_object().field("episode", p.episode).field("steps", p.steps).field("reward", p.reward);
    w.field("loss", p.loss).field("epsilon", p.epsilon).field("legal_actions", p.legal);
    w.field("acted", p.acted).end_object();
  }
  w.end_array().key("validation").begin_array();
  for (const ValidationPoint& p : r.validation)
    w.begin_object().field("steps", p.steps).field("over_no_updates", p.dqn).end_object();
  w.end_array().field("validation_amortised", r.amortised);
  w.key("validation_margins").begin_array();
  for (const MarginPoint& p : r.margins)
    w.begin_object().field("margin", p.margin).field("over_no_updates", p.over).end_object();
  w.end_array();
  w.key("manifest").raw(r.manifest_json).end_object();
  return w.take();
}

std::string train_html(const TrainResult& r, const HtmlAssets& assets) {
  Json rows = Json::array(), checks = Json::array();
  for (const TrainPoint& p : r.curve)
    rows.push_back({{"steps", p.steps},
                    {"reward", p.reward},
                    {"loss", p.loss},
                    {"epsilon", p.epsilon},
                    {"legal", p.legal},
                    {"acted", 100 * p.acted}});
  for (const ValidationPoint& p : r.validation)
    for (const auto& [name, value] : {std::pair("dqn", p.dqn), {"amortised", r.amortised}})
      checks.push_back({{"steps", p.steps}, {"controller", name}, {"over", 100 * value}});
  Json spec = base_spec();
  spec["data"] = {{"values", rows}};
  Json grid =
      Json::array({line("reward", "reward, share of a layer's time", "#0072b2", -1), line("loss", "loss", "#d55e00", 0),
                   line("epsilon", "epsilon", "#009e73", 0), line("legal", "legal actions a window", "#5e3c99", 0),
                   line("acted", "windows with an action, %", "#8c510a", 0)});
  if (!r.validation.empty())
    grid.push_back(
        {{"width", 400},
         {"height", 160},
         {"data", {{"values", checks}}},
         {"mark", {{"type", "line"}, {"point", true}, {"tooltip", true}}},
         {"encoding",
          {{"x", {{"field", "steps"}, {"type", "quantitative"}, {"title", "windows served"}}},
           {"y", {{"field", "over"}, {"type", "quantitative"}, {"title", "validation: change of MoE time, %"}}},
           {"color",
            {{"field", "controller"},
             {"type", "nominal"},
             {"scale", {{"domain", {"dqn", "amortised"}}, {"range", {"#0072b2", "#e69f00"}}}},
             {"legend", {{"orient", "bottom"}, {"title", nullptr}}}}}}}});
  spec["concat"] = grid;
  spec["columns"] = 2;

  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' "
      "'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:\">\n<link rel=\"icon\" href=\"data:,\">\n";
  out += fmt::format("<title>Training of the slow loop</title><style>{}</style></head><body>\n", kStyle);
  out += fmt::format(
      "<h1>Training of the slow loop</h1><p class=\"sub\">Masked Double DQN; weights {}. Every point is a mean since "
      "the one before. Traces are synthetic; validation traces are drawn from other seeds and never learned "
      "from.</p>\n",
      html_escape(r.weights_sha256));
  out +=
      "<figure><figcaption>Learning curve</figcaption><div id=\"curve\" role=\"img\" aria-label=\"Learning curve\">"
      "</div>\n";
  out += fmt::format("<script type=\"application/json\" id=\"spec\">{}</script></figure>\n", spec_text(spec));
  out +=
      "<details><summary>Numbers</summary><table><thead><tr><th>windows</th><th>reward</th><th>loss</th>"
      "<th>epsilon</th><th>legal actions</th><th>acted %</th></tr></thead><tbody>\n";
  for (const TrainPoint& p : r.curve)
    out += fmt::format(
        "<tr><td>{}</td><td>{:+.5f}</td><td>{:.4f}</td><td>{:.3f}</td><td>{:.1f}</td><td>{:.1f}</td></tr>\n", p.steps,
        p.reward, p.loss, p.epsilon, p.legal, 100 * p.acted);
  out += fmt::format("</tbody></table></details>\n<details><summary>Manifest</summary><pre>{}</pre></details>\n",
                     html_escape(r.manifest_json));
  for (const std::string* script : {&assets.vega, &assets.vega_lite, &assets.vega_embed})
    out += "<script>" + script_text(*script) + "</script>\n";
  out +=
      "<script>vegaEmbed(document.getElementById('curve'),JSON.parse(document.getElementById('spec').textContent),"
      "{renderer:'svg',actions:false});</script>\n</body></html>\n";
  return out;
}

}  // namespace sojourn
