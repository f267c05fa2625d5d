// The comparison as JSON, key by key as in the contract.
#include "report/json.h"

#include <fmt/format.h>

#include <cctype>

#include "report/json_writer.h"

namespace sojourn {
namespace {

double pj(Fj energy) { return static_cast<double>(energy) / 1000.0; }

void write_run(JsonWriter& w, const RunResult& r) {
  w.begin_object();
  w.field("model", r.model).field("mode", r.mode).field("policy", r.policy);
  w.field("package", r.package).field("network", r.network);
  w.key("trace").begin_object();
  w.field("name", r.trace_name).field("sha256", r.trace_sha256).field("origin", r.trace_origin);
  w.field("token_reuse", r.token_reuse).end_object();
  w.field("windows", r.windows)
      .field("warmup", r.warmup)
      .field("packages", r.packages)
      .field("moe_layers", r.moe_layers);
  w.field("latency_ps", r.latency_ps).field("latency_ps_ci95", r.latency_ps_ci95);
  w.key("normalized_latency");
  if (r.normalized_latency > 0)
    w.value(r.normalized_latency);
  else
    w.null();
  w.field("moe_latency_ps", r.moe_latency_ps).field("lower_bound_ps", r.lower_bound_ps);
  w.field("bound_resource", r.bound_resource);
  w.key("stages_ps").begin_object();
  for (int s = 0; s < kStages; ++s) w.field(kStageNames[static_cast<size_t>(s)], r.stages_ps[static_cast<size_t>(s)]);
  w.end_object();
  const EnergyTerms& e = r.energy;
  w.key("energy_pj").begin_object();
  w.field("compute", pj(e.compute)).field("noc", pj(e.noc)).field("d2d", pj(e.d2d)).field("sram", pj(e.sram));
  w.field("hbm", pj(e.hbm)).field("dram", pj(e.dram)).field("migration", pj(e.migration)).field("gate", pj(e.gate));
  w.field("total", pj(e.total())).end_object();
  w.field("edp", r.edp_js);
  w.key("bytes").begin_object();
  w.field("dispatch", r.bytes_dispatch).field("gather", r.bytes_gather);
  w.field("memory", r.bytes_memory).field("migration", r.bytes_migration).end_object();
  w.field("replicas_mean", r.replicas_mean);
  w.key("migrations").begin_object();
  w.field("promote", r.promote).field("demote", r.demote).field("evict", r.evict).field("relocate", r.relocate);
  w.field("deferred", r.deferred).field("refused", r.refused).end_object();
  w.field("resident_bytes_max", r.resident_bytes_max).field("budget_bytes", r.budget_bytes);
  w.field("load_max_over_mean", r.load_max_over_mean);
  w.field("directory_bytes", r.directory_bytes).field("counter_bytes", r.counter_bytes);
  w.field("throttled_share", r.throttled_share);
  w.key("window_ps").begin_array();
  for (const Ps t : r.window_ps) w.value(t);
  w.end_array();
  const auto list = [&](const char* name, const std::vector<double>& values) {
    w.key(name).begin_array();
    for (const double v : values) w.value(v);
    w.end_array();
  };
  list("chiplet_load", r.chiplet_load);
  list("link_util", r.link_util);
  list("bank_util", r.bank_util);
  w.key("bottleneck").begin_object();
  for (const auto& [resource, count] : r.bottleneck) w.field(resource, count);
  w.end_object();
  w.field("events", r.events).field("wall_s", r.wall_s);
  w.end_object();
}

void write_summary(JsonWriter& w, const SummaryRow& row) {
  w.begin_object();
  w.field("mode", row.mode).field("policy", row.policy).field("against", row.against);
  w.field("geomean_reduction", row.geomean_reduction);
  w.key("per_model").begin_object();
  for (const auto& [model, reduction] : row.per_model) w.field(model, reduction);
  w.end_object();
  w.field("origin", row.origin);
  w.end_object();
}

}  // namespace

std::string compare_json(const CompareResult& result) {
  JsonWriter w;
  w.begin_object();
  w.field("schema", "sojourn.compare/1");
  if (result.interrupted) w.field("interrupted", true);
  w.key("runs").begin_array();
  for (const RunResult& r : result.runs) write_run(w, r);
  w.end_array();
  w.key("summary").begin_array();
  for (const SummaryRow& row : result.summary) write_summary(w, row);
  w.end_array();
  w.key("manifest").raw(result.manifest_json.empty() ? "{}" : result.manifest_json);
  w.end_object();
  return w.take();
}

std::string without_timings(std::string json) {
  const std::string mark = "\"wall_s\":";
  for (size_t at = json.find(mark); at != std::string::npos; at = json.find(mark, at + mark.size())) {
    size_t first = at + mark.size();
    while (first < json.size() && json[first] == ' ') ++first;
    size_t last = first;
    while (last < json.size() && json[last] != ',' && json[last] != '}' && json[last] != '\n') ++last;
    json.replace(first, last - first, "0");
  }
  return json;
}

}  // namespace sojourn
