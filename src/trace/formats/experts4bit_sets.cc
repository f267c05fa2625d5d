// experts4bit routed_sets.jsonl(.gz): a line a request: {example_index, routed: {"<layer>": [[expert, tokens], ...]}}.
// Experts without tokens are left out. Source: experts4bit-qlora. A step is a request; the token order inside it is
// lost.
#include <fmt/format.h>

#include "trace/csv_reader.h"
#include "trace/formats.h"
#include "trace/json_reader.h"
#include "trace/zip.h"

namespace sojourn {
namespace {

constexpr std::uint64_t kMaxText = 2ULL << 30;

bool read_line(JsonReader& r, LoadBuilder& b, std::int64_t step) {
  const bool read = r.object([&](const std::string& key) {
    if (key != "routed") return r.skip();
    return r.object([&](const std::string& number) {
      int layer = 0;
      if (!csv_number(number, layer)) return r.error("expected a layer number as key");
      return r.array([&] {
        std::int64_t pair[2] = {0, 0};
        int n = 0;
        if (!r.array([&] { return n < 2 ? r.integer(pair[n++]) : r.error("expected [expert, tokens]"); })) return false;
        std::string why;
        if (n != 2) return r.error("expected [expert, tokens]");
        return b.add(step, layer, pair[0], static_cast<double>(pair[1]), why) || r.error(why);
      });
    });
  });
  return read && r.finish();
}

Result<Imported> import_sets(const std::vector<InputFile>& files, const ParamSet&, Diagnostics& warnings) {
  LoadBuilder b("experts4bit-sets");
  std::int64_t step = 0;
  for (const InputFile& f : files) {
    std::string inflated;
    std::string_view text = f.bytes;
    if (text.substr(0, 2) == "\x1f\x8b") {
      auto t = gunzip(text, f.path, std::min<std::uint64_t>(kMaxText, f.bytes.size() * 1100 + (1 << 20)));
      if (!t) return tl::unexpected(t.error());
      inflated = std::move(*t);
      text = inflated;
    }
    if (f.path.find("olmoe") != std::string::npos && b.meta.recorded_from.empty()) {
      b.meta.recorded_from = "OLMoE-1B-7B";
      b.meta.model = "olmoe-1b-7b";
      b.declare_experts(64);
      b.meta.top_k = 8;
    }
    Failure failure;
    const bool read = each_line(text, [&](std::string_view line, int number) {
      JsonReader r(line, f.path, number);
      if (read_line(r, b, step)) {
        ++step;
        return true;
      }
      failure = r.failure();
      return false;
    });
    if (!read) return tl::unexpected(failure);
  }
  b.meta.note = "a step is a request";
  return as_loads(b.finish(files[0].span()), warnings);
}

int sniff(const InputFile& f) {
  if (f.bytes.substr(0, 2) == "\x1f\x8b")
    return f.name.find("routed_sets") != std::string::npos ? 95
           : f.name.find(".jsonl.gz") != std::string::npos ? 50
                                                           : 0;
  return has_all(f.head().substr(0, 300), {"\"example_index\"", "\"routed\""}) ? 95 : 0;
}

}  // namespace

void register_formats_experts4bit_sets(FormatRegistry& registry) {
  registry.add({"experts4bit-sets", "experts4bit routed_sets.jsonl.gz: counts a request and layer; no token order", {}},
               {sniff, import_sets, true});
}

}  // namespace sojourn
