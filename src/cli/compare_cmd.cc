// compare, bound and replay: options to CompareOptions, results to tables, JSON, page and timeline.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "cli/commands.h"
#include "cli/io.h"
#include "cli/values.h"
#include "package/load.h"
#include "policy/policies.h"
#include "report/analysis.h"
#include "report/html.h"
#include "report/json.h"
#include "report/table.h"
#include "report/timeline.h"
#include "study/compare.h"
#include "study/reproduce_paper.h"

namespace sojourn::cli {
namespace {

int default_threads() { return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 256u)); }

void read_policies(const CompareArgs& args, const PolicyRegistry& registry, Values& values, CompareOptions& o) {
  std::vector<std::string> names;
  if (args.policies.empty()) {
    for (const char* name : {"static", "hydra", "moentwine", "pimoe", "hcrmap"})
      if (registry.find(name) != nullptr) names.emplace_back(name);
  } else if (args.policies == "all") {
    names = registry.names();
    std::stable_partition(names.begin(), names.end(), [](const std::string& n) { return n == "static"; });
  } else {
    names = values.list("--policies", args.policies);
  }
  for (const std::string& name : names) {
    if (auto known = registry.require(name, command_line(), "--policies"); !known) {
      const Diagnostic& d = known.error().diagnostics.items().front();
      values.error("--policies", d.message, d.remedy);
    }
    o.policies.push_back({name, {}});
  }
  for (const std::string& text : args.settings) {
    const auto [name, value] = values.assignment("--set", text);
    if (name.empty()) continue;
    const size_t dot = name.find('.');
    if (dot == std::string::npos || dot == 0 || dot + 1 == name.size()) {
      values.error("--set", fmt::format("'{}' does not name a policy's parameter", name),
                   "write it as --set POLICY.PARAMETER=VALUE");
      continue;
    }
    const std::string policy = name.substr(0, dot);
    const auto it =
        std::find_if(o.policies.begin(), o.policies.end(), [&](const PolicySpec& p) { return p.name == policy; });
    if (it == o.policies.end())
      values.error("--set", fmt::format("policy '{}' is not among --policies", policy),
                   fmt::format("add it to --policies or name one of {}", fmt::join(names, ", ")));
    else
      it->settings.emplace_back(name.substr(dot + 1), value);
  }
}

CompareOptions read_options(const CompareArgs& args, const PolicyRegistry& registry, Values& values) {
  CompareOptions o;
  o.package = args.package;
  o.models = args.models;
  if (!args.models.empty()) (void)values.list("--models", args.models);  // a model named twice is a mistake
  o.search_dirs = preset_dirs();
  o.modes.clear();
  for (const std::string& mode : values.list("--modes", args.modes))
    o.modes.push_back(values.choice("--modes", mode, {"prefill", "decode"}) == 0 ? Mode::prefill : Mode::decode);
  read_policies(args, registry, values, o);
  read_traces(args.traces, values, o.traces);
  const auto whole = [&](const char* key, const std::string& text, int fallback, std::int64_t min, std::int64_t max) {
    return static_cast<int>(values.whole(key, text, fallback, min, max));
  };
  o.windows = whole("--windows", args.windows, o.windows, 1, 100'000);
  o.warmup = whole("--warmup", args.warmup, o.warmup, 1, 100'000);
  o.seed = static_cast<std::uint64_t>(values.whole("--seed", args.seed, 1, 0, INT64_MAX));
  o.threads = whole("--threads", args.threads, default_threads(), 1, 256);
  o.decode_context = whole("--context", args.context, o.decode_context, 1, 1 << 20);
  o.prefill_tokens = whole("--prefill-tokens", args.prefill_tokens, o.prefill_tokens, 1, 1 << 20);
  o.decode_tokens = whole("--decode-tokens", args.decode_tokens, o.decode_tokens, 1, 1 << 20);
  o.moe_layers = whole("--moe-layers", args.moe_layers, o.moe_layers, 0, 100'000);
  o.timeline_windows = whole("--timeline-windows", args.timeline_windows, o.timeline_windows, 1, 100'000);
  o.limits.replicas_max = whole("--replicas-max", args.replicas_max, o.limits.replicas_max, 1, 1024);
  o.limits.updates_max = whole("--updates-max", args.updates_max, o.limits.updates_max, 0, 1 << 20);
  o.limits.age_min = whole("--age-min", args.age_min, o.limits.age_min, 0, 1 << 20);
  o.limits.link_threshold = values.number("--link-threshold", args.link_threshold, o.limits.link_threshold, 0, 1);
  o.copies = values.number("--copies", args.copies, o.copies, 1, 64);
  o.ewma_alpha = values.number("--ewma-alpha", args.ewma_alpha, o.ewma_alpha, 0, 1);
  o.mix = static_cast<Mix>(values.choice("--mix", args.mix, {kMixNames[0], kMixNames[1], kMixNames[2]}));
  o.per_layer = values.choice("--capacity-scope", args.capacity_scope, {"package", "layer"}) == 1;
  o.network = static_cast<NetworkKind>(
      values.choice("--network", args.network, {kNetworkNames[0], kNetworkNames[1], kNetworkNames[2]}));
  return o;
}

/// The package for names in the timeline; findings are the study's to report.
std::unique_ptr<Package> package_for_names(const CompareOptions& o) {
  auto loaded = load_package(o.package, o.search_dirs);
  return loaded ? std::make_unique<Package>(std::move(*loaded)) : nullptr;
}

}  // namespace

int compare(const CompareArgs& args) {
  PolicyRegistry registry("policy");
  register_all_policies(registry);
  Values values;
  const CompareOptions options = read_options(args, registry, values);
  if (args.timeline == "-") values.error("--timeline", "cannot go to standard output", "give a file");
  if (!values.ok()) return report(values.failure());

  const std::string page_path = args.report.empty() ? "" : args.report + "/index.html";
  std::optional<HtmlAssets> assets;
  if (!args.report.empty()) {
    auto loaded = load_html_assets(homes());
    if (!loaded) return report(loaded.error());
    assets = std::move(*loaded);
  }
  for (const auto& [path, option] :
       {std::pair(args.json, "--json"), {page_path, "--report"}, {args.timeline, "--timeline"}})
    if (auto fine = check_writable(path, option); !fine) return report(fine.error());

  std::vector<std::string> inputs = {options.package};
  for (const auto& [model, path] : options.traces) inputs.push_back(path);
  std::stringstream models(options.models);
  for (std::string name; std::getline(models, name, ',');) inputs.push_back(name);
  if (auto fine =
          check_distinct({{args.json, "--json"}, {page_path, "--report"}, {args.timeline, "--timeline"}}, inputs);
      !fine)
    return report(fine.error());

  AtomicFile timeline_file;
  std::unique_ptr<TimelineWriter> timeline;
  std::unique_ptr<Package> names;
  if (!args.timeline.empty()) {
    if (auto opened = timeline_file.open(args.timeline, "--timeline"); !opened) return report(opened.error());
    timeline = std::make_unique<TimelineWriter>(timeline_file.stream());
    names = package_for_names(options);
    timeline->begin_run(fmt::format("{}, {}, {}", options.models.substr(0, options.models.find(',')),
                                    mode_name(options.modes.front()), options.policies.back().name),
                        names.get());
  }
  catch_interrupt();
  TerminalProgress progress(args.quiet);
  auto result = run_compare(options, registry, progress, timeline.get());
  progress.clear();
  if (!result) return report(result.error());

  const TextOutput text(args.json, args.quiet);
  const auto published = load_paper_numbers("hcrmap", homes());
  const PaperNumbers* paper = published ? &*published : nullptr;
  text.write(compare_tables(*result, text.style(), paper));
  if (auto written = write_output(args.json, "--json", compare_json(*result)); !written) return report(written.error());
  if (assets) {
    HtmlOptions page;
    page.title = fmt::format("Sojourn comparison on {}", result->package.name);
    page.paper = paper;
    if (auto written = write_output(page_path, "--report", compare_html(*result, *assets, page)); !written)
      return report(written.error());
    if (auto written = write_output(args.report + "/compare.json", "--report", compare_json(*result)); !written)
      return report(written.error());
    text.write(fmt::format("\nreport: {}\n", page_path));
  }
  if (timeline) {
    timeline->finish();
    if (auto written = timeline_file.commit(); !written) return report(written.error());
    text.write(
        fmt::format("timeline: {} ({} events; open it in ui.perfetto.dev)\n", args.timeline, timeline->events()));
  }
  return result->interrupted ? kInterrupted : kDone;
}

int bound(const CompareArgs& given) {
  CompareArgs args = given;
  args.policies = "static";
  PolicyRegistry registry("policy");
  register_all_policies(registry);
  Values values;
  const CompareOptions options = read_options(args, registry, values);
  if (!values.ok()) return report(values.failure());
  if (auto fine = check_writable(args.json, "--json"); !fine) return report(fine.error());
  catch_interrupt();
  TerminalProgress progress(args.quiet);
  auto result = run_compare(options, registry, progress, nullptr);
  progress.clear();
  if (!result) return report(result.error());

  TextTable table;
  table.column("model", "", TextTable::Align::left);
  table.column("mode", "", TextTable::Align::left);
  table.column("lower bound", "ms a window");
  table.column("a MoE layer", "us");
  table.column("set by", "", TextTable::Align::left);
  table.column("packages");
  JsonWriter w;
  begin_document(w, "sojourn.bound/1");
  w.key("bounds").begin_array();
  for (const RunResult& r : result->runs) {
    const double bound_ms = static_cast<double>(r.lower_bound_ps) / kPsPerMs;
    table.row({r.model, r.mode, significant(bound_ms), significant(bound_ms * 1000 / std::max(1, r.moe_layers)),
               r.bound_resource, std::to_string(r.packages)});
    w.begin_object();
    w.field("model", r.model).field("mode", r.mode).field("package", r.package);
    w.field("lower_bound_ps", r.lower_bound_ps).field("bound_resource", r.bound_resource);
    w.field("moe_layers", r.moe_layers).field("packages", r.packages).field("windows", r.windows).end_object();
  }
  w.end_array();
  if (result->interrupted) w.field("interrupted", true);
  w.key("manifest").raw(result->manifest_json.empty() ? "{}" : result->manifest_json);
  w.end_object();
  const TextOutput text(args.json, args.quiet);
  text.write("Lower bound of the routed-MoE part, for any placement, copies and assignment\n" +
             table.text(text.style()));
  if (auto written = write_output(args.json, "--json", w.text()); !written) return report(written.error());
  return result->interrupted ? kInterrupted : kDone;
}

int replay(const ReplayArgs& args) {
  Values values;
  const int threads = static_cast<int>(values.whole("--threads", args.threads, default_threads(), 1, 256));
  if (!values.ok()) return report(values.failure());
  std::ifstream in(args.manifest, std::ios::binary);
  std::ostringstream buffer;
  if (in) buffer << in.rdbuf();
  if (!in)
    return report(usage("MANIFEST", fmt::format("{}: cannot be read", args.manifest),
                        "give the JSON that sojourn compare --json wrote")
                      .value());
  const std::string before = buffer.str();
  auto options = read_manifest(before, args.manifest);
  if (!options) return report(options.error());
  if (auto fine = check_writable(args.json, "--json"); !fine) return report(fine.error());
  options->threads = threads;
  options->search_dirs = preset_dirs();
  PolicyRegistry registry("policy");
  register_all_policies(registry);
  catch_interrupt();
  TerminalProgress progress(args.quiet);
  auto result = run_compare(*options, registry, progress, nullptr);
  progress.clear();
  if (!result) return report(result.error());
  const std::string after = compare_json(*result);
  if (auto written = write_output(args.json, "--json", after); !written) return report(written.error());
  if (result->interrupted) return kInterrupted;

  const bool whole_result = before.find("\"runs\"") != std::string::npos;
  const TextOutput text(args.json, args.quiet);
  const auto trimmed = [](std::string s) {
    while (!s.empty() && (s.back() == '\n' || s.back() == ' ')) s.pop_back();
    return s;
  };
  const std::string old_text = trimmed(whole_result ? without_timings(before) : before);
  const std::string new_text = trimmed(whole_result ? without_timings(after) : result->manifest_json);
  if (old_text == new_text) {
    text.write(fmt::format(
        "same bytes: {} run{} of {} replayed{}\n", result->runs.size(), result->runs.size() == 1 ? "" : "s",
        args.manifest, whole_result ? " (timings apart)" : "; the file holds no results, its manifest is the same"));
    return kDone;
  }
  std::istringstream a(old_text), b(new_text);
  std::string line_a, line_b;
  int line = 0;
  bool more = true;
  while (more) {
    ++line;
    const bool has_a = static_cast<bool>(std::getline(a, line_a)), has_b = static_cast<bool>(std::getline(b, line_b));
    more = has_a && has_b && line_a == line_b;
  }
  std::fputs(printable(fmt::format("{}:{}: differs: was '{}', now '{}'", args.manifest, line, line_a, line_b)).c_str(),
             stderr);
  std::fputs("\n", stderr);
  return kCheckFailed;
}

}  // namespace sojourn::cli
