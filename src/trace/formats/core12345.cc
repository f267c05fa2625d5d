// core12345/MoE_expert_selection_trace: {model}/{dataset}/{subject}/{n}.json, one request; a list whose element 0 is
// the prefill and each further one a decoded token. Two variants are told of, both read: (a) "<layer>" -> [[ids] per
// token], dense layers null; (b) the same under `selected_experts`. Source: third-party readers; no original was seen.
#include <fmt/format.h>

#include "trace/csv_reader.h"
#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

struct Seen {
  bool flat = false, nested = false;
};

bool read_layers(JsonReader& r, TraceBuilder& b, SequenceRows& rows, Seen& seen, bool nested) {
  std::vector<int> ids;
  return r.object([&](const std::string& key) {
    if (!nested && key == "selected_experts") return read_layers(r, b, rows, seen, true);
    int layer = 0;
    if (!csv_number(key, layer)) return r.skip();
    (nested ? seen.nested : seen.flat) = true;
    if (r.null()) return true;
    return r.array([&] {
      std::string why;
      if (r.null()) return true;
      return r.ids(ids) && (b.add(rows, layer, ids, {}, why) || r.error(why));
    });
  });
}

std::size_t tokens(const SequenceRows& rows, int k) {
  return rows.ids.empty() || k == 0 ? 0 : rows.ids.begin()->second.size() / static_cast<std::size_t>(k);
}

Result<Imported> import_core12345(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  TraceBuilder b("core12345");
  Seen seen;
  for (const InputFile& f : files) {
    JsonReader r(f.bytes, f.path);
    SequenceRows rows;
    std::size_t elements = 0;
    const bool read = r.array([&] {
      if (!read_layers(r, b, rows, seen, false)) return false;
      rows.phase.resize(tokens(rows, b.top_k()), elements == 0 ? 0 : 1);
      ++elements;
      return true;
    });
    if (!read || !r.finish()) return tl::unexpected(r.failure());
    if (b.meta.recorded_from.empty() && known_model(f.path) != nullptr)
      b.meta.recorded_from = known_model(f.path)->name;
    if (auto ok = b.close(rows, f.folder, f.span(), warnings); !ok) return tl::unexpected(ok.error());
  }
  b.meta.note = seen.flat && seen.nested ? "both variants found: layers at the top and under selected_experts"
                : seen.nested            ? "variant found: layers under selected_experts"
                                         : "variant found: layers at the top of each element";
  return as_trace(b.finish(params, files[0].span(), warnings));
}

int sniff(const InputFile& f) {
  std::string packed;
  for (char c : f.head().substr(0, 400))
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') packed += c;
  if (packed.rfind("[{\"", 0) != 0) return 0;
  if (packed.find("\"selected_experts\":{\"") != std::string::npos) return 80;
  std::size_t i = 3;
  while (i < packed.size() && packed[i] >= '0' && packed[i] <= '9') ++i;
  return i > 3 && (packed.compare(i, 4, "\":[[") == 0 || packed.compare(i, 6, "\":null") == 0) ? 85 : 0;
}

}  // namespace

void register_formats_core12345(FormatRegistry& registry) {
  registry.add({"core12345", "MoE_expert_selection_trace JSON, one file a request (both variants)", common_params()},
               {sniff, import_core12345});
}

}  // namespace sojourn
