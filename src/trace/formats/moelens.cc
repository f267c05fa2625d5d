// MoELens JSON: one prompt; `layers` lists {layer, is_dense, tokens: null or [{token_index, top_experts, top_weights,
// all_probs}]}. Source: MoELens. Assumptions: prefill; dense layers have null and are left out; all_probs is not kept.
#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

bool read_token(JsonReader& r, TraceBuilder& b, SequenceRows& rows, int layer) {
  std::vector<int> ids;
  std::vector<float> weights;
  const bool read = r.object([&](const std::string& key) {
    if (key == "top_experts") return r.ids(ids);
    if (key == "top_weights") return r.floats(weights);
    return r.skip();
  });
  std::string why;
  return read && (b.add(rows, layer, ids, weights, why) || r.error(why));
}

bool read_layer(JsonReader& r, TraceBuilder& b, SequenceRows& rows) {
  int layer = -1;
  return r.object([&](const std::string& key) {
    if (key == "layer") return r.index(layer, 4095);
    if (key != "tokens" || r.null()) return key == "tokens" || r.skip();
    if (layer < 0) return r.error("`layer` must come before `tokens`");
    return r.array([&] { return read_token(r, b, rows, layer); });
  });
}

Result<Imported> import_moelens(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  TraceBuilder b("moelens");
  for (const InputFile& f : files) {
    JsonReader r(f.bytes, f.path);
    SequenceRows rows;
    const bool read = r.object([&](const std::string& key) {
      if (key == "model_id" && r.peek() == JsonReader::Kind::string) return r.string(b.meta.recorded_from);
      if (key == "num_experts") return r.index(b.meta.experts, 65535);
      if (key == "top_k_experts") return r.index(b.meta.top_k, 1024);
      if (key == "layers") return r.array([&] { return read_layer(r, b, rows); });
      return r.skip();
    });
    if (!read || !r.finish()) return tl::unexpected(r.failure());
    if (!rows.ids.empty()) rows.phase.assign(rows.ids.begin()->second.size() / static_cast<std::size_t>(b.top_k()), 0);
    if (auto ok = b.close(rows, "", f.span(), warnings); !ok) return tl::unexpected(ok.error());
  }
  return as_trace(b.finish(params, files[0].span(), warnings));
}

int sniff(const InputFile& f) {
  return first_char(f.head()) == '{' && (has_all(f.head(), {"\"dense_layer_indices\""}) ||
                                         has_all(f.head(), {"\"top_experts\"", "\"is_dense\""}))
             ? 95
             : 0;
}

}  // namespace

void register_formats_moelens(FormatRegistry& registry) {
  registry.add({"moelens", "MoELens JSON, one prompt a file; dense layers are null", common_params()},
               {sniff, import_moelens});
}

}  // namespace sojourn
