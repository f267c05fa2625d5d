// Hugging Face config.json -> a TOML preset, so that a published model becomes one file in models/.
#pragma once
#include <string>
#include <string_view>

#include "sojourn/diagnostics.h"

namespace sojourn {

/// The text of a preset for the model a config.json describes. Errors: unreadable, over 4 MiB, not JSON (line and
/// column), nested too deeply, an unknown model_type, missing or impossible keys, a pattern of blocks that a preset
/// cannot state. The preset has been loaded once, so what is returned is valid.
[[nodiscard]] Result<std::string> model_import_hf(const std::string& path);
[[nodiscard]] Result<std::string> model_import_hf_text(std::string_view json, const std::string& file);

}  // namespace sojourn
