// Resolves the inputs of a comparison, runs the jobs on a few threads and sums up; see compare.h.
#include "study/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>

#include "base/parallel.h"
#include "moe/model_load.h"
#include "network/flit_package.h"
#include "package/load.h"
#include "policy/dqn_checkpoint.h"
#include "study/sweep_traces.h"

namespace sojourn {
namespace {

const SourceSpan kCommandLine{"<command line>", 0, 0};

void check_numbers(const CompareOptions& o, Diagnostics& d) {
  auto between = [&](const char* key, double value, double low, double high, const char* unit) {
    if (!(value >= low && value <= high))
      d.error(kCommandLine, key, fmt::format("{} is out of bounds", value),
              fmt::format("give {} to {} {}", low, high, unit));
  };
  between("--windows", o.windows, 1, 100000, "windows");
  between("--warmup", o.warmup, 1, 100000, "windows");
  between("--prefill-tokens", o.prefill_tokens, 1, 1 << 20, "tokens");
  between("--decode-tokens", o.decode_tokens, 1, 1 << 20, "sequences");
  between("--context", o.decode_context, 1, 1 << 20, "tokens");
  between("--moe-layers", o.moe_layers, 0, 100000, "layers (0 = all)");
  between("--copies", o.copies, 1, 64, "times the routed footprint");
  between("--threads", o.threads, 1, 256, "threads");
  between("--ewma-alpha", o.ewma_alpha, 0, 1, "");
  between("--link-threshold", o.limits.link_threshold, 0, 1, "");
  between("--replicas-max", o.limits.replicas_max, 1, 1024, "replicas");
  between("--updates-max", o.limits.updates_max, 0, 1 << 20, "updates");
  between("--age-min", o.limits.age_min, 0, 1 << 20, "windows");
  if (o.modes.empty()) d.error(kCommandLine, "--modes", "is empty", "give prefill, decode or both");
  if (o.policies.empty()) d.error(kCommandLine, "--policies", "is empty", "give at least one policy");
}

std::vector<std::string> under(const std::vector<std::string>& roots, const char* folder) {
  std::vector<std::string> out;
  for (const std::string& root : roots) out.push_back(root + "/" + folder);
  return out;
}

/// Rough cost of a run, to start the longest first.
double cost(const Scenario& s) {
  return static_cast<double>(s.model.moe_layers()) * s.model.experts * static_cast<double>(s.plan.windows.size()) *
         (s.mode == Mode::prefill ? 1.5 : 1.0);
}

}  // namespace

Result<CompareResult> run_compare(const CompareOptions& options, const PolicyRegistry& registry, ProgressSink& progress,
                                  SpanSink* spans) {
  Diagnostics errors;
  int exit_code = 2;
  auto take = [&](const Failure& f) {
    errors.append(f.diagnostics);
    exit_code = std::max(exit_code, f.exit_code);
  };
  check_numbers(options, errors);
  struct ResolvedPolicy {
    std::string name;
    const PolicyRegistry::Entry* entry;
    ParamSet params;
  };
  std::vector<ResolvedPolicy> policies;
  for (const PolicySpec& spec : options.policies) {
    auto entry = registry.require(spec.name, kCommandLine, "--policies");
    if (!entry) {
      take(entry.error());
      continue;
    }
    auto params = resolve((*entry)->info.params, spec.settings, kCommandLine, "--set " + spec.name);
    if (!params) {
      take(params.error());
      continue;
    }
    if (auto found = resolve_dqn_checkpoint(*params, options.search_dirs); !found) {
      take(found.error());
      continue;
    }
    policies.push_back({spec.name, *entry, std::move(*params)});
  }
  CompareResult result;
  auto package = load_package(options.package, under(options.search_dirs, "packages"));
  if (package)
    result.package = std::move(*package);
  else
    take(package.error());
  if (package && options.network == NetworkKind::flit)
    if (auto map = flit_map(result.package); !map) take(map.error());
  auto models = load_model_list(options.models, under(options.search_dirs, "models"), kCommandLine, "--models");
  if (!models) take(models.error());
  if (models && options.moe_layers > 0)
    for (ModelShape& m : *models) m.layers = std::min(m.layers, m.dense_first + options.moe_layers * m.moe_every);

  std::vector<std::shared_ptr<const Scenario>> scenarios;
  if (package && models && !errors.has_errors()) {
    TraceShelf shelf(options.traces, options.search_dirs);
    for (const auto& [name, path] : options.traces) {
      const bool known = name.empty() || std::any_of(models->begin(), models->end(),
                                                     [wanted = name](const ModelShape& m) { return m.name == wanted; });
      if (!known)
        errors.error(kCommandLine, "--trace", fmt::format("'{}' is not among the models compared", name),
                     "name a model of --models, as in --trace MODEL=FILE");
    }
    struct Pending {
      const ModelShape* model;
      Mode mode;
      std::shared_ptr<const Trace> trace;
    };
    std::vector<Pending> pending;
    for (const ModelShape& model : *models) {
      std::shared_ptr<const Trace> trace = shelf.find(model, errors);
      if (!trace) continue;
      for (Mode mode : options.modes) pending.push_back({&model, mode, trace});
    }
    if (!errors.has_errors())
      for (const auto& [name, path] : options.traces)
        if (!shelf.used(path))
          errors.error(kCommandLine, "--trace", fmt::format("{} fits none of the models compared", path),
                       "compare a model of its expert count and top-k, or leave it out");
    std::vector<Result<std::shared_ptr<const Scenario>>> made(pending.size());
    parallel_for(pending.size(), options.threads, [&](std::size_t i) {
      WindowOptions w;
      w.mode = pending[i].mode;
      w.mix = options.mix;
      w.size = w.mode == Mode::prefill ? options.prefill_tokens : options.decode_tokens;
      w.warmup = options.warmup;
      w.scored = options.windows;
      w.decode_context = options.decode_context;
      w.seed = options.seed;
      Scenario settings;
      settings.per_layer = options.per_layer;
      settings.network = options.network;
      settings.observer = options.observer;
      settings.copies = options.copies;
      settings.ewma_alpha = options.ewma_alpha;
      settings.limits = options.limits;
      made[i] = make_scenario(*pending[i].model, result.package, pending[i].trace, w, std::move(settings));
    });
    for (auto& s : made) {
      if (s)
        scenarios.push_back(std::move(*s));
      else
        take(s.error());
    }
  }
  if (errors.has_errors()) return fail(std::move(errors), exit_code);

  struct JobSpec {
    std::size_t scenario, policy;
  };
  std::vector<JobSpec> jobs;
  for (std::size_t s = 0; s < scenarios.size(); ++s)
    for (std::size_t p = 0; p < policies.size(); ++p) jobs.push_back({s, p});
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return cost(*scenarios[jobs[a].scenario]) > cost(*scenarios[jobs[b].scenario]);
  });
  std::vector<Result<RunResult>> runs(jobs.size());
  std::mutex lock;
  int done = 0;
  const int total = static_cast<int>(jobs.size());
  parallel_for(jobs.size(), options.threads, [&](std::size_t i) {
    const std::size_t id = order[i];
    const Scenario& scenario = *scenarios[jobs[id].scenario];
    const ResolvedPolicy& policy = policies[jobs[id].policy];
    const bool traced = spans && jobs[id].scenario == 0 && jobs[id].policy + 1 == policies.size();
    runs[id] = simulate(
        scenario, [&] { return policy.entry->factory(policy.params); }, policy.name, traced ? spans : nullptr,
        options.timeline_windows, [&] { return progress.interrupted(); });
    const std::lock_guard<std::mutex> guard(lock);
    progress.step(++done, total, scenario.model.name + " " + mode_name(scenario.mode) + " " + policy.name);
  });

  for (auto& run : runs) {
    if (run)
      result.runs.push_back(std::move(*run));
    else if (run.error().exit_code == 130)
      result.interrupted = true;
    else
      take(run.error());
  }
  if (errors.has_errors()) return fail(std::move(errors), exit_code);
  for (RunResult& run : result.runs)
    for (const RunResult& base : result.runs)
      if (base.policy == "static" && base.model == run.model && base.mode == run.mode && base.latency_ps > 0)
        run.normalized_latency = static_cast<double>(run.latency_ps) / static_cast<double>(base.latency_ps);
  result.summary = summarise(result.runs);
  result.manifest_json = write_manifest(options, registry, result, scenarios);
  return result;
}

std::vector<SummaryRow> summarise(const std::vector<RunResult>& runs) {
  std::vector<std::string> modes, policies;
  for (const RunResult& r : runs) {
    if (std::find(modes.begin(), modes.end(), r.mode) == modes.end()) modes.push_back(r.mode);
    if (std::find(policies.begin(), policies.end(), r.policy) == policies.end()) policies.push_back(r.policy);
  }
  std::vector<SummaryRow> rows;
  for (const std::string& mode : modes)
    for (const std::string& policy : policies)
      for (const std::string& against : policies)
        for (const char* origin : {"all", "recorded"}) {
          if (policy == against) continue;
          SummaryRow row{mode, policy, against, origin, 0, {}};
          double log_sum = 0;
          for (const RunResult& a : runs) {
            if (a.mode != mode || a.policy != policy) continue;
            if (std::string(origin) == "recorded" && a.trace_origin != "recorded") continue;
            for (const RunResult& b : runs) {
              if (b.mode != mode || b.policy != against || b.model != a.model || b.latency_ps <= 0) continue;
              const double ratio = static_cast<double>(a.latency_ps) / static_cast<double>(b.latency_ps);
              row.per_model[a.model] = 1 - ratio;
              log_sum += std::log(ratio);
            }
          }
          if (row.per_model.empty()) continue;
          row.geomean_reduction = 1 - std::exp(log_sum / static_cast<double>(row.per_model.size()));
          rows.push_back(std::move(row));
        }
  return rows;
}

}  // namespace sojourn
