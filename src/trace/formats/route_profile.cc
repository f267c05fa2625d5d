// experts4bit route_profile.jsonl: rows {row: meta | layer | expert}; expert rows carry layer_id, expert_id, hits and
// tokens_routed, and experts never used are absent. Source: experts4bit-qlora. `tokens_routed` is the load.
#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

bool read_row(JsonReader& r, LoadBuilder& b) {
  std::string kind;
  std::int64_t layer = -1, expert = -1, tokens = -1;
  int experts = 0;
  const bool read = r.object([&](const std::string& key) {
    if (key == "row") return r.string(kind);
    if (key == "layer_id") return r.integer(layer);
    if (key == "expert_id") return r.integer(expert);
    if (key == "tokens_routed") return r.integer(tokens);
    if (key == "num_experts") return r.index(experts, 65535);
    if (key == "model" && r.peek() == JsonReader::Kind::string) {
      std::string model;
      if (!r.string(model)) return false;
      if (model != "?") b.meta.recorded_from = model;
      return true;
    }
    return r.skip();
  });
  if (!read || !r.finish()) return false;
  std::string why;
  if (kind == "layer") {
    if (layer < 0 || layer > 4095) return r.error("a layer row needs layer_id from 0 to 4095");
    b.declare_layer(layer);
    b.declare_experts(experts);
  }
  if (kind == "expert") return b.add(0, layer, expert, static_cast<double>(tokens), why) || r.error(why);
  return true;
}

Result<Imported> import_profile(const std::vector<InputFile>& files, const ParamSet&, Diagnostics& warnings) {
  LoadBuilder b("route-profile");
  for (const InputFile& f : files) {
    Failure failure;
    const bool read = each_line(f.bytes, [&](std::string_view line, int number) {
      JsonReader r(line, f.path, number);
      if (read_row(r, b)) return true;
      failure = r.failure();
      return false;
    });
    if (!read) return tl::unexpected(failure);
  }
  return as_loads(b.finish(files[0].span()), warnings);
}

int sniff(const InputFile& f) {
  return first_char(f.head()) == '{' && has_all(f.head().substr(0, 4096), {"\"row\"", "\"layer_id\""}) ? 95 : 0;
}

}  // namespace

void register_formats_route_profile(FormatRegistry& registry) {
  registry.add({"route-profile", "experts4bit route_profile.jsonl: tokens an expert and layer; no token order", {}},
               {sniff, import_profile, true});
}

}  // namespace sojourn
