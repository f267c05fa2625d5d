// JSON and text of trace statistics, keys as the command-line contract names them: `entropy` is in bits,
// `entropy_normalized` over log2(experts).
#include "trace/info.h"

#include <fmt/format.h>

#include <cmath>

#include "trace/json_text.h"

namespace sojourn {
namespace {

double or_nan(std::optional<double> v) { return v.value_or(std::nan("")); }
/// Too few tokens for a statistic: a dash in the table, null in JSON.
std::string or_dash(std::optional<double> v) { return v && std::isfinite(*v) ? fmt::format("{:.2f}", *v) : "-"; }

void shape(JsonText& j, const LoadShape& s) {
  j.member("gini", s.gini);
  j.member("entropy", s.entropy_bits);
  j.member("entropy_normalized", s.entropy);
  j.member("max_over_mean", s.max_over_mean);
  j.member("top10pct_share", s.top10pct_share);
}

void order_stats(JsonText& j, const LayerStats& s) {
  j.key("union");
  j.open('{');
  for (int i = 0; i < 4; ++i) j.member(std::to_string(kUnionBlocks[i]), or_nan(s.unions[i]));
  j.close('}');
  j.key("window_correlation");
  j.open('{');
  for (int i = 0; i < 2; ++i) j.member(std::to_string(kWindows[i]), or_nan(s.correlation[i]));
  j.close('}');
  j.member("token_reuse", or_nan(s.reuse));
}

void head(JsonText& j, const TraceMeta& m, const std::string& schema, const std::string& path) {
  j.member("schema", schema);
  j.member("name", m.name);
  j.member("file", path);
  j.member("model", m.model);
  j.member("layers", m.layers);
  j.member("experts", m.experts);
  j.member("top_k", m.top_k);
  j.member("tokens", m.tokens);
  j.member("origin", origin_name(m.origin));
  j.member("sha256", m.sha256);
  j.member("recorded_from", m.recorded_from);
  j.member("format", m.format);
  j.list("serves", m.serves);
  j.list("layer_ids", m.layer_ids);
  j.member("note", m.note);
  j.list("warnings", m.warnings);
}

int layer_id(const TraceMeta& m, std::size_t l) {
  return l < m.layer_ids.size() ? m.layer_ids[l] : static_cast<int>(l);
}

void manifest(JsonText& j, const TraceMeta& m, const std::string& path) {
  j.key("manifest");
  j.open('{');
  j.member("schema", "sojourn.manifest/1");
  j.member("version", SOJOURN_VERSION);
  j.key("inputs");
  j.open('[');
  j.open('{');
  j.member("file", path);
  j.member("sha256", m.sha256);
  j.member("origin", origin_name(m.origin));
  j.close('}');
  j.close(']');
  j.close('}');
}

}  // namespace

std::string trace_info_document(const Trace& trace, const std::string& path) {
  const TraceMeta& m = trace.meta();
  const TraceStats s = trace_stats(trace);
  JsonText j;
  j.open('{');
  head(j, m, "sojourn.trace_info/1", path);
  j.member("kind", "trace");
  j.member("weights", !trace.weights(0).empty());
  j.member("sequences", s.sequences);
  j.key("lengths");
  j.open('{');
  j.member("min", s.length_min);
  j.member("mean", s.length_mean);
  j.member("max", s.length_max);
  j.close('}');
  j.member("prefill_tokens", s.prefill_tokens);
  j.member("decode_tokens", s.decode_tokens);
  j.key("per_layer");
  j.open('[');
  for (std::size_t l = 0; l < s.layers.size(); ++l) {
    j.open('{');
    j.member("layer", layer_id(m, l));
    shape(j, s.layers[l].shape);
    order_stats(j, s.layers[l]);
    j.close('}');
  }
  j.close(']');
  j.key("mean");
  j.open('{');
  shape(j, s.mean.shape);
  j.close('}');
  order_stats(j, s.mean);
  j.key("domains");
  j.open('[');
  for (std::size_t d = 0; d < s.domains.size(); ++d) {
    j.open('{');
    j.member("name", s.domains[d].name);
    j.member("sequences", s.domains[d].sequences);
    j.member("tokens", s.domains[d].tokens);
    shape(j, s.domains[d].shape);
    j.list("correlation", s.domain_correlation[d]);
    j.close('}');
  }
  j.close(']');
  if (!m.details.empty()) j.raw("details", m.details);
  manifest(j, m, path);
  j.close('}');
  return j.text();
}

std::string loads_info_document(const LoadData& data, const std::string& path) {
  const LoadStats s = load_stats(data);
  JsonText j;
  j.open('{');
  head(j, data.meta, "sojourn.loads_info/1", path);
  j.member("kind", "loads");
  j.member("traffic", data.traffic);
  j.member("steps", data.steps);
  j.key("per_layer");
  j.open('[');
  for (std::size_t l = 0; l < s.layers.size(); ++l) {
    j.open('{');
    j.member("layer", layer_id(data.meta, l));
    shape(j, s.layers[l]);
    j.member("step_correlation", or_nan(s.step_correlation[l]));
    j.close('}');
  }
  j.close(']');
  j.key("mean");
  j.open('{');
  shape(j, s.mean);
  j.close('}');
  manifest(j, data.meta, path);
  j.close('}');
  return j.text();
}

std::string trace_info_table(const Trace& trace) {
  const TraceMeta& m = trace.meta();
  const TraceStats s = trace_stats(trace);
  std::string out = fmt::format("{}: {} layers, {} experts, top-{}, {} tokens in {} sequences, {} ({})\n",
                                m.name.empty() ? "trace" : m.name, m.layers, m.experts, m.top_k, m.tokens, s.sequences,
                                origin_name(m.origin), m.recorded_from.empty() ? m.model : m.recorded_from);
  if (!m.sha256.empty()) out += "sha256 " + m.sha256 + "\n";
  out += fmt::format("{:>5} {:>6} {:>8} {:>8} {:>9} {:>7} {:>8} {:>8} {:>7}\n", "layer", "gini", "entropy", "max/mean",
                     "top10pct", "uni64", "corr512", "corr2048", "reuse");
  for (std::size_t l = 0; l < s.layers.size(); ++l) {
    const LayerStats& r = s.layers[l];
    out += fmt::format("{:>5} {:>6.3f} {:>8.3f} {:>8.2f} {:>9.3f} {:>7} {:>8} {:>8} {:>7}\n", layer_id(m, l),
                       r.shape.gini, r.shape.entropy_bits, r.shape.max_over_mean, r.shape.top10pct_share,
                       or_dash(r.unions[2]), or_dash(r.correlation[0]), or_dash(r.correlation[1]), or_dash(r.reuse));
  }
  for (const DomainStats& d : s.domains)
    out += fmt::format("domain {}: {} sequences, {} tokens, gini {:.3f}, max/mean {:.2f}\n", d.name, d.sequences,
                       d.tokens, d.shape.gini, d.shape.max_over_mean);
  for (const std::string& w : m.warnings) out += "note: " + w + "\n";
  return out;
}

std::string loads_info_table(const LoadData& data) {
  const LoadStats s = load_stats(data);
  std::string out = fmt::format("expert loads (no token order): {} layers, {} experts, {} steps{}\n", data.layers,
                                data.experts, data.steps, data.traffic ? "" : "; not traffic");
  out += fmt::format("{:>5} {:>6} {:>8} {:>8} {:>9}\n", "layer", "gini", "entropy", "max/mean", "top10pct");
  for (std::size_t l = 0; l < s.layers.size(); ++l)
    out += fmt::format("{:>5} {:>6.3f} {:>8.3f} {:>8.2f} {:>9.3f}\n", layer_id(data.meta, l), s.layers[l].gini,
                       s.layers[l].entropy_bits, s.layers[l].max_over_mean, s.layers[l].top10pct_share);
  for (const std::string& w : data.meta.warnings) out += "note: " + w + "\n";
  return out;
}

}  // namespace sojourn
