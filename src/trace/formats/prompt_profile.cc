// flash-moe activation profile: {num_prompts, num_experts, layers: {"<l>": {activation_counts: {"<e>": prompts}}}}. The
// counts say in how many prompts an expert was used at all, not how many tokens it got: read as loads marked unfit for
// traffic. Source: flash-moe.
#include <fmt/format.h>

#include "trace/csv_reader.h"
#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

bool read_layer(JsonReader& r, LoadBuilder& b, std::int64_t layer) {
  return r.object([&](const std::string& key) {
    if (key != "activation_counts") return r.skip();
    return r.object([&](const std::string& number) {
      std::int64_t expert = 0, count = 0;
      std::string why;
      if (!csv_number(number, expert)) return r.error("expected an expert number as key");
      return r.integer(count) && (b.add(0, layer, expert, static_cast<double>(count), why) || r.error(why));
    });
  });
}

Result<Imported> import_profile(const std::vector<InputFile>& files, const ParamSet&, Diagnostics& warnings) {
  if (files.size() > 1) return fail(files[1].span(), "", "profiles cannot be added up", "import one at a time");
  LoadBuilder b("prompt-profile");
  b.traffic = false;
  int prompts = 0;
  JsonReader r(files[0].bytes, files[0].path);
  const bool read = r.object([&](const std::string& key) {
    if (key == "model" && r.peek() == JsonReader::Kind::string) return r.string(b.meta.recorded_from);
    if (key == "num_prompts") return r.index(prompts, 1 << 30);
    if (key == "num_experts") {
      int n = 0;
      if (!r.index(n, 65535)) return false;
      b.declare_experts(n);
      return true;
    }
    if (key != "layers") return r.skip();
    return r.object([&](const std::string& number) {
      std::int64_t layer = 0;
      if (!csv_number(number, layer)) return r.error("expected a layer number as key");
      return read_layer(r, b, layer);
    });
  });
  if (!read || !r.finish()) return tl::unexpected(r.failure());
  b.meta.note =
      fmt::format("counts of prompts ({} in all) that used an expert at least once, not token loads", prompts);
  warnings.warning(files[0].span(), "", "these are prompt counts, not token loads: do not use them as traffic");
  return as_loads(b.finish(files[0].span()), warnings);
}

int sniff(const InputFile& f) {
  return first_char(f.head()) == '{' && has_all(f.head().substr(0, 2000), {"\"num_prompts\"", "\"layers\""}) ? 95 : 0;
}

}  // namespace

void register_formats_prompt_profile(FormatRegistry& registry) {
  registry.add({"prompt-profile", "flash-moe activation profile: prompts an expert, not traffic", {}},
               {sniff, import_profile, true});
}

}  // namespace sojourn
