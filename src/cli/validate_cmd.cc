// validate: the flit network and the memory model beside recorded simulator data.
#include <fmt/format.h>

#include <optional>
#include <thread>

#include "cli/commands.h"
#include "cli/io.h"
#include "cli/values.h"
#include "policy/policies.h"
#include "report/validate_html.h"
#include "study/validate_memory.h"
#include "study/validate_network.h"

namespace sojourn::cli {
namespace {

std::string summary_table(const std::vector<ValidationSummary>& summary, int width) {
  std::string text =
      fmt::format("{:<{}}{:>8}{:>14}{:>12}{:>12}\n", "quantity", width, "cases", "median error", "95 %", "largest");
  for (const ValidationSummary& s : summary)
    text += fmt::format("{:<{}}{:>8}{:>13.3f}%{:>11.3f}%{:>11.3f}%\n", s.quantity, width, s.n, 100 * s.median_abs,
                        100 * s.p95_abs, 100 * s.max_abs);
  return text;
}

void write_cases(JsonWriter& w, const std::vector<ValidationCase>& cases,
                 const std::vector<ValidationSummary>& summary) {
  w.key("cases").begin_array();
  for (const ValidationCase& c : cases)
    w.begin_object()
        .field("file", c.file)
        .field("id", c.id)
        .field("quantity", c.quantity)
        .field("reference", c.reference)
        .field("measured", c.measured)
        .field("rel_error", c.error())
        .end_object();
  w.end_array().key("summary").begin_object();
  for (const ValidationSummary& s : summary)
    w.key(s.quantity)
        .begin_object()
        .field("n", static_cast<std::int64_t>(s.n))
        .field("median_abs", s.median_abs)
        .field("p95_abs", s.p95_abs)
        .field("max_abs", s.max_abs)
        .end_object();
  w.end_object();
}

}  // namespace

int validate_network(const ValidateArgs& args) {
  PolicyRegistry registry("policy");
  register_all_policies(registry);
  Values values;
  CompareOptions layers;
  layers.package = args.package;
  layers.models = !args.models.empty() ? args.models : args.reference.empty() || !args.page.empty() ? "table2" : "none";
  layers.windows = static_cast<int>(values.whole("--windows", args.windows, 1, 1, 1000));
  layers.warmup = 2;
  layers.moe_layers = 1;
  layers.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  layers.search_dirs = preset_dirs();
  for (const std::string& name : values.list("--policies", args.policies)) layers.policies.push_back({name, {}});
  if (args.reference.empty() && layers.models == "none")
    values.error("--models", "none, and no --reference: nothing to do", "give one of them");
  if (!values.ok()) return report(values.failure());
  const std::string page_path = args.page.empty() ? "" : args.page + "/index.html";
  std::optional<HtmlAssets> assets;
  if (!args.page.empty()) {
    auto loaded = load_html_assets(homes());
    if (!loaded) return report(loaded.error());
    assets = std::move(*loaded);
  }
  for (const auto& [path, option] : {std::pair(args.json, "--json"), {page_path, "--report"}})
    if (auto fine = check_writable(path, option); !fine) return report(fine.error());

  TerminalProgress progress(args.quiet);
  catch_interrupt();
  NetworkValidation reference;
  NetworkModels models;
  if (!args.reference.empty()) {
    auto result = sojourn::validate_network(args.reference, 1, layers.threads, progress);
    progress.clear();
    if (!result) return report(result.error());
    reference = std::move(*result);
  }
  if (layers.models != "none" && !interrupted()) {
    auto result = compare_networks(layers, registry, progress);
    progress.clear();
    if (!result) return report(result.error());
    models = std::move(*result);
  }
  if (interrupted()) return kInterrupted;

  const TextOutput out(args.json, args.quiet);
  std::string text;
  if (!args.reference.empty()) text += summary_table(reference.summary(), 12);
  if (!reference.speed.empty())
    text += fmt::format("\n{:<30}{:>20}{:>18}\n", "speed", "flit-router-hops/s", "times reference");
  for (const ValidationSpeed& s : reference.speed)
    text += fmt::format("{:<30}{:>20.3g}{:>18.1f}\n", printable(s.id), s.hops_per_s,
                        s.reference_hops_per_s > 0 ? s.hops_per_s / s.reference_hops_per_s : 0.0);
  if (!models.cases.empty()) text += (text.empty() ? "" : "\n") + models_table(models, out.style());
  out.write(text);

  JsonWriter w;
  begin_document(w, "sojourn.validate/1");
  write_cases(w, reference.cases, reference.summary());
  w.key("speed").begin_object();
  for (const ValidationSpeed& s : reference.speed)
    w.key(s.id)
        .begin_object()
        .field("load", s.load)
        .field("flit_router_hops_per_s", s.hops_per_s)
        .field("cycles_per_s", s.cycles_per_s)
        .field("reference_flit_router_hops_per_s", s.reference_hops_per_s)
        .field("reference_cycles_per_s", s.reference_cycles_per_s)
        .end_object();
  w.end_object();
  if (!models.cases.empty()) write_models(w, models);
  end_document(w, "validate network");
  if (!args.json.empty())
    if (auto written = write_output(args.json, "--json", w.text()); !written) return report(written.error());
  if (assets) {
    const std::string page = validate_html(reference, models, *assets);
    if (auto written = write_output(page_path, "--report", page); !written) return report(written.error());
    out.write(fmt::format("\nreport: {}\n", page_path));
  }
  return kDone;
}

int validate_memory(const ValidateArgs& args) {
  if (auto fine = check_writable(args.json, "--json"); !fine) return report(fine.error());
  TerminalProgress progress(args.quiet);
  catch_interrupt();
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  auto result = sojourn::validate_memory(args.reference, threads, progress);
  progress.clear();
  if (!result) return report(result.error());
  if (interrupted()) return kInterrupted;

  const std::vector<ValidationSummary> summary = summarize(result->cases);
  std::string text = summary_table(summary, 24);
  text += fmt::format("\n{:<32}{:<20}{:>10}{:>14}\n", "system", "quantity", "within", "rows");
  for (const MemoryTolerance& t : result->tolerances)
    text += fmt::format("{:<32}{:<20}{:>10}{:>14}\n", printable(t.system), t.quantity, t.tolerance,
                        fmt::format("{} of {}", t.held, t.rows));
  if (!result->speed.empty()) text += fmt::format("\n{:<46}{:>14}{:>18}\n", "speed", "requests/s", "times reference");
  for (const MemorySpeed& s : result->speed)
    text += fmt::format("{:<46}{:>14.3g}{:>18.1f}\n", printable(s.id), s.requests_per_s,
                        s.reference_requests_per_s > 0 ? s.requests_per_s / s.reference_requests_per_s : 0.0);
  TextOutput(args.json, args.quiet).write(text);
  if (args.json.empty()) return kDone;

  JsonWriter w;
  begin_document(w, "sojourn.validate/1");
  write_cases(w, result->cases, summary);
  w.key("tolerances").begin_array();
  for (const MemoryTolerance& t : result->tolerances)
    w.begin_object()
        .field("system", t.system)
        .field("quantity", t.quantity)
        .field("within", t.tolerance)
        .field("rows", t.rows)
        .field("held", t.held)
        .end_object();
  w.end_array().key("speed").begin_object();
  for (const MemorySpeed& s : result->speed)
    w.key(s.id)
        .begin_object()
        .field("requests", s.requests)
        .field("requests_per_s", s.requests_per_s)
        .field("reference_requests_per_s", s.reference_requests_per_s)
        .end_object();
  w.end_object();
  end_document(w, "validate memory");
  if (auto written = write_output(args.json, "--json", w.text()); !written) return report(written.error());
  return kDone;
}

}  // namespace sojourn::cli
