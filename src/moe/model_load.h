// Model presets: one TOML file a model, found by name in search directories, checked whole in one pass.
//
//   auto m = load_model("dbrx", {"models"});            // models/dbrx.toml
//   auto m = load_model("./mine.toml", {});             // a path: has a '/' or ends in .toml
//   auto l = load_model_list("table2,mine", {"models", "/home/me/models"});
//
// A user adds a model with one new file in a search directory; its stem is its name.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sojourn/diagnostics.h"
#include "sojourn/model.h"
#include "sojourn/params.h"

namespace sojourn {

/// Every key of a preset: name (dotted inside a table), default, bounds, text. Drives loading, `unverified` and
/// `sojourn describe models`. Keys of [attention] are those of [attention_alt] too.
[[nodiscard]] std::vector<Param> model_params();

/// What `model_params` names, as this model has it: keys of the file, then of the attention tables it uses.
[[nodiscard]] std::vector<std::pair<std::string, Value>> model_values(const ModelShape& m);

/// A preset from text. `file` is what messages call it; its stem is the model's name.
[[nodiscard]] Result<ModelShape> parse_model(std::string_view toml, const std::string& file);

/// The preset of a shape: every key that differs from its default. Loads back to an equal shape.
[[nodiscard]] std::string model_to_toml(const ModelShape& m);

/// A preset by name or path. `where` and `key` say who asked, for an unknown name.
[[nodiscard]] Result<ModelShape> load_model(const std::string& name_or_path,
                                            const std::vector<std::string>& search_dirs,
                                            const SourceSpan& where = {"<command line>"},
                                            const std::string& key = "model");

/// Comma-separated names, paths and sets, each model once, in the order first named. Sets: `table2` (HCRMap's eight, in
/// its order), `all-moe`, `all-dense`, `all`. Errors of every model in one pass.
[[nodiscard]] Result<std::vector<ModelShape>> load_model_list(const std::string& list,
                                                              const std::vector<std::string>& search_dirs,
                                                              const SourceSpan& where = {"<command line>"},
                                                              const std::string& key = "models");

/// Names of the presets in the directories, sorted; a directory that does not exist has none.
[[nodiscard]] std::vector<std::string> model_names(const std::vector<std::string>& search_dirs);

/// HCRMap's Table 2, in its order.
[[nodiscard]] const std::vector<std::string>& table2_models();

}  // namespace sojourn
