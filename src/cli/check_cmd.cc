// check: any package, model or trace file. `model import` is here too.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/io.h"
#include "config/reader.h"
#include "moe/model_import.h"
#include "moe/model_load.h"
#include "package/load.h"
#include "sojourn/trace.h"

namespace sojourn::cli {
namespace {

struct Verdict {
  std::string file, kind, summary;
  Diagnostics findings;
  int exit_code = kDone;
};

void absorb(Verdict& v, const Failure& f) {
  v.findings.append(f.diagnostics);
  v.exit_code = f.exit_code;
}

void check_toml(Verdict& v) {
  auto file = ConfigFile::parse_file(v.file);
  if (!file) return absorb(v, file.error());
  Diagnostics ignored;
  const TableReader root = file->root(ignored);
  const auto has_any = [&](std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (root.has(key)) return true;
    return false;
  };
  if (has_any({"topology", "memory", "groups", "io", "chiplet", "chiplets", "links"})) {
    v.kind = "package";
    auto p = load_package(v.file, {}, &v.findings);
    if (!p) return absorb(v, p.error());
    v.summary = fmt::format("{}: {} compute chiplets, {} links, {} bank sets", p->name, p->compute_count,
                            p->links.size(), p->bank_sets.size());
  } else if (has_any({"hidden", "experts", "attention", "layers", "moe_ff", "top_k"})) {
    v.kind = "model";
    auto m = load_model(v.file, {});
    if (!m) return absorb(v, m.error());
    v.summary = fmt::format("{}: {} layers, {} experts, top-{}", m->name, m->layers, m->experts, m->top_k);
  } else {
    v.findings.error({v.file, 1, 1}, "",
                     "is neither a package (no [topology], [[memory]]) nor a model (no hidden, experts)",
                     "see sojourn describe packages and sojourn describe models for their keys");
    v.exit_code = kBadInput;
  }
}

void check_npz(Verdict& v) {
  v.kind = "trace";
  auto trace = open_trace(v.file);
  if (!trace) return absorb(v, trace.error());
  const TraceMeta& m = (*trace)->meta();
  v.summary = fmt::format("{}: {} layers, {} experts, top-{}, {} tokens, {}", m.name, m.layers, m.experts, m.top_k,
                          m.tokens, origin_name(m.origin));
  for (const std::string& warning : m.warnings) v.findings.warning({v.file, 0, 0}, "", warning);
}

}  // namespace

int check(const CheckArgs& args) {
  if (args.files.empty()) return report(usage("check", "no file is named", "write sojourn check FILE...").value());
  if (auto fine = check_writable(args.json, "--json"); !fine) return report(fine.error());
  int exit_code = kDone;
  std::string out;
  JsonWriter w;
  begin_document(w, "sojourn.check/1");
  w.key("files").begin_array();
  for (const std::string& file : args.files) {
    Verdict v;
    v.file = file;
    std::error_code error;
    const std::string extension = std::filesystem::path(file).extension().string();
    if (!std::filesystem::exists(file, error)) {
      v.findings.error({file, 0, 0}, "", "there is no such file", "check the path");
      v.exit_code = kBadInput;
    } else if (extension == ".toml") {
      check_toml(v);
    } else if (extension == ".npz") {
      check_npz(v);
    } else {
      v.findings.error({file, 0, 0}, "", fmt::format("cannot tell what a '{}' file is", extension),
                       "give a package or model (.toml) or a trace container (.npz); sojourn trace import makes one");
      v.exit_code = kBadInput;
    }
    print_warnings(v.findings);
    if (v.exit_code == kDone) out += fmt::format("{}: valid {}: {}\n", file, v.kind, printable(v.summary));
    exit_code = std::max(exit_code, v.exit_code);
    w.begin_object()
        .field("file", file)
        .field("kind", v.kind)
        .field("valid", v.exit_code == kDone)
        .field("summary", v.summary);
    w.key("findings").begin_array();
    for (const Diagnostic& d : v.findings.items())
      w.begin_object()
          .field("severity", d.severity == Severity::error ? "error" : "warning")
          .field("file", d.where.file)
          .field("line", d.where.line)
          .field("column", d.where.column)
          .field("key", d.key)
          .field("message", d.message)
          .field("remedy", d.remedy)
          .end_object();
    w.end_array().end_object();
  }
  w.end_array();
  end_document(w, "check");
  TextOutput(args.json, false).write(out);
  if (auto written = write_output(args.json, "--json", w.text()); !written) return report(written.error());
  return exit_code;
}

int model_import(const ModelImportArgs& args) {
  for (const auto& [path, option] : {std::pair(args.output, "--output"), {args.json, "--json"}})
    if (auto fine = check_writable(path, option); !fine) return report(fine.error());
  auto toml = model_import_hf(args.file);
  if (!toml) return report(toml.error());
  const std::string target = args.output.empty() ? "-" : args.output;
  if (target == "-" && args.json == "-")
    return report(usage("--json", "the preset and the JSON cannot both go to standard output", "add -o FILE").value());
  if (auto written = write_output(target, "--output", *toml); !written) return report(written.error());
  if (target != "-") TextOutput(args.json, false).write(fmt::format("{}: model preset written\n", target));
  JsonWriter w;
  begin_document(w, "sojourn.model-import/1");
  w.field("input", args.file).field("output", target).field("toml", *toml);
  end_document(w, "model import");
  if (auto written = write_output(args.json, "--json", w.text()); !written) return report(written.error());
  return kDone;
}

}  // namespace sojourn::cli
