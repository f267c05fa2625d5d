// From bytes to ConfigNode: guards (size, UTF-8, nesting), then toml++, whose errors become findings with a remedy.
// The only file that sees toml++.
#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 32
// toml++ 3.3 asserts (or, with NDEBUG and clang, lets the compiler assume) that a table header starts with a key
// character, before it reports that it does not ("[@]"). Without the assertion the report comes.
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <sstream>

#include "config/node.h"
#include "config/reader.h"

namespace sojourn {
namespace {

constexpr int kMaxKeyDepth = 16;  // parts of one dotted key
constexpr int kMaxDepth = 64;     // tables and arrays inside each other

/// Walks text while keeping a 1-based line and column (columns count code points, as toml++ does).
struct Place {
  int line = 1, column = 1;
  void step(unsigned char c) {
    if (c == '\n') {
      ++line;
      column = 1;
    } else if ((c & 0xC0) != 0x80) {
      ++column;
    }
  }
};

/// Length of the well-formed UTF-8 sequence at text[i], or 0.
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || i + length > text.size()) return 0;
  unsigned value = lead & (0xFFU >> (length + 1));
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i + k) & 0x3FU);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return overlong || surrogate || value > 0x10FFFF ? 0 : length;
}

std::optional<Place> first_bad_utf8(std::string_view text) {
  Place place;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text, i);
    if (length == 0) return place;
    place.step(static_cast<unsigned char>(text[i]));
    i += length;
  }
  return std::nullopt;
}

struct Objection {
  Place place;
  const char* message;
  const char* remedy;
};

/// What toml++ must not be shown: keys or brackets nested deeper than in any honest file, on which it would recurse,
/// and non-ASCII characters outside strings and comments, on which its whitespace table has undefined behaviour. The
/// walk agrees with the parser on what is a string or comment up to the parser's first error.
std::optional<Objection> objection_to(std::string_view text) {
  const Objection too_deep{{}, "nested too deeply", "flatten the keys"};
  Place place;
  int dots = 0, brackets = 0;
  std::size_t i = text.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0;  // a byte order mark is allowed
  const auto advance = [&](std::size_t n) {
    for (; n > 0 && i < text.size(); --n) place.step(static_cast<unsigned char>(text[i++]));
  };
  const auto skip_string = [&](char quote) {
    const std::string_view triple = quote == '"' ? "\"\"\"" : "'''";
    const bool multi = text.substr(i, 3) == triple;
    advance(multi ? 3 : 1);
    while (i < text.size()) {
      if (quote == '"' && text[i] == '\\') {
        advance(2);
      } else if (multi ? text.substr(i, 3) == triple : text[i] == quote || text[i] == '\n') {
        break;
      } else {
        advance(1);
      }
    }
    advance(multi ? 3 : 1);
    for (int extra = 0; multi && extra < 2 && i < text.size() && text[i] == quote; ++extra) advance(1);
  };
  while (i < text.size()) {
    const char c = text[i];
    if (c == '#') {
      while (i < text.size() && text[i] != '\n') advance(1);
      continue;
    }
    if (c == '"' || c == '\'') {
      skip_string(c);
      continue;
    }
    if ((static_cast<unsigned char>(c) & 0x80) != 0)
      return Objection{place, "a non-ASCII character outside quotes", "put words and units in quotes"};
    if (c == '.') {
      if (++dots >= kMaxKeyDepth) return Objection{place, too_deep.message, too_deep.remedy};
    } else if (c == '[' || c == '{') {
      if (++brackets > kMaxDepth) return Objection{place, too_deep.message, too_deep.remedy};
      dots = 0;
    } else if (c == ']' || c == '}') {
      brackets = std::max(0, brackets - 1);
      dots = 0;
    } else if (c == '\n' || c == '=' || c == ',') {
      dots = 0;
    }
    advance(1);
  }
  return std::nullopt;
}

void set_position(ConfigNode& out, const toml::source_region& region) {
  out.line = static_cast<std::int32_t>(region.begin.line);
  out.column = static_cast<std::int32_t>(region.begin.column);
}

ConfigNode convert(const toml::node& node, int depth) {
  ConfigNode out;
  set_position(out, node.source());
  if (const auto* table = node.as_table()) {
    out.kind = ConfigNode::Kind::table;
    if (depth > kMaxDepth * kMaxKeyDepth) return out;  // cannot happen: objection_to bounds it
    for (const auto& [key, value] : *table) {
      ConfigNode::Entry entry;
      entry.key = std::string(key.str());
      entry.line = static_cast<std::int32_t>(key.source().begin.line);
      entry.column = static_cast<std::int32_t>(key.source().begin.column);
      entry.value = convert(value, depth + 1);
      out.entries.push_back(std::move(entry));
    }
    std::stable_sort(out.entries.begin(), out.entries.end(), [](const auto& a, const auto& b) {
      return a.line != b.line ? a.line < b.line : a.column < b.column;
    });
  } else if (const auto* array = node.as_array()) {
    out.kind = ConfigNode::Kind::array;
    if (depth > kMaxDepth * kMaxKeyDepth) return out;
    for (const auto& value : *array) out.items.push_back(convert(value, depth + 1));
  } else if (const auto* text = node.as_string()) {
    out.kind = ConfigNode::Kind::text;
    out.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    out.kind = ConfigNode::Kind::integer;
    out.integer = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    out.kind = ConfigNode::Kind::number;
    out.number = number->get();
  } else if (const auto* boolean = node.as_boolean()) {
    out.kind = ConfigNode::Kind::boolean;
    out.boolean = boolean->get();
  } else {
    out.kind = ConfigNode::Kind::date;
  }
  return out;
}

/// toml++'s words without what only its authors need.
std::string tidy(std::string message) {
  const std::string lead = "Error while ", macro = " (TOML_MAX_NESTED_VALUES)";
  if (message.rfind(lead, 0) == 0) message.erase(0, lead.size());
  if (const auto at = message.find(macro); at != std::string::npos) message.erase(at, macro.size());
  return message;
}

std::string remedy_for(const std::string& message) {
  const auto says = [&](const char* what) { return message.find(what) != std::string::npos; };
  if (says("redefine") || says("already")) return "a key or table may be given only once; delete or rename one of them";
  if (says("value-terminator") || says("decimal digit") || says("comment or whitespace") || says("value type"))
    return "quantities and words need quotes, e.g. capacity = \"64 MiB\"";
  if (says("nested")) return "flatten the keys";
  if (says("end-of-file") || says("EOF")) return "the file ends too early; is a quote or bracket missing?";
  return "see https://toml.io for the syntax";
}

}  // namespace

const char* kind_name(ConfigNode::Kind kind) {
  switch (kind) {
    case ConfigNode::Kind::boolean:
      return "a flag";
    case ConfigNode::Kind::integer:
      return "an integer";
    case ConfigNode::Kind::number:
      return "a number";
    case ConfigNode::Kind::text:
      return "a string";
    case ConfigNode::Kind::date:
      return "a date or time";
    case ConfigNode::Kind::array:
      return "a list";
    case ConfigNode::Kind::table:
      return "a table";
  }
  return "a value";
}

Result<ConfigFile> ConfigFile::parse_text(std::string_view text, const std::string& name) {
  if (static_cast<std::int64_t>(text.size()) > kMaxBytes)
    return fail({name, 0, 0}, "", fmt::format("larger than {} MiB", kMaxBytes >> 20), "is this the right file?");
  if (const auto bad = first_bad_utf8(text))
    return fail({name, bad->line, bad->column}, "", "not UTF-8 text", "save the file as UTF-8");
  if (const auto bad = objection_to(text))
    return fail({name, bad->place.line, bad->place.column}, "", bad->message, bad->remedy);
  toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const toml::parse_error& e = parsed.error();
    const std::string message = tidy(std::string(e.description()));
    return fail({name, static_cast<int>(e.source().begin.line), static_cast<int>(e.source().begin.column)}, "", message,
                remedy_for(message));
  }
  ConfigFile out;
  auto root = std::make_shared<ConfigNode>(convert(parsed.table(), 0));
  root->line = root->column = 1;
  root->text = name;  // the root carries the file name for every span
  out.root_ = std::move(root);
  out.text_ = std::make_shared<const std::string>(text);
  out.name_ = name;
  return out;
}

Result<ConfigFile> ConfigFile::parse_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return fail({path, 0, 0}, "", "cannot be opened", "check the path and its permissions");
  std::string text;
  char buffer[1 << 16];
  std::size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, file)) > 0) {
    text.append(buffer, got);
    if (static_cast<std::int64_t>(text.size()) > kMaxBytes) break;
  }
  const bool broken = std::ferror(file) != 0;
  std::fclose(file);
  if (broken) return fail({path, 0, 0}, "", "cannot be read", "is it a directory?");
  return parse_text(text, path);
}

}  // namespace sojourn
