// Sections of the terminal report.
#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/quantity.h"
#include "report/analysis.h"

namespace sojourn {
namespace {

std::string ms(Ps time) { return significant(static_cast<double>(time) / kPsPerMs, 4); }

void mode_table(const CompareResult& result, const std::string& mode, const TextStyle& style, std::string& out) {
  using Align = TextTable::Align;
  TextTable table;
  table.column("model", "", Align::left);
  table.column("policy", "", Align::left);
  table.column("latency", "ms");
  table.column("+-95%", "ms");
  table.column("norm.", "static=1");
  table.column("MoE part", "ms");
  table.column("above", "bound %");
  for (const char* stage : kStageNames) table.column(stage, "%");
  table.column("load", "max/mean");
  table.column("energy", "mJ");
  table.column("EDP", "mJ s");
  table.column("origin", "of trace", Align::left);
  for (const std::string& model : models_of(result)) {
    Ps best = 0;
    for (const RunResult& r : result.runs)
      if (r.model == model && r.mode == mode && (best == 0 || r.latency_ps < best)) best = r.latency_ps;
    bool first = true;
    for (const RunResult& r : result.runs) {
      if (r.model != model || r.mode != mode) continue;
      if (first) table.rule();
      const auto above = above_bound(r);
      std::vector<std::string> cells = {first ? model : "",
                                        r.policy,
                                        ms(r.latency_ps),
                                        significant(static_cast<double>(r.latency_ps_ci95) / kPsPerMs, 2),
                                        r.normalized_latency > 0 ? fmt::format("{:.3f}", r.normalized_latency) : "-",
                                        ms(r.moe_latency_ps),
                                        above ? signed_percent(*above) : "-"};
      for (const double share : stage_shares(r)) cells.push_back(percent(share));
      cells.push_back(fmt::format("{:.2f}", r.load_max_over_mean));
      cells.push_back(significant(static_cast<double>(r.energy.total()) / 1e12));
      cells.push_back(significant(r.edp_js * 1e3));
      cells.push_back(r.trace_origin);
      table.row(std::move(cells), r.latency_ps == best);
      first = false;
    }
  }
  out += style.bold(fmt::format("{}: latency of one serving window", mode)) + "\n";
  out += style.dim(
             "  norm. = latency / static; above bound = MoE part over its proven lower bound; stages = shares of the "
             "critical group") +
         "\n";
  out += table.text(style) + "\n";
}

void winner_section(const CompareResult& result, const TextStyle& style, std::string& out) {
  const std::vector<Winner> list = winners(result);
  if (list.empty()) return;
  out += style.bold("Fastest policy of each model and mode, and what it relieved") + "\n";
  for (const Winner& w : list) {
    out += fmt::format("  {:<8}{}: {} {} % against {}{}\n", w.mode, printable(w.model), style.good(printable(w.policy)),
                       signed_percent(-w.reduction), printable(w.against),
                       w.within_noise ? fmt::format(" (within noise of {})", printable(w.runner_up)) : "");
    out += style.dim("            " + printable(w.reason)) + "\n";
  }
  out += "\n";
}

void reduction_section(const CompareResult& result, const TextStyle& style, const PaperNumbers* published,
                       std::string& out) {
  if (result.summary.empty()) return;
  out += style.bold("Geomean latency reduction over models (positive = faster)") + "\n";
  // One matrix a (mode, origin): rows policy, columns against.
  std::vector<std::pair<std::string, std::string>> tables;
  for (const SummaryRow& row : result.summary) {
    const std::pair<std::string, std::string> id{row.mode, row.origin};
    if (std::find(tables.begin(), tables.end(), id) == tables.end()) tables.push_back(id);
  }
  const std::vector<std::string> policies = policies_of(result);
  for (const auto& [mode, origin] : tables) {
    TextTable table;
    table.column("policy \\ against", "", TextTable::Align::left);
    for (const std::string& against : policies) table.column(against, "%");
    size_t models = 0;
    for (const std::string& policy : policies) {
      std::vector<std::string> cells{policy};
      bool any = false;
      for (const std::string& against : policies) {
        std::string cell = policy == against ? "." : "-";
        for (const SummaryRow& row : result.summary) {
          if (row.mode != mode || row.origin != origin || row.policy != policy || row.against != against) continue;
          cell = signed_percent(row.geomean_reduction);
          models = std::max(models, row.per_model.size());
          any = true;
        }
        cells.push_back(cell);
      }
      if (any) table.row(std::move(cells));
    }
    out += fmt::format("  {}, traces: {}, {} model{}\n", mode, origin, models, models == 1 ? "" : "s");
    out += table.text(style, 4) + "\n";
  }
  TextTable paper;
  paper.column("mode", "", TextTable::Align::left);
  paper.column("policy", "", TextTable::Align::left);
  paper.column("against", "", TextTable::Align::left);
  paper.column("paper", "%");
  paper.column("simulated", "%");
  paper.column("difference", "points");
  paper.column("traces", "", TextTable::Align::left);
  paper.column("source", "", TextTable::Align::left);
  bool any = false;
  for (const SummaryRow& row : result.summary) {
    const auto f = paper_figure(row, published);
    if (!f) continue;
    paper.row({row.mode, row.policy, row.against, paper_percent(*f), percent(row.geomean_reduction),
               signed_percent(row.geomean_reduction - f->reduction), row.origin, f->source});
    any = true;
  }
  if (any) out += style.bold("Beside the paper") + "\n" + paper.text(style) + "\n";
}

void trace_section(const CompareResult& result, const TextStyle& style, std::string& out) {
  TextTable table;
  table.column("model", "", TextTable::Align::left);
  table.column("trace", "", TextTable::Align::left);
  table.column("origin", "", TextTable::Align::left);
  table.column("reuse", "x a token");
  table.column("sha256", "", TextTable::Align::left);
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  for (const RunResult& r : result.runs) {
    if (!seen.insert({r.model, r.trace_name, r.mode}).second) continue;
    table.row({fmt::format("{} ({})", r.model, r.mode), r.trace_name, r.trace_origin,
               fmt::format("{:.2f}", r.token_reuse), r.trace_sha256.substr(0, 16)});
  }
  if (seen.empty()) return;
  out += style.bold("Traces") + "\n" + table.text(style) + "\n";
}

void assumption_section(const CompareResult& result, const TextStyle& style, std::string& out) {
  const std::vector<std::string> list = assumptions(result.manifest_json);
  if (list.empty()) return;
  out += style.bold("Assumptions") + "\n";
  for (const std::string& text : list) out += "  - " + printable(text) + "\n";
}

}  // namespace

std::string compare_tables(const CompareResult& result, const TextStyle& style, const PaperNumbers* paper) {
  std::string out;
  if (result.interrupted) out += style.bold("Interrupted: only finished runs are shown") + "\n\n";
  for (const std::string& mode : modes_of(result)) mode_table(result, mode, style, out);
  winner_section(result, style, out);
  reduction_section(result, style, paper, out);
  trace_section(result, style, out);
  assumption_section(result, style, out);
  return out;
}

}  // namespace sojourn
