// The manifest of a comparison: everything needed to run it again and to judge it. Nothing in it depends on the
// machine, the compiler, the time or the number of threads, so that two runs can be compared byte for byte.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/hash.h"
#include "policy/dqn_checkpoint.h"
#include "study/compare.h"

namespace sojourn {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string>& assumptions() {
  static const std::vector<std::string> kList = {
      "window: one forward pass (a packed prefill batch, or one decode step of the sequences in flight)",
      "weights are read once per active replica and layer execution; the first tile gates compute, the rest overlaps",
      "a replica is striped over the banks of its tier on a chiplet",
      "replicas of a chiplet take turns on all its cores; unequal tiles (16 tokens) lower utilisation",
      "a shard (a run of an expert's 16 slices) is sent whole activations and returns whole partial sums; the vectors "
      "of "
      "a token's several experts on one chiplet are not merged",
      "token i of a window sits on chiplet i mod |C| after attention and is aggregated there",
      "non-routed work (attention, shared experts, dense blocks, LM head) is spread evenly and bounded by compute or "
      "by "
      "streaming weights and KV from HBM; KV capacity is not charged to the expert tiers",
      "a model larger than a package runs as a pipeline of packages; the hand-over is charged",
      "every policy starts from the placement it makes of the same warm-up windows",
      "slow loops see the demand of earlier windows only",
      "link, MAC and gate energies and inter-chiplet latencies are ours: the paper states none"};
  return kList;
}

Json value_json(const Value& v) {
  return std::visit([](const auto& x) { return Json(x); }, v);
}

}  // namespace

std::string write_manifest(const CompareOptions& o, const PolicyRegistry& registry, const CompareResult& result,
                           const std::vector<std::shared_ptr<const Scenario>>& scenarios) {
  Json m;
  m["schema"] = "sojourn.manifest/1";
  m["version"] = SOJOURN_VERSION;
  m["command"] = "compare";
  Json opt;
  opt["package"] = o.package;
  opt["models"] = o.models;
  for (Mode mode : o.modes) opt["modes"].push_back(mode_name(mode));
  for (const PolicySpec& p : o.policies) {
    Json spec;
    spec["name"] = p.name;
    spec["set"] = Json::object();
    for (const auto& [name, value] : p.settings) spec["set"][name] = value;
    opt["policies"].push_back(spec);
  }
  opt["traces"] = Json::array();
  for (const auto& [model, path] : o.traces) opt["traces"].push_back({{"model", model}, {"file", path}});
  opt["windows"] = o.windows;
  opt["warmup"] = o.warmup;
  opt["prefill_tokens"] = o.prefill_tokens;
  opt["decode_tokens"] = o.decode_tokens;
  opt["context"] = o.decode_context;
  opt["seed"] = o.seed;
  opt["network"] = kNetworkNames[static_cast<std::size_t>(o.network)];
  opt["mix"] = kMixNames[static_cast<std::size_t>(o.mix)];
  opt["moe_layers"] = o.moe_layers;
  opt["capacity_scope"] = o.per_layer ? "layer" : "package";
  opt["copies"] = o.copies;
  opt["ewma_alpha"] = o.ewma_alpha;
  opt["replicas_max"] = o.limits.replicas_max;
  opt["updates_max"] = o.limits.updates_max;
  opt["age_min"] = o.limits.age_min;
  opt["link_threshold"] = o.limits.link_threshold;
  m["options"] = opt;
  m["config_sha256"] = sha256_hex(opt.dump());
  m["package"] = {{"name", result.package.name}, {"sha256", result.package.source_sha256}};
  std::set<std::string> seen;
  m["models"] = Json::array();
  m["traces"] = Json::array();
  for (const auto& s : scenarios) {
    if (seen.insert("m " + s->model.name).second) {
      Json model{{"name", s->model.name}, {"sha256", s->model.source_sha256}, {"packages", s->stages.size()}};
      model["unverified"] = s->model.unverified;
      m["models"].push_back(model);
    }
    const TraceMeta& t = s->trace->meta();
    if (!seen.insert("t " + s->model.name + mode_name(s->mode)).second) continue;
    Json trace{{"model", s->model.name},
               {"mode", mode_name(s->mode)},
               {"trace", t.name},
               {"sha256", t.sha256},
               {"origin", origin_name(s->origin)},
               {"recorded_from", t.recorded_from},
               {"trace_layers", t.layers},
               {"moe_layers", s->model.moe_layers()},
               {"requests", s->plan.requests},
               {"token_reuse_mean", s->plan.reuse_mean}};
    trace["warnings"] = t.warnings;
    m["traces"].push_back(trace);
  }
  m["parameters"] = Json::object();
  for (const PolicySpec& p : o.policies) {
    const auto* entry = registry.find(p.name);
    if (!entry) continue;
    std::map<std::string, std::string> given(p.settings.begin(), p.settings.end());
    Json all = Json::object();
    for (const Param& param : entry->info.params) {
      Json one;
      one["value"] = given.count(param.name) ? Json(given[param.name]) : value_json(param.default_value);
      one["default"] = !given.count(param.name);
      all[param.name] = one;
    }
    m["parameters"][p.name] = all;
    // The weights behind a name: a file may change under it.
    if (all.contains("checkpoint") && all.contains("slow") && all["slow"]["value"] == "dqn") {
      const auto name = all["checkpoint"]["value"].get<std::string>();
      if (const auto loaded = load_dqn_checkpoint(name, o.search_dirs))
        m["checkpoints"][name] = {{"weights_sha256", loaded->weights_sha256}};
    }
  }
  m["assumptions"] = assumptions();
  return m.dump(2);
}

Result<CompareOptions> read_manifest(const std::string& text, const std::string& name) {
  const SourceSpan where{name, 0, 0};
  Json m = Json::parse(text, nullptr, false);
  if (m.is_object() && m.contains("manifest")) m = m["manifest"];
  if (!m.is_object() || m.value("schema", "") != "sojourn.manifest/1" || !m.contains("options"))
    return fail(where, "schema", "is not a manifest of sojourn compare",
                "give the JSON that `sojourn compare --json` wrote");
  CompareOptions o;
  Diagnostics wrong;
  // A word of the options: its place in `words`, or a finding.
  const auto word = [&](const char* key, const Json& value, const std::vector<std::string>& words) -> std::size_t {
    const auto it = std::find(words.begin(), words.end(), value.is_string() ? value.get<std::string>() : "");
    if (it != words.end()) return static_cast<std::size_t>(it - words.begin());
    wrong.error(where, fmt::format("options.{}", key), value.dump() + " is not known",
                fmt::format("known: {}", fmt::join(words, ", ")));
    return 0;
  };
  const auto whole = [&](const char* key, const Json& value) -> std::int64_t {
    if (value.is_number_integer() && !value.is_boolean()) return value.get<std::int64_t>();
    wrong.error(where, fmt::format("options.{}", key), value.dump() + " is not a whole number",
                "give an unedited manifest");
    return 0;
  };
  const auto small = [&](const char* key, const Json& value) {
    return static_cast<int>(std::clamp<std::int64_t>(whole(key, value), -1, 1 << 30));
  };
  try {
    const Json& opt = m["options"];
    o.package = opt.at("package");
    o.models = opt.at("models");
    o.modes.clear();
    for (const Json& mode : opt.at("modes"))
      o.modes.push_back(word("modes", mode, {"prefill", "decode"}) == 0 ? Mode::prefill : Mode::decode);
    for (const Json& p : opt.at("policies")) {
      PolicySpec spec;
      spec.name = p.at("name");
      for (const auto& [key, value] : p.at("set").items()) spec.settings.emplace_back(key, value.get<std::string>());
      o.policies.push_back(spec);
    }
    for (const Json& t : opt.at("traces")) o.traces.emplace_back(t.at("model"), t.at("file"));
    o.windows = small("windows", opt.at("windows"));
    o.warmup = small("warmup", opt.at("warmup"));
    o.prefill_tokens = small("prefill_tokens", opt.at("prefill_tokens"));
    o.decode_tokens = small("decode_tokens", opt.at("decode_tokens"));
    o.decode_context = small("context", opt.at("context"));
    o.seed = static_cast<std::uint64_t>(std::max<std::int64_t>(0, whole("seed", opt.at("seed"))));
    o.network = static_cast<NetworkKind>(
        word("network", opt.at("network"), {kNetworkNames[0], kNetworkNames[1], kNetworkNames[2]}));
    o.mix = static_cast<Mix>(word("mix", opt.at("mix"), {kMixNames[0], kMixNames[1], kMixNames[2]}));
    o.moe_layers = opt.contains("moe_layers") ? small("moe_layers", opt.at("moe_layers")) : 0;
    o.per_layer = word("capacity_scope", opt.at("capacity_scope"), {"package", "layer"}) == 1;
    o.copies = opt.at("copies");
    o.ewma_alpha = opt.at("ewma_alpha");
    o.limits.replicas_max = small("replicas_max", opt.at("replicas_max"));
    o.limits.updates_max = small("updates_max", opt.at("updates_max"));
    o.limits.age_min = small("age_min", opt.at("age_min"));
    o.limits.link_threshold = opt.at("link_threshold");
  } catch (const Json::exception& e) {
    return fail(where, "options", std::string("cannot be read: ") + e.what(), "give an unedited manifest");
  }
  if (wrong.has_errors()) return fail(std::move(wrong));
  return o;
}

}  // namespace sojourn
