// The page around the figures.
#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "report/analysis.h"
#include "report/html_figures.h"
#include "report/text_table.h"

namespace sojourn {
namespace {

constexpr const char* kStyle = R"css(
:root{color-scheme:light}
body{margin:0 auto;padding:24px 32px;max-width:1136px;background:#fff;color:#1a1a1a;
 font:14px/1.45 system-ui,"DejaVu Sans",sans-serif}
h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:36px 0 8px;border-bottom:1px solid #d5d5d5;padding-bottom:4px}
h3{font-size:15px;margin:20px 0 6px}p{margin:6px 0}.sub,.caption{color:#4a4a4a}.caption{font-size:13px;max-width:900px}
.warn{background:#fff3cd;border:1px solid #e0c36a;padding:8px 12px}
table{border-collapse:collapse;font-size:13px;margin:8px 0;font-variant-numeric:tabular-nums}
th,td{padding:3px 10px;text-align:right;border-bottom:1px solid #ececec;vertical-align:top}
th{border-bottom:2px solid #b9b9b9;font-weight:600}.l{text-align:left}tr.best td{font-weight:600;background:#f1f7ee}
.scroll{overflow-x:auto}.wrap{max-width:640px;overflow-wrap:anywhere;text-align:left}
.chip{display:inline-block;width:10px;height:10px;margin-right:6px;border-radius:2px}
figure{margin:18px 0;break-inside:avoid}figcaption{font-weight:600;margin-bottom:4px}
details{margin:4px 0}summary{cursor:pointer;color:#0b4f8a}
.vega-bind{margin:0 0 6px}.vega-embed{max-width:100%}
nav a{margin-right:14px;color:#0b4f8a}
@media print{body{padding:0;max-width:none;font-size:11px}nav,summary{display:none}.vega-embed summary{display:none}
 figure,tr{break-inside:avoid}.vega-embed svg{max-width:100%;height:auto}table{font-size:10px}}
)css";

constexpr const char* kScript = R"js(
(function(){"use strict";
 document.querySelectorAll('script[type="application/json"][data-figure]').forEach(function(s){
  var box=document.getElementById(s.dataset.figure);
  vegaEmbed(box,JSON.parse(s.textContent),{renderer:"svg",bind:document.getElementById(s.dataset.figure+"-menu"),actions:{export:true,source:false,compiled:false,editor:false}})
   .catch(function(e){box.textContent="This figure could not be drawn ("+e.message+"); its numbers are below.";});});
 var opened=[];
 addEventListener("beforeprint",function(){document.querySelectorAll("details.numbers:not([open])").forEach(function(d){
  d.open=true;opened.push(d);});});
 addEventListener("afterprint",function(){opened.forEach(function(d){d.open=false;});opened=[];});
})();
)js";

std::string without_source_map(std::string script) {
  const size_t at = script.rfind("//# sourceMappingURL=");
  if (at != std::string::npos) script.resize(at);
  return script;
}

struct Page {
  std::string out;

  void cell(const std::string& text, bool left, const char* tag = "td") {
    out += fmt::format("<{}{}>{}</{}>", tag, left ? " class=\"l\"" : "", html_escape(text), tag);
  }
  void table(const FigureTable& t) {
    out += "<div class=\"scroll\"><table><thead><tr>";
    for (size_t c = 0; c < t.headers.size(); ++c) cell(t.headers[c], t.words(c), "th");
    out += "</tr></thead><tbody>\n";
    for (const auto& row : t.rows) {
      out += "<tr>";
      for (size_t c = 0; c < row.size(); ++c) cell(row[c], t.words(c));
      out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
  }
  void figure(const Figure& f) {
    if (f.spec.empty()) return;
    const std::string id = "fig-" + html_escape(f.id);
    out += fmt::format("<figure id=\"{}-block\"><figcaption>{}</figcaption><p class=\"caption\">{}</p>\n", id,
                       html_escape(f.title), html_escape(f.caption));
    out += fmt::format("<div id=\"{}-menu\"></div>", id);
    out += fmt::format("<div id=\"{}\" role=\"img\" aria-label=\"{}\"></div>\n", id, html_escape(f.title));
    out += fmt::format("<script type=\"application/json\" data-figure=\"{}\">{}</script>\n", id, f.spec);
    out += "<details class=\"numbers\"><summary>Numbers</summary>\n";
    table(f.table);
    out += "</details></figure>\n";
  }
};

void summary_part(Page& page, const CompareResult& result) {
  page.out += "<h2 id=\"summary\">Summary</h2>\n";
  const std::vector<Winner> list = winners(result);
  if (!list.empty()) {
    const auto colours = policy_colours(policies_of(result));
    page.out +=
        "<h3>Fastest policy of each model and mode</h3><div class=\"scroll\"><table><thead><tr><th "
        "class=\"l\">model</th>"
        "<th class=\"l\">mode</th><th class=\"l\">fastest</th><th>latency</th><th class=\"l\">what it relieved</th>"
        "</tr></thead><tbody>\n";
    for (const Winner& w : list)
      page.out += fmt::format(
          "<tr><td class=\"l\">{}</td><td class=\"l\">{}</td><td class=\"l\"><span class=\"chip\" "
          "style=\"background:{}\">"
          "</span>{}{}</td><td>{} % vs {}</td><td class=\"wrap\">{}</td></tr>\n",
          html_escape(w.model), html_escape(w.mode), colours.at(w.policy), html_escape(w.policy),
          w.within_noise ? html_escape(" (within noise of " + w.runner_up + ")") : "", signed_percent(-w.reduction),
          html_escape(w.against), html_escape(w.reason));
    page.out += "</tbody></table></div>\n";
  }
  FigureTable paper{
      {"mode", "traces", "policy", "against", "paper %", "simulated %", "difference, points", "source"}, {}, 4, true};
  FigureTable all{{"mode", "traces", "policy", "against", "geomean reduction %", "models", "least %", "most %"}, {}, 4};
  for (const SummaryRow& row : result.summary) {
    double least = 1e300, most = -1e300;
    for (const auto& [model, v] : row.per_model) {
      least = std::min(least, v);
      most = std::max(most, v);
    }
    all.rows.push_back({row.mode, row.origin, row.policy, row.against, signed_percent(row.geomean_reduction),
                        std::to_string(row.per_model.size()), row.per_model.empty() ? "-" : signed_percent(least),
                        row.per_model.empty() ? "-" : signed_percent(most)});
    if (const PaperFigure* f = paper_figure(row))
      paper.rows.push_back({row.mode, row.origin, row.policy, row.against, paper_percent(*f),
                            percent(row.geomean_reduction), signed_percent(row.geomean_reduction - f->reduction),
                            f->source});
  }
  if (!paper.rows.empty()) {
    page.out +=
        "<h3>Latency reduction beside the paper</h3><p class=\"caption\">Geomean over models. Paper: as published. "
        "Simulated: came out of this run; the traces it rests on are listed below.</p>\n";
    page.table(paper);
  }
  if (!all.rows.empty()) {
    page.out += "<details class=\"numbers\"><summary>All pairs of policies</summary>\n";
    page.table(all);
    page.out += "</details>\n";
  }
}

void bottleneck_part(Page& page, const CompareResult& result) {
  page.out +=
      "<h2 id=\"bottlenecks\">What bound the layers</h2><p class=\"caption\">Share of layer executions, over all "
      "models, whose slowest resource was of each kind; then the single resources that bound most often.</p>\n";
  for (const std::string& mode : modes_of(result)) {
    std::set<std::string> kinds;
    std::map<std::string, std::map<std::string, int>> by_policy, names;
    for (const RunResult& r : result.runs) {
      if (r.mode != mode) continue;
      for (const auto& [kind, n] : bottleneck_kinds(r)) {
        kinds.insert(kind);
        by_policy[r.policy][kind] += n;
      }
      for (const auto& [name, n] : r.bottleneck) names[r.policy][name] += n;
    }
    if (kinds.empty()) continue;
    FigureTable t;
    t.headers = {"policy", "executions"};
    for (const std::string& kind : kinds) t.headers.push_back(kind + " %");
    t.headers.emplace_back("most often");
    t.last_is_text = true;
    for (const std::string& policy : policies_of(result)) {
      int total = 0;
      for (const auto& [kind, n] : by_policy[policy]) total += n;
      if (total == 0) continue;
      std::vector<std::string> cells{policy, std::to_string(total)};
      for (const std::string& kind : kinds)
        cells.push_back(percent(by_policy[policy][kind] / static_cast<double>(total)));
      std::vector<std::pair<int, std::string>> top;
      for (const auto& [name, n] : names[policy]) top.emplace_back(-n, name);
      std::sort(top.begin(), top.end());
      std::string text;
      for (size_t i = 0; i < std::min<size_t>(3, top.size()); ++i)
        text += fmt::format("{}{} {} %", i == 0 ? "" : ", ", top[i].second,
                            percent(-top[i].first / static_cast<double>(total), 0));
      cells.push_back(text);
      t.rows.push_back(std::move(cells));
    }
    page.out += "<h3>" + html_escape(mode) + "</h3>\n";
    page.table(t);
  }
}

void trace_part(Page& page, const CompareResult& result) {
  page.out +=
      "<h2 id=\"traces\">Router traces</h2><p class=\"caption\">recorded: from the named model; surrogate: recorded "
      "from another model of the same expert count and top-k; synthetic: drawn from a generator; calibrated: a "
      "generator fitted to published statistics. Reuse: how often a token of the trace was used in scored windows."
      "</p>\n";
  FigureTable t{{"model", "mode", "trace", "origin", "SHA-256", "windows", "warm-up", "reuse"}, {}, 5};
  std::set<std::vector<std::string>> seen;
  for (const RunResult& r : result.runs) {
    if (!seen.insert({r.model, r.mode, r.trace_name}).second) continue;
    t.rows.push_back({r.model, r.mode, r.trace_name, r.trace_origin, r.trace_sha256.substr(0, 16),
                      std::to_string(r.windows), std::to_string(r.warmup), fmt::format("{:.2f}", r.token_reuse)});
  }
  page.table(t);
}

void residency_part(Page& page, const CompareResult& result) {
  page.out +=
      "<h2 id=\"residency\">Residency</h2>\n<details class=\"numbers\" open><summary>Replicas, moves and bytes"
      "</summary>\n";
  FigureTable t{{"model", "mode", "policy", "replicas an expert", "promote", "demote", "evict", "relocate", "deferred",
                 "refused", "moved MiB a window", "resident GiB, max", "budget GiB"},
                {},
                3};
  for (const RunResult& r : result.runs)
    t.rows.push_back({r.model, r.mode, r.policy, fmt::format("{:.3f}", r.replicas_mean), std::to_string(r.promote),
                      std::to_string(r.demote), std::to_string(r.evict), std::to_string(r.relocate),
                      std::to_string(r.deferred), std::to_string(r.refused),
                      significant(static_cast<double>(r.bytes_migration) / kMiB),
                      significant(static_cast<double>(r.resident_bytes_max) / kGiB),
                      significant(static_cast<double>(r.budget_bytes) / kGiB)});
  page.table(t);
  page.out += "</details>\n";
}

void manifest_part(Page& page, const CompareResult& result) {
  page.out += "<h2 id=\"assumptions\">Assumptions and parameters</h2>\n";
  const std::vector<std::string> list = assumptions(result.manifest_json);
  if (!list.empty()) {
    page.out += "<ul>\n";
    for (const std::string& text : list) page.out += "<li>" + html_escape(text) + "</li>\n";
    page.out += "</ul>\n";
  }
  const std::vector<ManifestLine> lines = manifest_lines(result.manifest_json);
  if (lines.empty()) return;
  page.out += "<details class=\"numbers\"><summary>Manifest</summary><table><tbody>\n";
  for (const ManifestLine& line : lines)
    if (!line.name.starts_with("assumptions"))
      page.out += fmt::format("<tr><td class=\"l\">{}</td><td class=\"wrap\">{}</td></tr>\n", html_escape(line.name),
                              html_escape(line.value));
  page.out += "</tbody></table></details>\n";
}

}  // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Result<HtmlAssets> load_html_assets(const std::vector<std::string>& homes) {
  const auto read = [](const std::string& path, std::string& into) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return false;
    std::ostringstream text;
    text << in.rdbuf();
    into = text.str();
    return in.good() && !into.empty();
  };
  for (const std::string& home : homes) {
    HtmlAssets a;
    const std::string dir = home + "/third_party/vega/";
    if (read(dir + "vega.min.js", a.vega) && read(dir + "vega-lite.min.js", a.vega_lite) &&
        read(dir + "vega-embed.min.js", a.vega_embed))
      return a;
  }
  return fail({}, "--report", "the scripts of the figures (third_party/vega/*.min.js) are not there",
              "set SOJOURN_HOME to a checkout of the project", 3);
}

std::string compare_html(const CompareResult& result, const HtmlAssets& assets, const HtmlOptions& options) {
  Page page;
  page.out +=
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' "
      "'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n";
  page.out += fmt::format("<title>{}</title><style>{}</style></head><body>\n", html_escape(options.title), kStyle);
  page.out += fmt::format("<h1>{}</h1>\n", html_escape(options.title));
  std::set<std::string> networks;
  for (const RunResult& r : result.runs) networks.insert(r.network);
  std::string network;
  for (const std::string& n : networks) network += (network.empty() ? "" : ", ") + n;
  page.out += fmt::format(
      "<p class=\"sub\">package {} &middot; {} network model &middot; {} models &middot; {} policies "
      "&middot; {} runs</p>\n",
      html_escape(result.package.name), html_escape(network), models_of(result).size(), policies_of(result).size(),
      result.runs.size());
  page.out +=
      "<nav><a href=\"#summary\">Summary</a><a href=\"#latency\">Latency</a><a href=\"#maps\">Pressure and links</a>"
      "<a href=\"#bottlenecks\">Bottlenecks</a><a href=\"#energy\">Energy</a><a href=\"#residency\">Residency</a>"
      "<a href=\"#traces\">Traces</a><a href=\"#assumptions\">Assumptions</a></nav>\n";
  if (result.interrupted)
    page.out += "<p class=\"warn\">This comparison was interrupted; only finished runs are shown.</p>\n";
  page.out +=
      "<noscript><p class=\"warn\">The figures need scripts; every number is also in the tables below them.</p>"
      "</noscript>\n";
  const std::vector<std::string> modes = modes_of(result);
  summary_part(page, result);
  page.out += "<h2 id=\"latency\">Latency</h2>\n";
  for (const std::string& mode : modes) {
    const Figure f = normalized_latency_figure(result, mode);
    if (!f.table.rows.empty()) page.figure(f);
    page.figure(stage_figure(result, mode));
  }
  page.out += "<h2 id=\"maps\">Pressure and links</h2>\n";
  page.figure(pressure_figure(result));
  page.figure(link_figure(result));
  bottleneck_part(page, result);
  page.out += "<h2 id=\"energy\">Energy</h2>\n";
  for (const std::string& mode : modes) {
    page.figure(energy_figure(result, mode));
    const Figure f = edp_figure(result, mode);
    if (!f.table.rows.empty()) page.figure(f);
  }
  residency_part(page, result);
  trace_part(page, result);
  manifest_part(page, result);
  for (const std::string* script : {&assets.vega, &assets.vega_lite, &assets.vega_embed})
    page.out += "<script>" + without_source_map(*script) + "</script>\n";
  page.out += fmt::format("<script>{}</script>\n</body></html>\n", kScript);
  return page.out;
}

}  // namespace sojourn
