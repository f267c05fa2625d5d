// Choosing a format and running it.
#include "trace/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>

namespace sojourn {

const FormatRegistry& formats() {
  static const FormatRegistry registry = [] {
    FormatRegistry r("trace format");
    register_all_formats(r);
    return r;
  }();
  return registry;
}

bool has_all(std::string_view head, std::initializer_list<std::string_view> words) {
  return std::all_of(words.begin(), words.end(),
                     [&](std::string_view w) { return head.find(w) != std::string_view::npos; });
}

char first_char(std::string_view head) {
  for (char c : head)
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
  return '\0';
}

bool each_line(std::string_view text, const std::function<bool(std::string_view, int)>& line) {
  int number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    const std::string_view one = text.substr(0, end);
    if (first_char(one) != '\0' && !line(one, number)) return false;
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return true;
}

Result<Imported> as_trace(Result<TraceData> data) {
  if (!data) return tl::unexpected(std::move(data.error()));
  Imported out;
  out.trace = std::move(*data);
  return out;
}

Result<Imported> as_loads(Result<LoadData> data, const Diagnostics& warnings) {
  if (!data) return tl::unexpected(std::move(data.error()));
  for (const Diagnostic& d : warnings.items()) data->meta.warnings.push_back(d.message);
  Imported out;
  out.loads = std::move(*data);
  return out;
}

namespace {

/// The format most files look like (ties: the surer one, then the name); files of other formats go.
Result<const FormatRegistry::Entry*> choose(std::vector<InputFile>& inputs, Diagnostics& warnings) {
  std::map<std::string, int> sure;
  std::vector<std::string> best(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    int most = 0;
    for (const auto& [name, entry] : formats().entries()) {
      const int s = entry.factory.sniff(inputs[i]);
      if (s > most) {
        most = s;
        best[i] = name;
      }
    }
    if (!best[i].empty()) sure[best[i]] += most;
  }
  if (sure.empty())
    return fail(inputs[0].span(), "", "not a known trace format",
                "name the format: " + fmt::format("{}", fmt::join(formats().names(), ", ")));
  const auto winner =
      std::max_element(sure.begin(), sure.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<InputFile> kept;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (best[i] == winner->first) {
      kept.push_back(std::move(inputs[i]));
    } else if (inputs[i].named) {
      return fail(inputs[i].span(), "",
                  best[i].empty() ? "not a known trace format"
                                  : fmt::format("looks like {}, the other files like {}", best[i], winner->first),
                  "import files of one format together, or name the format");
    } else {
      warnings.warning(inputs[i].span(), "", fmt::format("{}: not {}; passed over", inputs[i].name, winner->first));
    }
  }
  inputs = std::move(kept);
  return formats().find(winner->first);
}

}  // namespace

Result<Imported> import_inputs(const std::string& format, std::vector<InputFile> inputs,
                               const std::vector<std::pair<std::string, std::string>>& params, Diagnostics& warnings) {
  try {
    const FormatRegistry::Entry* entry = nullptr;
    const SourceSpan command{"<command line>"};
    if (inputs.empty()) return fail(command, "IN", "no input files", "name files, folders or globs");
    if (format == "auto") {
      auto chosen = choose(inputs, warnings);
      if (!chosen) return tl::unexpected(chosen.error());
      entry = *chosen;
    } else {
      auto found = formats().require(format, command, "FORMAT");
      if (!found) return tl::unexpected(found.error());
      entry = *found;
      const bool any =
          std::any_of(inputs.begin(), inputs.end(), [&](const InputFile& f) { return entry->factory.sniff(f) > 0; });
      if (any) {
        std::vector<InputFile> kept;
        for (InputFile& f : inputs) {
          if (f.named || entry->factory.sniff(f) > 0)
            kept.push_back(std::move(f));
          else
            warnings.warning(f.span(), "", fmt::format("{}: not {}; passed over", f.name, format));
        }
        inputs = std::move(kept);
      }
    }
    auto resolved = resolve(entry->info.params, params, command, "trace." + entry->info.name);
    if (!resolved) return tl::unexpected(resolved.error());
    return entry->factory.import(inputs, *resolved, warnings);
  } catch (const std::bad_alloc&) {
    return fail(inputs.empty() ? SourceSpan{} : inputs[0].span(), "", "out of memory", "import fewer files at a time",
                3);
  }
}

}  // namespace sojourn
