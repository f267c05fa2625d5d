// gpt-oss expert fingerprinting JSON: one object a request; `router_data` lists {"token_<p>": {"layer_<l>":
// {selected_experts, selected_probs}}} over decoded tokens. Source: GPT-OSS-MoE-ExpertFingerprinting (format facts in
// its README). Assumptions: decode phase only; the folder is the subject, taken as the domain.
#include <charconv>

#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

/// The number after `prefix` ("layer_12" -> 12).
bool suffix_number(const std::string& key, std::string_view prefix, int& out) {
  if (key.rfind(prefix, 0) != 0) return false;
  const char* end = key.data() + key.size();
  const auto r = std::from_chars(key.data() + prefix.size(), end, out);
  return r.ec == std::errc() && r.ptr == end && out >= 0;
}

struct Request {
  SequenceRows rows;
  bool looping = false;
};

bool read_layer(JsonReader& r, TraceBuilder& b, SequenceRows& rows, const std::string& key) {
  int layer = 0;
  if (!suffix_number(key, "layer_", layer)) return r.error("expected a key layer_<number>");
  std::vector<int> ids;
  std::vector<float> probs;
  const bool read = r.object([&](const std::string& k) {
    if (k == "selected_experts") return r.ids(ids);
    if (k == "selected_probs") return r.floats(probs);
    return r.skip();
  });
  std::string why;
  return read && (b.add(rows, layer, ids, probs, why) || r.error(why));
}

bool read_request(JsonReader& r, TraceBuilder& b, Request& out) {
  return r.object([&](const std::string& key) {
    if (key == "has_repetition" && r.peek() == JsonReader::Kind::boolean) return r.boolean(out.looping);
    if (key != "router_data") return r.skip();
    return r.array([&] {
      return r.object([&](const std::string& token) {
        int position = 0;
        if (!suffix_number(token, "token_", position)) return r.error("expected a key token_<position>");
        out.rows.position.push_back(position);
        out.rows.phase.push_back(1);
        return r.object([&](const std::string& layer) { return read_layer(r, b, out.rows, layer); });
      });
    });
  });
}

Result<Imported> import_gpt_oss(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  TraceBuilder b("gpt-oss");
  b.meta.recorded_from = "openai/gpt-oss-20b";
  b.meta.note = "decode phase only; prompt tokens have no routes";
  for (const InputFile& f : files) {
    JsonReader r(f.bytes, f.path);
    Request request;
    if (!read_request(r, b, request) || !r.finish()) return tl::unexpected(r.failure());
    if (request.looping)
      warnings.warning(f.span(), "has_repetition",
                       f.folder + "/" + f.name + ": the generation loops, so its locality is higher than real text's");
    if (auto ok = b.close(request.rows, f.folder, f.span(), warnings); !ok) return tl::unexpected(ok.error());
  }
  return as_trace(b.finish(params, files[0].span(), warnings));
}

int sniff(const InputFile& f) {
  if (first_char(f.head()) != '{') return 0;
  if (has_all(f.head(), {"\"router_data\""})) return 95;
  return has_all(f.head(), {"\"original_prompt\"", "\"has_repetition\""}) ? 90 : 0;
}

}  // namespace

void register_formats_gpt_oss(FormatRegistry& registry) {
  registry.add({"gpt-oss", "gpt-oss expert fingerprinting JSON, one file a request (decode)", common_params()},
               {sniff, import_gpt_oss});
}

}  // namespace sojourn
