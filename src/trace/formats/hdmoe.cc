// HD-MoE JSON: {"<layer>": [[id, id], ...]}, one continuous stream of tokens a file. Source: the HD-MoE paper's
// repository (arXiv 2509.09420). Assumptions: a file is one sequence; experts_<category>_<model>.json gives domain and
// model.
#include "trace/csv_reader.h"
#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

/// "experts_coding_mixtral.json" -> {"coding", "mixtral"}.
std::pair<std::string, std::string> category(const std::string& name) {
  const std::string stem = name.substr(0, name.rfind('.'));
  const auto first = stem.find('_'), last = stem.rfind('_');
  if (stem.rfind("experts_", 0) != 0 || last == first) return {stem, ""};
  return {stem.substr(first + 1, last - first - 1), stem.substr(last + 1)};
}

Result<Imported> import_hdmoe(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  TraceBuilder b("hdmoe");
  b.meta.note = "request boundaries and phases were not recorded: a file is one continuous stream";
  for (const InputFile& f : files) {
    const auto [domain, model] = category(f.name);
    if (model == "mixtral") b.meta.recorded_from = "mixtral-8x7b (variant not stated)";
    JsonReader r(f.bytes, f.path);
    SequenceRows rows;
    std::vector<int> ids;
    const bool read = r.object([&](const std::string& key) {
      int layer = 0;
      if (!csv_number(key, layer) || layer < 0 || layer > 4095) return r.error("expected a layer number as key");
      if (rows.ids.count(layer) != 0) return r.error("the layer appears twice");
      rows.ids[layer];  // a layer without tokens must not go unseen
      return r.array([&] {
        std::string why;
        return r.ids(ids) && (b.add(rows, layer, ids, {}, why) || r.error(why));
      });
    });
    if (!read || !r.finish()) return tl::unexpected(r.failure());
    if (auto ok = b.close(rows, domain, f.span(), warnings); !ok) return tl::unexpected(ok.error());
  }
  return as_trace(b.finish(params, files[0].span(), warnings));
}

int sniff(const InputFile& f) {
  // {"0": [[
  std::string packed;
  for (char c : f.head().substr(0, 200))
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') packed += c;
  std::size_t i = 0;
  if (packed.size() < 8 || packed[i++] != '{' || packed[i++] != '"') return 0;
  const std::size_t digits = i;
  while (i < packed.size() && packed[i] >= '0' && packed[i] <= '9') ++i;
  return i > digits && packed.compare(i, 4, "\":[[") == 0 ? 85 : 0;
}

}  // namespace

void register_formats_hdmoe(FormatRegistry& registry) {
  registry.add({"hdmoe", "HD-MoE JSON: layer -> list of id lists, one stream a file", common_params()},
               {sniff, import_hdmoe});
}

}  // namespace sojourn
