// Any bytes offered as a Hugging Face config.json: an error or a preset that
// loads, never a crash, and every reported position lies in the text. The
// corpus holds the keys of published configurations, one file a preset of that
// name.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "moe/model_import.h"
#include "moe/model_load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto preset = sojourn::model_import_hf_text(text, "config.json");
  if (!preset) {
    if (preset.error().diagnostics.empty()) std::abort();
    for (const sojourn::Diagnostic& d : preset.error().diagnostics.items())
      if (d.message.empty() || d.where.line < 0) std::abort();
    return 0;
  }
  const auto model = sojourn::parse_model(*preset, "config.toml");
  if (!model) std::abort();
  // Sums of a valid shape are finite and consistent.
  if (model->active_params() > model->total_params() || model->total_params() <= 0) std::abort();
  for (int block = 0; block < model->layers; block += 97) {
    const auto work = sojourn::block_work(*model, block, sojourn::Mode::prefill, 2048, 0);
    if (work.macs() < 0 || work.weight_bytes < 0 || work.kv_write_bytes < 0) std::abort();
  }
  return 0;
}
