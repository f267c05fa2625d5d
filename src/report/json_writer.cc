// JSON text: escaping, number forms, layout.
#include "report/json_writer.h"

#include <charconv>
#include <cmath>

namespace sojourn {
namespace {

/// Length of the UTF-8 sequence at the start of `s`, or 0 when it is not valid.
size_t utf8_length(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  size_t length = 0;
  std::uint32_t code = 0;
  if (first >= 0xC2 && first < 0xE0) {
    length = 2;
    code = first & 0x1Fu;
  } else if (first >= 0xE0 && first < 0xF0) {
    length = 3;
    code = first & 0x0Fu;
  } else if (first >= 0xF0 && first < 0xF5) {
    length = 4;
    code = first & 0x07u;
  } else {
    return 0;
  }
  if (s.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  if (length == 3 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) return 0;
  if (length == 4 && (code < 0x10000 || code > 0x10FFFF)) return 0;
  return length;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) {
      out += "\\ufffd";
      text.remove_prefix(1);
      continue;
    }
    const char c = text.front();
    if (length > 1) {
      out += text.substr(0, length);
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x7F) {
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
    text.remove_prefix(length);
  }
  out += '"';
}

std::string json_double(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == 0) return "0";
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  static_cast<void>(error);  // 40 characters hold every double
  return std::string(buffer, end);
}

void JsonWriter::new_line() {
  if (indent_ < 0) return;
  out_ += '\n';
  out_.append(static_cast<size_t>(indent_) * has_items_.size(), ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) out_ += ',';
  has_items_.back() = true;
  new_line();
}

JsonWriter& JsonWriter::open(char c) {
  before_value();
  out_ += c;
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char c) {
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) new_line();
  out_ += c;
  if (has_items_.empty() && indent_ >= 0) out_ += '\n';
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  append_json_string(out_, name);
  out_ += indent_ < 0 ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_json_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) { return raw(json_double(number)); }
JsonWriter& JsonWriter::value(std::int64_t number) { return raw(std::to_string(number)); }
JsonWriter& JsonWriter::value(bool flag) { return raw(flag ? "true" : "false"); }
JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
  return *this;
}

}  // namespace sojourn
