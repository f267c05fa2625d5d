// Runs a policy over a scenario and sums up; see simulate.h.
#include "study/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/student_t.h"
#include "study/stage_run.h"

namespace sojourn {

bool recorded_from(const TraceMeta& trace, const ModelShape& model) {
  if (trace.experts != model.experts || trace.top_k != model.top_k || trace.model.empty()) return false;
  const bool longer = trace.model.size() > model.name.size();
  const std::string& whole = longer ? trace.model : model.name;
  const std::string& stem = longer ? model.name : trace.model;
  return whole == stem || (whole.compare(0, stem.size(), stem) == 0 && whole[stem.size()] == '-');
}

Result<bool> replayable(const TraceMeta& meta, const ModelShape& model) {
  const SourceSpan where{meta.name, 0, 0};
  if (meta.experts != model.experts || meta.top_k != model.top_k)
    return fail(where, "trace",
                fmt::format("has {} experts, top-{}, but model {} has {} experts, top-{}", meta.experts, meta.top_k,
                            model.name, model.experts, model.top_k),
                "give a trace of the same shape: --trace MODEL=FILE");
  if (meta.tokens == 0) return fail(where, "trace", "holds no tokens", "record at least one window of tokens");
  return true;
}

Result<std::shared_ptr<const Scenario>> make_scenario(ModelShape model, const Package& package,
                                                      std::shared_ptr<const Trace> trace, const WindowOptions& windows,
                                                      Scenario settings) {
  const TraceMeta& meta = trace->meta();
  if (auto fine = replayable(meta, model); !fine) return tl::unexpected<Failure>(fine.error());
  auto s = std::make_shared<Scenario>(std::move(settings));
  s->package = &package;
  s->mode = windows.mode;
  auto stages = partition(model, package, s->copies, s->per_layer);
  if (!stages) return tl::unexpected<Failure>(stages.error());
  s->stages = std::move(*stages);
  s->tier_rates = tier_rates(package);
  s->plan = plan_windows(*trace, windows);
  s->profile = profile_windows(*trace, s->plan, model.moe_layers(), model.experts, package.compute_count);
  s->seed = windows.seed;
  s->origin = meta.origin == Origin::recorded && !recorded_from(meta, model) ? Origin::surrogate : meta.origin;
  s->model = std::move(model);
  s->trace = std::move(trace);
  return std::shared_ptr<const Scenario>(std::move(s));
}

namespace {

template <class T>
T mean(T sum, std::int64_t n) {
  return n > 0 ? sum / static_cast<T>(n) : T{};
}

}  // namespace

Result<RunResult> simulate(const Scenario& scenario, const std::function<std::unique_ptr<Policy>()>& new_policy,
                           const std::string& policy_name, SpanSink* spans, int timeline_windows,
                           const std::function<bool()>& stop) {
  const auto wall_start = std::chrono::steady_clock::now();
  const Package& package = *scenario.package;
  std::vector<std::unique_ptr<StageRun>> stages;
  for (std::size_t i = 0; i < scenario.stages.size(); ++i) {
    stages.push_back(std::make_unique<StageRun>(scenario, scenario.stages[i], new_policy(), static_cast<int>(i)));
    if (auto placed = stages.back()->place(policy_name); !placed) return tl::unexpected<Failure>(placed.error());
  }
  RunResult r;
  r.model = scenario.model.name;
  r.mode = mode_name(scenario.mode);
  r.policy = policy_name;
  r.package = package.name;
  r.network = kNetworkNames[static_cast<std::size_t>(scenario.network)];
  r.trace_name = scenario.trace->meta().name;
  r.trace_sha256 = scenario.trace->meta().sha256;
  r.trace_origin = origin_name(scenario.origin);
  r.warmup = scenario.plan.warmup;
  r.packages = static_cast<int>(stages.size());
  r.moe_layers = scenario.model.moe_layers();
  r.token_reuse = scenario.plan.reuse_mean;

  Ps total = 0;
  for (int w = scenario.plan.warmup; w < static_cast<int>(scenario.plan.windows.size()); ++w) {
    if (stop()) return fail({"<interrupt>", 0, 0}, "", "interrupted", "", 130);
    Ps window = 0;
    for (auto& stage : stages) stage->set_spans(w < scenario.plan.warmup + timeline_windows ? spans : nullptr);
    const auto tokens = static_cast<Bytes>(scenario.plan.windows[static_cast<std::size_t>(w)].tokens.size());
    for (std::size_t i = 0; i < stages.size(); ++i) {
      window += stages[i]->serve(w, true);
      // Activations are handed to the next package of the pipeline.
      if (i + 1 < stages.size() && !scenario.per_layer)
        window +=
            package.handover_latency + package.handover.time(tokens * scenario.model.activation_bytes_per_token());
    }
    r.window_ps.push_back(window);
    total += window;
  }
  r.windows = static_cast<int>(r.window_ps.size());
  r.latency_ps = mean<Ps>(total, r.windows);
  double variance = 0;
  for (Ps t : r.window_ps) variance += std::pow(static_cast<double>(t - r.latency_ps), 2);
  if (r.windows > 1)
    r.latency_ps_ci95 = static_cast<Ps>(student_t95(r.windows - 1) * std::sqrt(variance / (r.windows - 1) / r.windows));

  for (auto& stage : stages) stage->finish();
  StageTotals sum;
  std::int64_t layers = 0;
  double replicas = 0;
  Ps moe_busy = 0;
  r.chiplet_load.assign(static_cast<std::size_t>(package.compute_count), 0);
  r.link_util.assign(package.links.size(), 0);
  r.bank_util.assign(package.bank_sets.size(), 0);
  std::map<std::string, std::int64_t> bound_by;
  for (const auto& stage : stages) {
    const StageTotals& t = stage->totals();
    layers += t.layers;
    moe_busy += t.moe;
    sum.bound += t.bound;
    for (std::size_t i = 0; i < kStages; ++i) sum.stages[i] += t.stages[i];
    sum.energy.add(t.energy);
    for (std::size_t k = 0; k < kTraffic; ++k) sum.requested[k] += t.requested[k];
    sum.load_ratio += t.load_ratio;
    for (const auto& [name, count] : t.bound_by) bound_by[name] += count;
    for (const auto& [name, count] : t.bottleneck) r.bottleneck[name] += count;
    r.promote += t.promote;
    r.demote += t.demote;
    r.evict += t.evict;
    r.relocate += t.relocate;
    r.deferred += t.deferred;
    r.refused += t.refused;
    replicas += t.replicas;
    r.throttled_share += t.throttled;
    r.resident_bytes_max += t.resident_max;
    r.directory_bytes += t.directory_max;
    r.budget_bytes += stage->budget();
    r.counter_bytes = stage->counter_bytes();
    r.events += stage->events();
    for (std::size_t c = 0; c < r.chiplet_load.size(); ++c) r.chiplet_load[c] += static_cast<double>(t.chiplet_busy[c]);
    for (std::size_t u = 0; u < r.link_util.size(); ++u) r.link_util[u] += static_cast<double>(t.link_busy[u]);
    for (std::size_t b = 0; b < r.bank_util.size(); ++b) r.bank_util[b] += static_cast<double>(t.bank_busy[b]);
  }
  const std::int64_t n = r.windows;
  r.moe_latency_ps = mean<Ps>(moe_busy, n);
  r.lower_bound_ps = mean<Ps>(sum.bound, n);
  std::int64_t often = 0;
  for (const auto& [name, count] : bound_by)
    if (count > often) {
      often = count;
      r.bound_resource = name;
    }
  for (std::size_t i = 0; i < kStages; ++i) r.stages_ps[i] = mean<Ps>(sum.stages[i], layers);
  r.energy = sum.energy.mean(n);
  r.edp_js = static_cast<double>(r.energy.total()) * 1e-15 * ps_to_s(r.latency_ps);
  r.bytes_dispatch = mean<Bytes>(sum.requested[0], n);
  r.bytes_gather = mean<Bytes>(sum.requested[1], n);
  r.bytes_memory = mean<Bytes>(sum.requested[2], n);
  r.bytes_migration = mean<Bytes>(sum.requested[3], n);
  r.replicas_mean =
      replicas / static_cast<double>(std::max<std::int64_t>(1, n) * r.moe_layers * scenario.model.experts);
  r.load_max_over_mean = layers > 0 ? sum.load_ratio / static_cast<double>(layers) : 0;
  r.throttled_share /= static_cast<double>(std::max<std::int64_t>(1, n) * r.packages);
  const double moe = static_cast<double>(std::max<Ps>(1, moe_busy));
  for (double& x : r.chiplet_load) x /= moe;
  for (double& x : r.link_util) x /= moe;
  for (double& x : r.bank_util) x /= moe;
  r.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start).count();
  return r;
}

}  // namespace sojourn
