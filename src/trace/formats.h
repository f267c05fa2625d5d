// The registry of trace formats. A format is one file in formats/: it says how sure it is that some bytes are its own
// (`sniff`) and turns files into a trace, or into loads where the token order is not in the files.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sojourn/params.h"
#include "sojourn/trace.h"
#include "trace/builder.h"
#include "trace/inputs.h"
#include "trace/loads.h"

namespace sojourn {

/// Exactly one is set.
struct Imported {
  std::optional<TraceData> trace;
  std::optional<LoadData> loads;
};

struct FormatFactory {
  /// 0 = surely not, 100 = surely; looks at name and first 64 KiB only.
  std::function<int(const InputFile&)> sniff;
  std::function<Result<Imported>(const std::vector<InputFile>&, const ParamSet&, Diagnostics& warnings)> import;
  bool counts_only = false;
};

using FormatRegistry = Registry<FormatFactory>;
/// Defined by the generated file; calls register_formats_<stem> of every file in formats/.
void register_all_formats(FormatRegistry& registry);
/// The filled registry (built once, then read-only).
[[nodiscard]] const FormatRegistry& formats();

/// Reads `inputs` as `format` ("auto" = the best sniff). Unrelated files found in folders are passed over with a
/// warning; files the user named are not.
[[nodiscard]] Result<Imported> import_inputs(const std::string& format, std::vector<InputFile> inputs,
                                             const std::vector<std::pair<std::string, std::string>>& params,
                                             Diagnostics& warnings);

// Helpers for format files.
/// Runs `each(file)` for every file and finishes a TraceBuilder.
[[nodiscard]] Result<Imported> as_trace(Result<TraceData> data);
[[nodiscard]] Result<Imported> as_loads(Result<LoadData> data, const Diagnostics& warnings);
/// True when the head contains every word.
[[nodiscard]] bool has_all(std::string_view head, std::initializer_list<std::string_view> words);
/// First byte that is not white space.
[[nodiscard]] char first_char(std::string_view head);
/// Calls line(text, number) for each non-blank line; stops when it returns false.
bool each_line(std::string_view text, const std::function<bool(std::string_view, int)>& line);

}  // namespace sojourn
