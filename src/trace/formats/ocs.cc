// moe_ocs_learning routing.json: `meta` and `routes` = list over tokens {token_pos, phase, layers: {"<l>": {experts,
// weights}}}. Source: moe_ocs_learning. Assumptions: one file is one prompt; weights may be in any order, so the
// builder sorts by weight; the folder's name without its number is the domain ("cooking_1" -> "cooking").
#include "trace/csv_reader.h"
#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

bool read_meta(JsonReader& r, TraceMeta& meta, int& total) {
  return r.object([&](const std::string& key) {
    if (key == "model_id" && r.peek() == JsonReader::Kind::string) return r.string(meta.recorded_from);
    if (key == "num_experts") return r.index(meta.experts, 65535);
    if (key == "top_k") return r.index(meta.top_k, 1024);
    if (key == "total_tokens") return r.index(total, 1 << 30);
    return r.skip();
  });
}

bool read_route(JsonReader& r, TraceBuilder& b, SequenceRows& rows) {
  int position = static_cast<int>(rows.position.size());
  std::string phase;
  std::vector<int> ids;
  std::vector<float> weights;
  const bool read = r.object([&](const std::string& key) {
    if (key == "token_pos") return r.index(position, 1 << 30);
    if (key == "phase") return r.string(phase);
    if (key != "layers") return r.skip();
    return r.object([&](const std::string& number) {
      int layer = 0;
      if (!csv_number(number, layer)) return r.error("expected a layer number as key");
      if (r.null()) return true;  // a dense layer
      ids.clear();
      weights.clear();
      const bool inner = r.object([&](const std::string& k) {
        if (k == "experts") return r.ids(ids);
        if (k == "weights") return r.floats(weights);
        return r.skip();
      });
      std::string why;
      return inner && (b.add(rows, layer, ids, weights, why) || r.error(why));
    });
  });
  if (!read) return false;
  rows.position.push_back(position);
  if (phase == "prefill" || phase == "decode") rows.phase.push_back(phase == "decode" ? 1 : 0);
  return true;
}

Result<Imported> import_ocs(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  TraceBuilder b("ocs");
  for (const InputFile& f : files) {
    JsonReader r(f.bytes, f.path);
    SequenceRows rows;
    int total = 0;
    const bool read = r.object([&](const std::string& key) {
      if (key == "meta") return read_meta(r, b.meta, total);
      if (key == "routes") return r.array([&] { return read_route(r, b, rows); });
      return r.skip();
    });
    if (!read || !r.finish()) return tl::unexpected(r.failure());
    std::string domain = f.folder;
    while (!domain.empty() && (domain.back() == '_' || (domain.back() >= '0' && domain.back() <= '9')))
      domain.pop_back();
    if (auto ok = b.close(rows, domain, f.span(), warnings); !ok) return tl::unexpected(ok.error());
  }
  return as_trace(b.finish(params, files[0].span(), warnings));
}

int sniff(const InputFile& f) {
  if (first_char(f.head()) != '{') return 0;
  if (has_all(f.head(), {"\"routes\"", "\"token_pos\""})) return 95;
  return has_all(f.head(), {"\"num_moe_layers\"", "\"prompt_tokens\""}) ? 90 : 0;
}

}  // namespace

void register_formats_ocs(FormatRegistry& registry) {
  registry.add(
      {"ocs", "moe_ocs_learning routing.json, one file a prompt (prefill and decode, weights)", common_params()},
      {sniff, import_ocs});
}

}  // namespace sojourn
