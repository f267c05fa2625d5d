// trace import, info, check, export and synth: thin fronts of the trace layer.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/commands.h"
#include "cli/io.h"
#include "cli/values.h"
#include "moe/model_load.h"
#include "trace/api.h"

namespace sojourn::cli {
namespace {

Result<bool> outputs_writable(const TraceArgs& args) {
  if (args.output == "-")
    return usage("--output", "a container cannot go to standard output", "give a file: -o OUT.npz");
  if (auto fine = check_writable(args.output, "--output"); !fine) return fine;
  return check_writable(args.json, "--json");
}

int finish(const TraceArgs& args, const std::string& json) {
  if (auto written = write_output(args.json, "--json", json); !written) return report(written.error());
  return kDone;
}

GivenParams given_params(const TraceArgs& args, Values& values) {
  GivenParams out;
  for (const std::string& text : args.params) {
    auto pair = values.assignment("--set", text);
    if (!pair.first.empty()) out.push_back(std::move(pair));
  }
  return out;
}

}  // namespace

int trace_import(const TraceArgs& args) {
  Values values;
  const GivenParams params = given_params(args, values);
  if (args.format != "auto") {
    if (auto known = formats().require(args.format, command_line(), "FORMAT"); !known) return report(known.error());
  }
  if (!values.ok()) return report(values.failure());
  if (auto fine = outputs_writable(args); !fine) return report(fine.error());
  auto summary = import_trace(args.format, args.inputs, params, args.output);
  if (!summary) return report(summary.error());
  print_warnings(summary->warnings);
  TextOutput(args.json, args.quiet)
      .write(fmt::format("{}: {} from format {}: {} layers, {} experts, top-{}, {} {}\n", summary->path,
                         summary->loads ? "loads" : "trace", summary->format, summary->layers, summary->experts,
                         summary->top_k, summary->tokens, summary->loads ? "steps" : "tokens"));
  return finish(args, summary->json());
}

int trace_info(const TraceArgs& args) {
  if (auto fine = check_writable(args.json, "--json"); !fine) return report(fine.error());
  const std::string& path = args.inputs.front();
  auto json = trace_info_json(path);
  if (!json) return report(json.error());
  if (args.json != "-") {
    auto text = trace_info_text(path);
    if (!text) return report(text.error());
    TextOutput(args.json, false).write(*text);
  }
  return finish(args, *json);
}

int trace_check(const TraceArgs& args) {
  if (auto fine = check_writable(args.json, "--json"); !fine) return report(fine.error());
  std::optional<ModelShape> model;
  if (!args.model.empty()) {
    auto loaded = load_model(args.model, search_dirs("models"), command_line(), "--model");
    if (!loaded) return report(loaded.error());
    model = std::move(*loaded);
  }
  int exit_code = kDone;
  JsonWriter w;
  begin_document(w, "sojourn.trace-check/1");
  w.key("files").begin_array();
  for (const std::string& path : args.inputs) {
    Diagnostics findings;
    int status = kDone;
    if (auto checked = check_trace(path)) {
      findings = std::move(*checked);
    } else {
      findings = checked.error().diagnostics;
      status = checked.error().exit_code;
    }
    if (status == kDone && model) {
      auto trace = open_trace(path);
      if (trace && ((*trace)->meta().experts != model->experts || (*trace)->meta().top_k != model->top_k)) {
        findings.error({path, 0, 0}, "--model",
                       fmt::format("the trace has {} experts, top-{}; {} has {}, top-{}", (*trace)->meta().experts,
                                   (*trace)->meta().top_k, model->name, model->experts, model->top_k),
                       "use a trace of that shape");
        status = kBadInput;
      }
    }
    print_warnings(findings);
    if (status == kDone) TextOutput(args.json, args.quiet).write(fmt::format("{}: valid\n", path));
    exit_code = std::max(exit_code, status);
    w.begin_object().field("file", path).field("valid", status == kDone).key("findings").begin_array();
    for (const Diagnostic& d : findings.items()) w.value(d.text());
    w.end_array().end_object();
  }
  w.end_array();
  end_document(w, "trace check");
  const int written = finish(args, w.text());
  return written != kDone ? written : exit_code;
}

int trace_export(const TraceArgs& args) {
  if (auto fine = outputs_writable(args); !fine) return report(fine.error());
  auto written = export_trace(args.inputs.front(), args.format, args.output);
  if (!written) return report(written.error());
  TextOutput(args.json, args.quiet).write(fmt::format("{}: written as {}\n", args.output, args.format));
  JsonWriter w;
  begin_document(w, "sojourn.trace-export/1");
  w.field("input", args.inputs.front()).field("output", args.output).field("format", args.format);
  end_document(w, "trace export");
  return finish(args, w.text());
}

int trace_synth(const TraceArgs& args) {
  Values values;
  GivenParams params = given_params(args, values);
  const std::int64_t seed = values.whole("--seed", args.seed, 1, 0, INT64_MAX);
  const auto add = [&](const char* key, const char* name, const std::string& text) {
    if (text.empty()) return;
    params.emplace_back(name, std::to_string(values.whole(key, text, 1, 1, 1'000'000'000)));
  };
  if (!args.model.empty()) {
    auto model = load_model(args.model, search_dirs("models"), command_line(), "--model");
    if (!model) return report(model.error());
    if (args.layers.empty()) params.emplace_back("layers", std::to_string(model->moe_layers()));
    if (args.experts.empty()) params.emplace_back("experts", std::to_string(model->experts));
    if (args.top_k.empty()) params.emplace_back("top_k", std::to_string(model->top_k));
  }
  add("--layers", "layers", args.layers);
  add("--experts", "experts", args.experts);
  add("--top-k", "top_k", args.top_k);
  add("--tokens", "tokens", args.tokens);
  if (!values.ok()) return report(values.failure());
  if (auto fine = outputs_writable(args); !fine) return report(fine.error());
  auto summary = synth_trace(params, args.fit, static_cast<std::uint64_t>(seed), args.output);
  if (!summary) return report(summary.error());
  TextOutput(args.json, args.quiet)
      .write(fmt::format("{}: {} trace\n", summary->path, args.fit.empty() ? "synthetic" : "calibrated"));
  JsonWriter w;
  begin_document(w, "sojourn.trace-synth/1");
  w.field("output", summary->path).field("sha256", summary->sha256);
  w.key("details").raw(summary->details.empty() ? "{}" : summary->details);
  end_document(w, "trace synth");
  return finish(args, w.text());
}

}  // namespace sojourn::cli
