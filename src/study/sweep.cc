// Groups runs that share a scenario, runs the groups in parallel, stores every result; see sweep.h.
#include "study/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/hash.h"
#include "base/parallel.h"
#include "policy/dqn_checkpoint.h"
#include "study/reproduce_record.h"
#include "study/simulate.h"

namespace sojourn {
namespace {

using Json = nlohmann::ordered_json;
using PackageKey = std::tuple<std::string, double, double>;

const SourceSpan kCommandLine{"<command line>", 0, 0};

const Package* base_package(const SweepInputs& in, const std::string& name) {
  for (const auto& [known, package] : in.packages)
    if (known == name) return &package;
  return nullptr;
}

struct ResolvedArm {
  const PolicyRegistry::Entry* entry = nullptr;
  ParamSet params;
  Json description;
};

/// Everything that decides the result of a run.
std::string key_of(const SweepInputs& in, const SweepRun& run, const ResolvedArm& arm) {
  const Place& place = in.places[run.place];
  const TraceMeta& trace = in.traces[run.model]->meta();
  Json k;
  k["program"] = in.program;
  k["model"] = {in.models[run.model].name, in.models[run.model].source_sha256};
  k["mode"] = mode_name(run.mode);
  k["trace"] = {trace.name, trace.sha256};
  k["package"] = {place.package, base_package(in, place.package)->source_sha256, place.sram, place.hbm};
  k["cut"] = {place.cut_copies, place.cut_sram, place.cut_hbm};
  k["per_layer"] = place.per_layer;
  k["copies"] = place.copies;
  k["policy"] = {in.arms[run.arm].policy.name, arm.description};
  k["seed"] = run.seed;
  k["windows"] = {in.warmup, run.windows, in.prefill_tokens, in.decode_tokens, in.decode_context};
  k["network"] = kNetworkNames[static_cast<std::size_t>(in.network)];
  return sha256_hex(k.dump());
}

std::string words_of(const SweepInputs& in, const SweepRun& run) {
  return fmt::format("{} {} {} {} seed {}", in.places[run.place].id, in.models[run.model].name, mode_name(run.mode),
                     in.arms[run.arm].id, run.seed);
}

Result<std::shared_ptr<const Scenario>> scenario_of(const SweepInputs& in, const SweepRun& run, const Package& package,
                                                    const Package& cut) {
  const Place& place = in.places[run.place];
  auto stages = partition(in.models[run.model], cut, place.cut_copies, place.per_layer);
  if (!stages) return tl::unexpected<Failure>(stages.error());
  WindowOptions w;
  w.mode = run.mode;
  w.size = run.mode == Mode::prefill ? in.prefill_tokens : in.decode_tokens;
  w.warmup = in.warmup;
  w.scored = run.windows;
  w.decode_context = in.decode_context;
  w.seed = run.seed;
  Scenario settings;
  settings.per_layer = place.per_layer;
  settings.network = in.network;
  settings.copies = place.copies;
  auto made = make_scenario(in.models[run.model], package, in.traces[run.model], w, std::move(settings));
  if (!made) return made;
  auto own = std::make_shared<Scenario>(**made);
  own->stages = std::move(*stages);
  return std::shared_ptr<const Scenario>(std::move(own));
}

}  // namespace

Package scaled_package(const Package& package, double sram, double hbm) {
  Package p = package;
  if (sram == 1 && hbm == 1) return p;
  p.name = fmt::format("{} (SRAM x{}, HBM x{})", package.name, sram, hbm);
  for (Bank& b : p.banks) {
    if (b.tier == Tier::dram) continue;
    const double factor = b.tier == Tier::sram ? sram : hbm;
    const Bytes reserved = b.reserve_activation + b.reserve_metadata;
    // A bank smaller than its reservations holds no expert.
    b.capacity = std::max(reserved, static_cast<Bytes>(std::floor(static_cast<double>(b.capacity) * factor)));
  }
  for (BankSet& set : p.bank_sets) {
    set.usable = 0;
    for (int i = 0; i < set.count; ++i) set.usable += p.banks[static_cast<std::size_t>(set.first_bank + i)].usable();
  }
  return p;
}

Result<SweepOutcome> run_sweep(const SweepInputs& in, const std::vector<SweepRun>& runs, const PolicyRegistry& registry,
                               ResultsStore& store, int threads, ProgressSink& progress) {
  std::vector<ResolvedArm> arms;
  for (const Arm& arm : in.arms) {
    auto entry = registry.require(arm.policy.name, kCommandLine, "--policies");
    if (!entry) return tl::unexpected<Failure>(entry.error());
    auto params = resolve((*entry)->info.params, arm.policy.settings, kCommandLine, arm.policy.name);
    if (!params) return tl::unexpected<Failure>(params.error());
    ResolvedArm r{*entry, std::move(*params), Json::object()};
    for (const auto& [name, value] : r.params.values())
      r.description[name] = std::visit([](const auto& x) { return Json(x); }, value);
    if (auto found = resolve_dqn_checkpoint(r.params, in.search_dirs); !found)
      return tl::unexpected<Failure>(found.error());
    // A file may change under its name: runs of other weights are not reused.
    if (r.params.has("checkpoint") && r.params.has("slow") && r.params.word("slow") == "dqn") {
      auto loaded = load_dqn_checkpoint(r.params.word("checkpoint"), in.search_dirs);
      if (!loaded) return tl::unexpected<Failure>(loaded.error());
      r.description["checkpoint_weights"] = loaded->weights_sha256;
    }
    arms.push_back(std::move(r));
  }
  std::map<PackageKey, Package> packages;
  for (const Place& place : in.places)
    for (const PackageKey& key :
         {PackageKey{place.package, place.sram, place.hbm}, PackageKey{place.package, place.cut_sram, place.cut_hbm}}) {
      const Package* base = base_package(in, place.package);
      if (base == nullptr) return fail(kCommandLine, "--package", "package '" + place.package + "' was not loaded");
      if (packages.count(key) == 0) packages.emplace(key, scaled_package(*base, std::get<1>(key), std::get<2>(key)));
    }

  SweepOutcome out;
  out.runs.resize(runs.size());
  // Runs of one scenario share its windows, profile and pipeline.
  std::map<std::tuple<std::size_t, std::size_t, int, std::uint64_t, int>, std::vector<std::size_t>> grouped;
  std::vector<std::string> keys(runs.size());
  int done = 0;
  const int total = static_cast<int>(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const SweepRun& r = runs[i];
    keys[i] = key_of(in, r, arms[r.arm]);
    auto stored = store.get(keys[i]);
    if (!stored) return tl::unexpected<Failure>(stored.error());
    if (*stored) out.runs[i] = decode_run(**stored);
    if (out.runs[i]) {
      ++out.reused;
      ++done;
      continue;
    }
    grouped[{r.place, r.model, static_cast<int>(r.mode), r.seed, r.windows}].push_back(i);
  }
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [key, members] : grouped) groups.push_back(std::move(members));
  const auto cost = [&](const std::vector<std::size_t>& g) {
    const SweepRun& r = runs[g.front()];
    return static_cast<double>(g.size()) * r.windows * in.models[r.model].moe_layers() * in.models[r.model].experts *
           (r.mode == Mode::prefill ? 1.5 : 1.0);
  };
  std::stable_sort(groups.begin(), groups.end(), [&](const auto& a, const auto& b) { return cost(a) > cost(b); });

  std::mutex lock;
  std::optional<Failure> broken;
  parallel_for(groups.size(), threads, [&](std::size_t g) {
    const auto stop = [&] {
      if (progress.interrupted()) return true;
      const std::lock_guard<std::mutex> guard(lock);
      return broken.has_value();
    };
    if (stop()) return;
    const SweepRun& first = runs[groups[g].front()];
    const Place& place = in.places[first.place];
    auto scenario = scenario_of(in, first, packages.at({place.package, place.sram, place.hbm}),
                                packages.at({place.package, place.cut_sram, place.cut_hbm}));
    for (const std::size_t i : groups[g]) {
      if (stop()) return;
      const SweepRun& r = runs[i];
      Result<RunResult> run = tl::unexpected<Failure>(Failure{});
      if (scenario)
        run = simulate(
            **scenario, [&] { return arms[r.arm].entry->factory(arms[r.arm].params); }, in.arms[r.arm].policy.name,
            nullptr, 0, stop);
      else
        run = tl::unexpected<Failure>(scenario.error());
      if (!run && run.error().exit_code == 130) return;
      // What is stored is what is used, so that a resumed study has the same bytes.
      std::optional<RunResult> kept;
      Result<bool> put = true;
      if (run) {
        const std::string text = encode_run(*run);
        put = store.put(keys[i], words_of(in, r), text, run->wall_s);
        kept = decode_run(text);
      }
      const std::lock_guard<std::mutex> guard(lock);
      if (!put) {
        broken = put.error();
        return;
      }
      if (run)
        out.runs[i] = std::move(kept);
      else
        out.failures.push_back(
            {i, run.error().diagnostics.items().empty() ? "failed" : run.error().diagnostics.items().front().message});
      ++out.simulated;
      progress.step(++done, total, words_of(in, r));
    }
  });
  if (broken) return tl::unexpected<Failure>(*broken);
  out.interrupted = progress.interrupted() && done < total;
  std::sort(out.failures.begin(), out.failures.end(),
            [](const SweepFailure& a, const SweepFailure& b) { return a.run < b.run; });
  return out;
}

}  // namespace sojourn
