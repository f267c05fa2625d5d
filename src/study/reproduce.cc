// Resolves the inputs of a study, runs its plan, draws the conclusions; see reproduce.h.
#include "study/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/hash.h"
#include "moe/model_load.h"
#include "package/load.h"
#include "policy/dqn_checkpoint.h"
#include "study/sweep_traces.h"

namespace sojourn {
namespace {

using Json = nlohmann::ordered_json;

const SourceSpan kCommandLine{"<command line>", 0, 0};

std::vector<std::string> under(const std::vector<std::string>& roots, const char* folder) {
  std::vector<std::string> out;
  for (const std::string& root : roots) out.push_back(root + "/" + folder);
  return out;
}

/// One of Table 2's models for each kind of routing, without the two whose simulation takes longest.
constexpr const char* kQuickModels = "dbrx,deepseek-v2-lite,mixtral-8x7b,qwen1.5-moe";

void load_traces(ReproduceResult& study, Diagnostics& errors) {
  TraceShelf shelf(study.options.traces, study.options.roots);
  for (const auto& [name, path] : study.options.traces) {
    const bool known = name.empty() || std::any_of(study.inputs.models.begin(), study.inputs.models.end(),
                                                   [wanted = name](const ModelShape& m) { return m.name == wanted; });
    if (!known)
      errors.error(kCommandLine, "--trace", fmt::format("'{}' is not among the models of the study", name),
                   "name one of them, as in --trace MODEL=FILE");
  }
  for (const ModelShape& model : study.inputs.models) {
    if (model.experts > 0)
      study.inputs.traces.push_back(shelf.find(model, errors));
    else
      errors.error(kCommandLine, "--models", fmt::format("{} has no routed experts", model.name),
                   "choose Mixture-of-Experts models");
  }
  if (errors.has_errors()) return;
  for (const auto& [name, path] : study.options.traces)
    if (!shelf.used(path))
      errors.error(kCommandLine, "--trace", fmt::format("{} fits none of the models of the study", path),
                   "name a model of its expert count and top-k in --models, or leave it out");
}

}  // namespace

const ReproduceCheck* ReproduceResult::find(const std::string& base, const std::string& place) const {
  for (const ReproduceCheck& c : checks)
    if (c.base == base && c.place == place) return &c;
  return nullptr;
}

bool ReproduceResult::sound() const {
  return std::all_of(checks.begin(), checks.end(), [](const ReproduceCheck& c) { return !c.must_hold || c.holds; });
}

Result<ReproduceResult> prepare_reproduce(const ReproduceOptions& options, const PolicyRegistry& registry) {
  Diagnostics errors;
  int exit_code = 2;
  const auto take = [&](const Failure& f) {
    errors.append(f.diagnostics);
    exit_code = std::max(exit_code, f.exit_code);
  };
  ReproduceResult study;
  study.options = options;
  auto paper = load_paper_numbers(options.system, options.roots);
  if (!paper) {
    take(paper.error());
    return fail(std::move(errors), exit_code);
  }
  study.paper = std::move(*paper);
  if (study.paper.name != "hcrmap")
    return fail(kCommandLine, "SYSTEM", fmt::format("there is no study of '{}'", study.paper.name), "known: hcrmap");
  study.inputs.prefill_tokens = study.paper.prefill_tokens;
  study.inputs.decode_tokens = study.paper.decode_tokens;
  study.inputs.program = options.program;
  study.inputs.search_dirs = options.roots;
  if (study.options.policies.empty() && !options.policies_given) study.options.policies = further_policies();
  if (options.policies_given)
    for (const std::string& name : options.policies)
      if (auto known = registry.require(name, kCommandLine, "--policies"); !known) take(known.error());
  std::erase_if(study.options.policies, [&](const std::string& name) {
    const bool there = registry.find(name) != nullptr;
    if (!there) study.absent.push_back(fmt::format("policy {} is not part of this build", name));
    return !there;
  });
  const std::string list = !options.models.empty() ? options.models : options.quick ? kQuickModels : study.paper.models;
  auto models = load_model_list(list, under(options.roots, "models"), kCommandLine, "--models");
  if (models)
    study.inputs.models = std::move(*models);
  else
    take(models.error());
  if (options.quick && options.models.empty())
    study.reduced.emplace_back(
        "--quick: deepseek-moe-16b, deepseek-v2, deepseek-v3 and mixtral-8x22b are left out; means are over four "
        "models");
  for (const char* name : {"hcrmap-table1", "hcrmap-total"}) {
    auto package = load_package(name, under(options.roots, "packages"));
    if (package)
      study.inputs.packages.emplace_back(name, std::move(*package));
    else
      take(package.error());
  }
  if (models) load_traces(study, errors);
  if (errors.has_errors()) return fail(std::move(errors), exit_code);

  plan_hcrmap(study, registry);
  return study;
}

Result<bool> run_reproduce(ReproduceResult& study, const PolicyRegistry& registry, ProgressSink& progress) {
  auto store = ResultsStore::open(study.options.state);
  if (!store) return tl::unexpected<Failure>(store.error());
  auto outcome = run_sweep(study.inputs, study.runs, registry, **store, study.options.threads, progress);
  if (!outcome) return tl::unexpected<Failure>(outcome.error());
  study.outcome = std::move(*outcome);
  if (study.outcome.interrupted) return true;
  std::set<std::string> told;
  for (const SweepFailure& f : study.outcome.failures) {
    const SweepRun& r = study.runs[f.run];
    const std::string text =
        fmt::format("{} on {}, {} {}: {}", study.inputs.arms[r.arm].id, study.inputs.places[r.place].id,
                    study.inputs.models[r.model].name, mode_name(r.mode), f.message);
    if (told.insert(text).second) study.absent.push_back(text);
  }
  check_hcrmap(study);
  study.manifest_json = reproduce_manifest(study, registry);
  return true;
}

std::string reproduce_manifest(const ReproduceResult& study, const PolicyRegistry& registry) {
  const ReproduceOptions& o = study.options;
  Json m;
  m["schema"] = "sojourn.manifest/1";
  m["version"] = SOJOURN_VERSION;
  m["command"] = "reproduce";
  Json opt;
  opt["system"] = study.paper.name;
  opt["quick"] = o.quick;
  for (const ModelShape& model : study.inputs.models) opt["models"].push_back(model.name);
  opt["policies"] = o.policies;
  opt["traces"] = Json::array();
  for (const auto& [model, path] : o.traces) opt["traces"].push_back({{"model", model}, {"file", path}});
  opt["windows"] = o.windows;
  opt["seeds"] = o.seeds;
  opt["seed"] = o.seed;
  m["options"] = opt;
  m["config_sha256"] = sha256_hex(opt.dump());
  m["system"] = {{"name", study.paper.name}, {"sha256", study.paper.sha256}};
  m["packages"] = Json::array();
  for (const auto& [name, package] : study.inputs.packages)
    m["packages"].push_back({{"name", name}, {"sha256", package.source_sha256}});
  m["models"] = Json::array();
  m["traces"] = Json::array();
  const StudyView view(study.inputs, study.runs, study.outcome);
  for (std::size_t i = 0; i < study.inputs.models.size(); ++i) {
    const ModelShape& model = study.inputs.models[i];
    m["models"].push_back({{"name", model.name}, {"sha256", model.source_sha256}, {"unverified", model.unverified}});
    const TraceMeta& t = study.inputs.traces[i]->meta();
    const RunResult* run = view.run({kDefaultPlace, "hcrmap"}, Mode::prefill, i, o.seed);
    m["traces"].push_back({{"model", model.name},
                           {"trace", t.name},
                           {"sha256", t.sha256},
                           {"origin", run ? run->trace_origin : origin_name(t.origin)},
                           {"recorded_from", t.recorded_from}});
  }
  if (auto shipped = load_dqn_checkpoint(kShippedCheckpoint, {}))
    m["checkpoints"] = {{kShippedCheckpoint, {{"weights_sha256", shipped->weights_sha256}}}};
  m["arms"] = Json::object();
  for (const Arm& arm : study.inputs.arms) {
    Json all = Json::object();
    const auto* entry = registry.find(arm.policy.name);
    if (entry == nullptr) continue;
    auto params = resolve(entry->info.params, arm.policy.settings, kCommandLine, arm.id);
    if (!params) continue;
    for (const auto& [name, value] : params->values())
      all[name] = std::visit([](const auto& x) { return Json(x); }, value);
    m["arms"][arm.id] = {{"policy", arm.policy.name}, {"parameters", all}};
  }
  m["assumptions"] = {
      "the paper's traces, hyper-parameters, window length, core throughput and energies are not public; ours are in "
      "docs/hcrmap.md and docs/policies.md",
      "Hydra, MoEntwine and PIMoE are reconstructions from summaries of their papers",
      "window: one forward pass (a packed prefill batch, or one decode step of the sequences in flight)",
      "seeds choose the order of requests; the trace stays the same",
      "every policy starts from the placement it makes of the same warm-up windows",
      "points of one sweep share a pipeline of packages: that of its largest budget or smallest capacity"};
  return m.dump(2);
}

}  // namespace sojourn
