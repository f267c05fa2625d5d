// The page of a reproduced study, section by section.
#include "report/reproduce_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/html_page.h"
#include "report/reproduce_figures.h"
#include "report/reproduce_table.h"
#include "report/text_table.h"

namespace sojourn {
namespace {

constexpr const char* kExtraStyle = R"css(
td.v-agrees,td.v-holds,td.v-larger{background:#e3f1dd}td.v-smaller{background:#fdf3d0}
td.v-none,td.v-opposite,td.v-not{background:#f8dcd6}.claims td,.claims th{padding:3px 7px;font-size:12.5px}
.claims td{white-space:nowrap}.claims td.t{white-space:normal;min-width:190px}
.key span{padding:1px 8px;margin-right:8px;border:1px solid #ddd}
)css";

std::string verdict_class(const std::string& verdict) { return verdict == "does not hold" ? "v-not" : "v-" + verdict; }

std::string cell_text(const ReproduceCheck& c) {
  if (!c.measured) return "-";
  std::string unit = c.unit == "%" || c.unit == "% of the most" ? " %" : c.unit == "points" ? " pt" : " x";
  return check_number(*c.measured, c.unit) + unit;
}

void claims_part(Page& page, const ReproduceResult& study) {
  page.out +=
      "<h2 id=\"claims\">Which reading supports which claim</h2>\n<p class=\"caption\">Table 1 can be read in two ways "
      "and "
      "the capacity has two scopes; each pair is a column. A cell: prefill, then decode. Reductions in per cent, other "
      "quantities as named in the table of checks. Measured here; the paper's number in its own column where its text "
      "gives one. The paper's traces are not public, so a difference is not by itself a finding about either.</p>\n";
  page.out +=
      "<p class=\"key caption\"><span style=\"background:#e3f1dd\">agrees, larger or holds</span><span "
      "style=\"background:#fdf3d0\">smaller: the direction is certain, the size is not the paper's</span><span "
      "style=\"background:#f8dcd6\">none (zero is in the interval), opposite, or does not hold</span></p>\n";
  page.out +=
      "<div class=\"scroll\"><table class=\"claims\"><thead><tr><th class=\"l\">claim</th><th "
      "class=\"l\">where</th><th>paper</th>";
  for (const std::string& place : study.readings)
    page.out +=
        fmt::format("<th colspan=\"2\" title=\"{}\">{}</th>", html_escape(reading_text(place)), html_escape(place));
  page.out += "</tr><tr><th></th><th></th><th></th>";
  for (std::size_t i = 0; i < study.readings.size(); ++i) page.out += "<th>prefill</th><th>decode</th>";
  page.out += "</tr></thead><tbody>\n";
  for (const ReproduceClaim& claim : study.claims) {
    std::string paper;
    for (const std::string& base : claim.bases)
      if (const PaperNumber* n = study.paper.find(base))
        paper += fmt::format("{}{}", paper.empty() ? "" : " / ", paper_number(n->value, n->unit));
    page.out += fmt::format("<tr><td class=\"l t\">{}</td><td class=\"l\">{}</td><td>{}</td>", html_escape(claim.text),
                            html_escape(claim.source), paper.empty() ? "-" : html_escape(paper));
    for (const std::string& place : study.readings)
      for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t span = claim.bases.size() == 1 ? 2 : 1;
        if (i >= claim.bases.size()) break;
        const ReproduceCheck* c = study.find(claim.bases[i], place);
        const std::string across = span == 2 ? " colspan=\"2\"" : "";
        if (c == nullptr || !c->measured)
          page.out += fmt::format("<td{}>-</td>", across);
        else
          page.out += fmt::format("<td{} class=\"{}\" title=\"{}\">{}</td>", across, verdict_class(c->verdict),
                                  html_escape(c->verdict + "; " + c->note), html_escape(cell_text(*c)));
      }
    page.out += "</tr>\n";
  }
  page.out += "</tbody></table></div>\n<ul class=\"caption\">\n";
  for (const std::string& place : study.readings)
    page.out += fmt::format("<li>{}: {}</li>\n", html_escape(place), html_escape(reading_text(place)));
  page.out += "</ul>\n";
}

FigureTable checks_table(const ReproduceResult& study, bool every) {
  FigureTable t;
  t.headers = {"check",           "kind",  "verdict", "unit", "paper", "measured", "95 % interval", "measured / paper",
               "no policy above", "source"};
  t.text_columns = 4;
  t.last_is_text = true;
  if (every) t.headers.emplace_back("note");
  for (const ReproduceCheck& c : study.checks) {
    const bool first = c.place == kDefaultPlace || c.place.empty();
    if (!every && (!first || !c.paper)) continue;
    std::vector<std::string> cells = {
        c.id,
        c.kind,
        c.verdict.empty() ? "-" : c.verdict,
        c.unit,
        c.paper ? paper_number(*c.paper, c.unit) : "-",
        check_value(&c, false),
        c.low ? fmt::format("{}\u00a0..\u00a0{}", check_number(*c.low, c.unit), check_number(*c.high, c.unit)) : "-",
        c.paper && c.measured && *c.paper != 0 ? fmt::format("{:.2f}", *c.measured / *c.paper) : "-",
        c.limit ? check_number(*c.limit, c.unit) : "-",
        c.source};
    if (every) cells.push_back(c.note);
    t.rows.push_back(std::move(cells));
  }
  return t;
}

std::vector<std::string> arms_where(const ReproduceResult& study,
                                    const std::function<bool(const std::string&)>& wanted) {
  std::vector<std::string> out;
  for (const Arm& a : study.inputs.arms)
    if (wanted(a.id)) out.push_back(a.id);
  return out;
}

void trace_part(Page& page, const ReproduceResult& study, const StudyView& view) {
  page.out +=
      "<h2 id=\"traces\">Router traces</h2><p class=\"caption\">recorded: from the named model; surrogate: recorded "
      "from "
      "another model of the same expert count and top-k; synthetic: drawn from a generator; calibrated: a generator "
      "fitted "
      "to published statistics.</p>\n";
  FigureTable t{
      {"model", "trace", "origin", "SHA-256", "packages", "MoE layers", "token reuse, prefill", "decode"}, {}, 4};
  for (std::size_t m = 0; m < study.inputs.models.size(); ++m) {
    const RunResult* a = view.run({kDefaultPlace, "hcrmap"}, Mode::prefill, m, study.options.seed);
    const RunResult* b = view.run({kDefaultPlace, "hcrmap"}, Mode::decode, m, study.options.seed);
    if (a == nullptr || b == nullptr) continue;
    t.rows.push_back({a->model, a->trace_name, a->trace_origin, a->trace_sha256.substr(0, 16),
                      std::to_string(a->packages), std::to_string(a->moe_layers), fmt::format("{:.2f}", a->token_reuse),
                      fmt::format("{:.2f}", b->token_reuse)});
  }
  page.table(t);
}

}  // namespace

std::string reproduce_html(const ReproduceResult& study, const HtmlAssets& assets) {
  const StudyView view(study.inputs, study.runs, study.outcome);
  Page page;
  page.begin(fmt::format("{} reproduced", study.paper.title));
  page.out += fmt::format("<style>{}</style>\n", kExtraStyle);
  page.out += fmt::format(
      "<p class=\"sub\">{} &middot; {} models &middot; {} runs &middot; every number simulated unless its check says "
      "derived or calibrated</p>\n",
      html_escape(study.paper.publication), study.inputs.models.size(), study.runs.size());
  page.out +=
      "<nav><a href=\"#claims\">Claims</a><a href=\"#numbers\">Numbers</a><a href=\"#why\">Why they differ</a>"
      "<a href=\"#s3\">Figure 2</a><a href=\"#s72\">Figure 5</a><a href=\"#s73\">Figure 6, components</a>"
      "<a href=\"#s74\">Figures 7, 8</a><a href=\"#s75\">Metadata</a><a href=\"#beyond\">Beyond the paper</a>"
      "<a href=\"#traces\">Traces</a><a href=\"#assumptions\">Assumptions</a></nav>\n";
  page.out +=
      "<noscript><p class=\"warn\">The figures need scripts; every number is also in the tables below "
      "them.</p></noscript>\n";
  for (const std::string& text : study.reduced) page.out += "<p class=\"warn\">" + html_escape(text) + "</p>\n";
  for (const ReproduceCheck& c : study.checks)
    if (c.must_hold && !c.holds)
      page.out +=
          "<p class=\"warn\">This check must hold and does not: " + html_escape(c.id + ": " + c.note) + "</p>\n";

  claims_part(page, study);
  page.figure(readings_figure(study));
  page.out += "<h2 id=\"numbers\">The paper's numbers beside ours, default reading</h2>\n";
  page.table(checks_table(study, false));
  page.out += "<details class=\"numbers\"><summary>Every check, every reading</summary>\n";
  page.table(checks_table(study, true));
  page.out += "</details>\n<h2 id=\"why\">Why results differ</h2>\n";
  page.list(study.notes);
  if (!study.absent.empty()) {
    page.out += "<h3>Not run</h3>\n";
    page.list(study.absent);
  }

  page.out += "<h2 id=\"s3\">Section 3: motivation</h2>\n";
  page.figure(traffic_figure(study, view));
  page.figure(copies_figure(study, view, "fig2b", "Figure 2 (b): added resident copies, fixed", {"fixed:nearest"}));
  page.figure(capacity_figure(study, view, "fig2c", "Figure 2 (c): fixed copies when capacity is scarce",
                              {"static", "fixed:nearest"}));

  page.out += "<h2 id=\"s72\">Section 7.2: overall</h2>\n";
  const std::vector<std::string> main = {"static", "hydra", "moentwine", "pimoe", "hcrmap"};
  for (const Mode mode : {Mode::prefill, Mode::decode}) page.figure(stacked_figure(study, view, mode, main));
  std::vector<std::string> fixed = arms_where(study, [](const std::string& id) { return id.rfind("fixed:", 0) == 0; });
  fixed.insert(fixed.begin(), "static");
  fixed.emplace_back("hcrmap");
  std::string strongest;
  for (const auto& [mode, arm] : study.fixed) strongest += fmt::format(" Strongest in {}: {}.", mode, arm);
  page.figure(ranking_figure(
      study, view, "matched", "Matched capacity: copies fixed at the start against hcrmap",
      "Geometric mean over models, all within the same bytes (static keeps one copy). The paper names the "
      "rival as \"strongest fixed-replica baseline\" and as \"static replicas and simple routing\"; the latter is "
      "taken as the strongest of those that send a group to its nearest copy." +
          strongest,
      fixed));

  page.out += "<h2 id=\"s73\">Section 7.3: ablation and components</h2>\n";
  page.figure(ratio_figure(
      study, view, "fig6", "Figure 6: one pressure signal removed",
      "Latency over full hcrmap with the 95 % interval; above 1 the signal helps. Panels have their own scale, "
      "which does not start at 0.",
      "hcrmap", {"hcrmap:no-link", "hcrmap:no-bank", "hcrmap:no-load", "hcrmap:no-migration"}));
  page.figure(ratio_figure(study, view, "fig6-zoom", "Figure 6, without the load signal",
                           "The same for the three signals whose effect is too small to be seen above.", "hcrmap",
                           {"hcrmap:no-link", "hcrmap:no-bank", "hcrmap:no-migration"}));
  page.figure(ratio_figure(
      study, view, "no-fast-map", "Without the fast token mapper",
      "Latency over full hcrmap when every group goes to its nearest copy; 95 % interval. The paper's 51.2 / 50.7 % "
      "reduction would be a ratio of 2.05 / 2.03.",
      "hcrmap", {"hcrmap:no-fast-map"}));
  page.out += "<h3>Without the HBM tier, decode</h3>\n";
  FigureTable hbm{{"reading", "quantity", "paper %", "measured %", "95 % interval", "verdict"}, {}, 2, true};
  for (const std::string& place : study.readings)
    for (const char* base : {"no-hbm.decode.latency", "no-hbm.decode.bytes"})
      if (const ReproduceCheck* c = study.find(base, place); c != nullptr && c->measured)
        hbm.rows.push_back({place, std::string(base).ends_with("bytes") ? "bytes streamed from DRAM" : "latency",
                            c->paper ? paper_number(*c->paper, c->unit) : "-", check_value(c, false),
                            c->low ? fmt::format("{:.1f}\u00a0..\u00a0{:.1f}", *c->low, *c->high) : "-", c->verdict});
  page.table(hbm);

  page.out += "<h2 id=\"s74\">Section 7.4: sensitivity</h2>\n";
  page.figure(copies_figure(study, view, "fig7a", "Figure 7 (a): resident-copy budget", {"fixed:nearest", "hcrmap"}));
  page.figure(capacity_figure(study, view, "fig7b", "Figure 7 (b): SRAM and HBM capacity",
                              {"static", "fixed:nearest", "hcrmap"}));
  page.figure(heat_figure(study, view, main));

  page.out += "<h2 id=\"s75\">Section 7.5: metadata footprint</h2>\n";
  FigureTable meta{{"quantity", "kind", "paper's limit", "measured", "unit", "note"}, {}, 2, true};
  for (const ReproduceCheck& c : study.checks)
    if (c.base.rfind("metadata.", 0) == 0)
      meta.rows.push_back({c.base.substr(9), c.kind, c.paper ? check_number(*c.paper, c.unit) : "-",
                           check_value(&c, false), c.unit, c.note});
  page.table(meta);

  page.out += "<h2 id=\"beyond\">Beyond the paper</h2>\n";
  std::vector<std::string> slow =
      arms_where(study, [](const std::string& id) { return id.rfind("hcrmap:slow-", 0) == 0; });
  page.figure(
      ratio_figure(study, view, "slow-loop", "The slow loop: other controllers against the one shipped",
                   "Latency over hcrmap as shipped with the 95 % interval; above 1 the shipped controller is better.",
                   "hcrmap", slow));
  std::vector<std::string> everyone = main;
  for (const std::string& name : study.options.policies) everyone.push_back(name);
  if (everyone.size() > main.size())
    page.figure(ranking_figure(
        study, view, "policies", "All policies",
        "Geometric mean over models relative to static; policies beside the paper's ran with the first seed only.",
        everyone));
  page.out += "<h3>Checks that must hold</h3>\n";
  FigureTable must{{"check", "result", "measured", "unit", "note"}, {}, 2, true};
  for (const ReproduceCheck& c : study.checks)
    if (c.must_hold)
      must.rows.push_back({c.id, c.holds ? "holds" : "does not hold", check_value(&c, false), c.unit, c.note});
  page.table(must);
  trace_part(page, study, view);
  page.manifest(study.manifest_json);
  page.end(assets);
  return page.out;
}

}  // namespace sojourn
