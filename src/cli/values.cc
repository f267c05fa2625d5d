// Numbers, words and lists from option text.
#include "cli/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "cli/io.h"

namespace sojourn::cli {
namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Long input is cut so that a message stays a line.
std::string quoted(const std::string& text) {
  return "'" + (text.size() > 60 ? text.substr(0, 57) + "..." : text) + "'";
}

}  // namespace

void Values::error(const std::string& key, const std::string& message, const std::string& remedy) {
  problems_.error(command_line(), key, message, remedy);
}

std::int64_t Values::whole(const std::string& key, const std::string& text, std::int64_t fallback, std::int64_t min,
                           std::int64_t max) {
  if (text.empty()) return fallback;
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string remedy = fmt::format("give a whole number from {} to {}", min, max);
  if (code == std::errc::invalid_argument || (code == std::errc{} && end != text.data() + text.size())) {
    error(key, quoted(text) + " is not a whole number", remedy);
    return fallback;
  }
  if (code == std::errc::result_out_of_range || value < min || value > max) {
    error(key, quoted(text) + " is out of range", remedy);
    return fallback;
  }
  return value;
}

double Values::number(const std::string& key, const std::string& text, double fallback, double min, double max) {
  if (text.empty()) return fallback;
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string remedy = fmt::format("give a number from {} to {}", min, max);
  if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    error(key, quoted(text) + " is not a number", remedy);
    return fallback;
  }
  if (value < min || value > max) {
    error(key, quoted(text) + " is out of range", remedy);
    return fallback;
  }
  return value;
}

size_t Values::choice(const std::string& key, const std::string& text, const std::vector<std::string>& words) {
  const auto it = std::find(words.begin(), words.end(), text);
  if (it != words.end()) return static_cast<size_t>(it - words.begin());
  const std::string near = closest(text, words);
  error(key, "unknown word " + quoted(text),
        fmt::format("{}give one of {}", near.empty() ? "" : fmt::format("did you mean {}? ", near),
                    fmt::join(words, ", ")));
  return 0;
}

std::vector<std::string> Values::list(const std::string& key, const std::string& text) {
  std::vector<std::string> out;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const std::string part = trimmed(text.substr(from, comma - from));
    if (part.empty())
      error(key, fmt::format("{} has an empty part", quoted(text)), "separate names by single commas");
    else if (std::find(out.begin(), out.end(), part) != out.end())
      error(key, fmt::format("{} is named twice", quoted(part)), "name it once");
    else
      out.push_back(part);
    from = comma + 1;
  }
  return out;
}

std::pair<std::string, std::string> Values::assignment(const std::string& key, const std::string& text) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    error(key, quoted(text) + " is not NAME=VALUE", fmt::format("write it as {} NAME=VALUE", key));
    return {};
  }
  return {trimmed(text.substr(0, at)), trimmed(text.substr(at + 1))};
}

void read_traces(const std::vector<std::string>& texts, Values& values,
                 std::vector<std::pair<std::string, std::string>>& traces) {
  for (const std::string& text : texts) {
    std::error_code error;
    const size_t at = text.find('=');
    const bool assigned = at != std::string::npos && !std::filesystem::exists(text, error) &&
                          text.substr(0, at).find('/') == std::string::npos;
    const std::string model = assigned ? text.substr(0, at) : "";
    const std::string path = assigned ? text.substr(at + 1) : text;
    if (path.empty() || (assigned && model.empty()))
      values.error("--trace", fmt::format("'{}' names no {}", text, path.empty() ? "file" : "model"),
                   "write --trace FILE or --trace MODEL=FILE");
    else if (!std::filesystem::exists(path, error))
      values.error("--trace", fmt::format("{}: there is no such file", path),
                   "give a trace container (.npz); sojourn trace import makes one");
    else
      traces.emplace_back(model, path);
  }
}

}  // namespace sojourn::cli
