// Keys of sojourn.reproduce/1; see docs/reproduce.md.
#include "report/reproduce_json.h"

#include "report/json_writer.h"

namespace sojourn {
namespace {

void optional_field(JsonWriter& w, const char* name, const std::optional<double>& v) {
  w.key(name);
  if (v)
    w.value(*v);
  else
    w.null();
}

void write_check(JsonWriter& w, const ReproduceCheck& c) {
  w.begin_object();
  w.field("id", c.id);
  optional_field(w, "paper", c.paper);
  optional_field(w, "measured", c.measured);
  w.field("unit", c.unit);
  const bool both = c.paper && c.measured && *c.paper != 0;
  optional_field(w, "ratio", both ? std::optional<double>(*c.measured / *c.paper) : std::nullopt);
  w.field("kind", c.kind).field("source", c.source).field("reading", c.reading).field("note", c.note);
  w.key("ci95");
  if (c.low && c.high)
    w.begin_array().value(*c.low).value(*c.high).end_array();
  else
    w.null();
  optional_field(w, "limit", c.limit);
  w.key("verdict");
  if (c.verdict.empty())
    w.null();
  else
    w.value(c.verdict);
  if (c.must_hold) w.field("must_hold", true).field("holds", c.holds);
  w.end_object();
}

void write_run(JsonWriter& w, const SweepInputs& in, const SweepRun& s, const RunResult& r) {
  w.begin_object();
  w.field("place", in.places[s.place].id).field("arm", in.arms[s.arm].id);
  w.field("model", r.model).field("mode", r.mode).field("policy", r.policy).field("package", r.package);
  w.field("seed", static_cast<std::int64_t>(s.seed)).field("windows", r.windows).field("packages", r.packages);
  w.key("trace").begin_object();
  w.field("name", r.trace_name).field("sha256", r.trace_sha256).field("origin", r.trace_origin).end_object();
  w.field("latency_ps", r.latency_ps).field("latency_ps_ci95", r.latency_ps_ci95);
  w.field("moe_latency_ps", r.moe_latency_ps).field("lower_bound_ps", r.lower_bound_ps);
  w.key("stages_ps").begin_object();
  for (int i = 0; i < kStages; ++i) w.field(kStageNames[static_cast<size_t>(i)], r.stages_ps[static_cast<size_t>(i)]);
  w.end_object();
  w.field("energy_pj", fj_to_pj(r.energy.total())).field("dram_pj", fj_to_pj(r.energy.dram));
  w.field("d2d_pj", fj_to_pj(r.energy.d2d)).field("edp", r.edp_js);
  w.field("bytes_memory", r.bytes_memory).field("bytes_migration", r.bytes_migration);
  w.field("replicas_mean", r.replicas_mean).field("load_max_over_mean", r.load_max_over_mean);
  w.field("resident_bytes_max", r.resident_bytes_max).field("budget_bytes", r.budget_bytes);
  w.field("directory_bytes", r.directory_bytes).field("counter_bytes", r.counter_bytes);
  w.end_object();
}

void texts(JsonWriter& w, const char* name, const std::vector<std::string>& list) {
  w.key(name).begin_array();
  for (const std::string& text : list) w.value(text);
  w.end_array();
}

}  // namespace

std::string reproduce_json(const ReproduceResult& study) {
  JsonWriter w;
  w.begin_object();
  w.field("schema", "sojourn.reproduce/1").field("system", study.paper.name);
  w.field("publication", study.paper.publication).field("quick", study.options.quick);
  texts(w, "reduced", study.reduced);
  texts(w, "absent", study.absent);
  w.key("claims").begin_array();
  for (const ReproduceClaim& claim : study.claims) {
    w.begin_object();
    w.field("text", claim.text).field("source", claim.source);
    texts(w, "checks", claim.bases);
    w.key("verdicts").begin_object();
    for (const std::string& place : study.readings) {
      w.key(place).begin_array();
      for (const std::string& base : claim.bases) {
        const ReproduceCheck* c = study.find(base, place);
        if (c == nullptr || c->verdict.empty())
          w.null();
        else
          w.value(c->verdict);
      }
      w.end_array();
    }
    w.end_object().end_object();
  }
  w.end_array();
  w.key("checks").begin_array();
  for (const ReproduceCheck& c : study.checks) write_check(w, c);
  w.end_array();
  w.key("strongest_fixed").begin_object();
  for (const auto& [mode, arm] : study.fixed) w.field(mode, arm);
  w.end_object();
  texts(w, "notes", study.notes);
  w.key("runs").begin_array();
  for (size_t i = 0; i < study.runs.size(); ++i)
    if (study.outcome.runs[i]) write_run(w, study.inputs, study.runs[i], *study.outcome.runs[i]);
  w.end_array();
  w.key("manifest").raw(study.manifest_json.empty() ? "{}" : study.manifest_json);
  w.end_object();
  return w.take();
}

}  // namespace sojourn
