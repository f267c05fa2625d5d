// RunResult as JSON; see reproduce_record.h.
#include "study/reproduce_record.h"

#include <nlohmann/json.hpp>

namespace sojourn {
namespace {

using Json = nlohmann::ordered_json;

/// Calls f(name, field) for every field, on a const or a mutable run.
template <class Run, class F>
void each_field(Run& r, F&& f) {
  f("model", r.model);
  f("mode", r.mode);
  f("policy", r.policy);
  f("package", r.package);
  f("network", r.network);
  f("trace_name", r.trace_name);
  f("trace_sha256", r.trace_sha256);
  f("trace_origin", r.trace_origin);
  f("windows", r.windows);
  f("warmup", r.warmup);
  f("packages", r.packages);
  f("moe_layers", r.moe_layers);
  f("latency_ps", r.latency_ps);
  f("latency_ps_ci95", r.latency_ps_ci95);
  f("moe_latency_ps", r.moe_latency_ps);
  f("lower_bound_ps", r.lower_bound_ps);
  f("bound_resource", r.bound_resource);
  f("stages_ps", r.stages_ps);
  f("energy_compute", r.energy.compute);
  f("energy_noc", r.energy.noc);
  f("energy_d2d", r.energy.d2d);
  f("energy_sram", r.energy.sram);
  f("energy_hbm", r.energy.hbm);
  f("energy_dram", r.energy.dram);
  f("energy_migration", r.energy.migration);
  f("energy_gate", r.energy.gate);
  f("edp_js", r.edp_js);
  f("bytes_dispatch", r.bytes_dispatch);
  f("bytes_gather", r.bytes_gather);
  f("bytes_memory", r.bytes_memory);
  f("bytes_migration", r.bytes_migration);
  f("replicas_mean", r.replicas_mean);
  f("promote", r.promote);
  f("demote", r.demote);
  f("evict", r.evict);
  f("relocate", r.relocate);
  f("deferred", r.deferred);
  f("refused", r.refused);
  f("resident_bytes_max", r.resident_bytes_max);
  f("budget_bytes", r.budget_bytes);
  f("load_max_over_mean", r.load_max_over_mean);
  f("directory_bytes", r.directory_bytes);
  f("counter_bytes", r.counter_bytes);
  f("events", r.events);
  f("throttled_share", r.throttled_share);
  f("token_reuse", r.token_reuse);
  f("window_ps", r.window_ps);
  f("chiplet_load", r.chiplet_load);
  f("link_util", r.link_util);
  f("bank_util", r.bank_util);
  f("bottleneck", r.bottleneck);
}

}  // namespace

std::string encode_run(const RunResult& run) {
  Json j = Json::object();
  each_field(run, [&](const char* name, const auto& field) { j[name] = field; });
  return j.dump();
}

std::optional<RunResult> decode_run(const std::string& text) {
  const Json j = Json::parse(text, nullptr, false);
  if (!j.is_object()) return std::nullopt;
  RunResult run;
  try {
    each_field(run, [&](const char* name, auto& field) { j.at(name).get_to(field); });
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  return run;
}

}  // namespace sojourn
