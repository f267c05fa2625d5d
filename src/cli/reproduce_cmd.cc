// reproduce: a published study run again, its numbers beside ours; resumable through a file of finished runs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/hash.h"
#include "cli/commands.h"
#include "cli/io.h"
#include "cli/values.h"
#include "policy/policies.h"
#include "report/html.h"
#include "report/reproduce_html.h"
#include "report/reproduce_json.h"
#include "report/reproduce_table.h"
#include "study/reproduce.h"

namespace sojourn::cli {
namespace {

/// Version and digest of this executable: stored runs of another build are not taken over.
std::string program_name() {
  auto digest = sha256_file("/proc/self/exe");
  return std::string(SOJOURN_VERSION) + " " + (digest ? *digest : "unknown build");
}

/// Where finished runs are kept when --resume does not say.
std::string state_file(const ReproduceArgs& args) {
  if (!args.resume.empty()) return args.resume;
  if (!args.report.empty()) return args.report + "/state";
  if (!args.json.empty() && args.json != "-") return args.json + ".state";
  return {};
}

}  // namespace

int reproduce(const ReproduceArgs& args) {
  Values values;
  ReproduceOptions o;
  o.system = args.system;
  o.quick = args.quick;
  o.models = args.models;
  if (!args.models.empty()) (void)values.list("--models", args.models);
  o.policies_given = !args.policies.empty();
  if (o.policies_given && args.policies != "none") o.policies = values.list("--policies", args.policies);
  read_traces(args.traces, values, o.traces);
  o.windows = static_cast<int>(values.whole("--windows", args.windows, 0, 1, 100'000));
  o.seeds = static_cast<int>(values.whole("--seeds", args.seeds, 0, 1, 100));
  o.seed = static_cast<std::uint64_t>(values.whole("--seed", args.seed, 1, 0, INT64_MAX - 1000));
  const auto cores = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 256u));
  o.threads = static_cast<int>(values.whole("--threads", args.threads, cores, 1, 256));
  if (!values.ok()) return report(values.failure());
  o.roots = homes();
  o.program = program_name();
  o.state = state_file(args);

  PolicyRegistry registry("policy");
  register_all_policies(registry);
  const std::string page_path = args.report.empty() ? "" : args.report + "/index.html";
  std::optional<HtmlAssets> assets;
  if (!args.report.empty()) {
    auto loaded = load_html_assets(homes());
    if (!loaded) return report(loaded.error());
    assets = std::move(*loaded);
  }
  // Wrong inputs are found before the first file or folder is made.
  auto study = prepare_reproduce(o, registry);
  if (!study) return report(study.error());
  std::error_code ignored;
  if (!o.state.empty() && std::filesystem::is_regular_file(o.state, ignored))
    if (auto known = ResultsStore::open(o.state); !known) return report(known.error());
  std::vector<std::string> inputs;
  for (const auto& [model, path] : o.traces) inputs.push_back(path);
  if (auto fine = check_distinct({{args.json, "--json"}, {page_path, "--report"}, {o.state, "--resume"}}, inputs);
      !fine)
    return report(fine.error());
  for (const auto& [path, option] : {std::pair(args.json, "--json"), {page_path, "--report"}, {o.state, "--resume"}})
    if (auto fine = check_writable(path, option); !fine) return report(fine.error());

  catch_interrupt();
  TerminalProgress progress(args.quiet);
  auto done = run_reproduce(*study, registry, progress);
  progress.clear();
  if (!done) return report(done.error());
  const TextOutput text(args.json, args.quiet);
  if (study->outcome.interrupted) {
    std::fputs(
        fmt::format("interrupted; {} of {} runs are done{}\n", study->outcome.reused + study->outcome.simulated,
                    study->runs.size(), o.state.empty() ? "" : ". The same command goes on from " + printable(o.state))
            .c_str(),
        stderr);
    return kInterrupted;
  }
  text.write(reproduce_tables(*study, text.style()));
  const std::string json = reproduce_json(*study);
  if (auto written = write_output(args.json, "--json", json); !written) return report(written.error());
  if (assets) {
    if (auto written = write_output(page_path, "--report", reproduce_html(*study, *assets)); !written)
      return report(written.error());
    if (auto written = write_output(args.report + "/reproduce.json", "--report", json); !written)
      return report(written.error());
    text.write(fmt::format("report: {}\n", page_path));
  }
  text.write(fmt::format("{} runs, {} of them taken from {}\n", study->runs.size(), study->outcome.reused,
                         o.state.empty() ? "memory" : o.state));
  return study->sound() ? kDone : kCheckFailed;
}

}  // namespace sojourn::cli
