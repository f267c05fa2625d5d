// The page around the figures.
#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/analysis.h"
#include "report/html_figures.h"
#include "report/html_page.h"
#include "report/text_table.h"

namespace sojourn {
namespace {

void summary_part(Page& page, const CompareResult& result, const PaperNumbers* published) {
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
    if (const auto f = paper_figure(row, published))
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

}  // namespace

std::string compare_html(const CompareResult& result, const HtmlAssets& assets, const HtmlOptions& options) {
  Page page;
  page.begin(options.title);
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
  summary_part(page, result, options.paper);
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
  page.manifest(result.manifest_json);
  page.end(assets);
  return page.out;
}

}  // namespace sojourn
