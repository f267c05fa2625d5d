// expert-load.json of EPLB benchmarks: {load_history: [{logical_expert_load: [layer][expert]}, ...]}. A step is an
// entry.
#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

bool read_matrix(JsonReader& r, LoadBuilder& b, std::int64_t step) {
  std::int64_t layer = 0;
  return r.array([&] {
    std::int64_t expert = 0;
    const bool row = r.array([&] {
      double v = 0;
      std::string why;
      return r.number(v) && (b.add(step, layer, expert++, v, why) || r.error(why));
    });
    ++layer;
    return row;
  });
}

Result<Imported> import_expert_load(const std::vector<InputFile>& files, const ParamSet&, Diagnostics& warnings) {
  LoadBuilder b("expert-load");
  std::int64_t step = 0;
  for (const InputFile& f : files) {
    JsonReader r(f.bytes, f.path);
    const bool read = r.object([&](const std::string& key) {
      if (key != "load_history") return r.skip();
      return r.array([&] {
        const bool entry = r.object(
            [&](const std::string& k) { return k == "logical_expert_load" ? read_matrix(r, b, step) : r.skip(); });
        ++step;
        return entry;
      });
    });
    if (!read || !r.finish()) return tl::unexpected(r.failure());
  }
  return as_loads(b.finish(files[0].span()), warnings);
}

int sniff(const InputFile& f) {
  return first_char(f.head()) == '{' && has_all(f.head(), {"\"load_history\""}) ? 95 : 0;
}

}  // namespace

void register_formats_expert_load(FormatRegistry& registry) {
  registry.add({"expert-load", "EPLB benchmark expert-load.json; no token order", {}},
               {sniff, import_expert_load, true});
}

}  // namespace sojourn
