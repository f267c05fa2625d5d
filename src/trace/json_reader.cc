// The pull parser's lexer. Strings are decoded to UTF-8; bytes that are not UTF-8 are passed through.
#include "trace/json_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

namespace sojourn {
namespace {
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxString = 1 << 26;
}  // namespace

void JsonReader::space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

JsonReader::Kind JsonReader::peek() {
  space();
  if (failed_) return Kind::bad;
  if (at_ >= text_.size()) return Kind::end;
  const char c = text_[at_];
  if (c == '{') return Kind::object;
  if (c == '[') return Kind::array;
  if (c == '"') return Kind::string;
  if (c == 't' || c == 'f') return Kind::boolean;
  if (c == 'n') return Kind::null;
  if (c == '-' || c == 'N' || c == 'I' || (c >= '0' && c <= '9')) return Kind::number;
  return Kind::bad;
}

bool JsonReader::open(char bracket, const char* wanted) {
  space();
  if (failed_) return false;
  if (at_ >= text_.size() || text_[at_] != bracket) return error(fmt::format("expected {}", wanted));
  if (path_.size() >= kMaxDepth) return error(fmt::format("nested more than {} deep", kMaxDepth));
  ++at_;
  path_.push_back({});
  return true;
}

bool JsonReader::more(char bracket, bool& first) {
  space();
  if (failed_) return false;
  if (at_ >= text_.size()) return error("the text ends inside a list or object", "is the file cut off?");
  if (text_[at_] == bracket) {
    ++at_;
    return false;
  }
  if (!first && !expect(',')) return false;
  first = false;
  space();
  return true;
}

bool JsonReader::close() {
  if (failed_) return false;
  path_.pop_back();
  return true;
}

bool JsonReader::stopped() { return failed_ ? false : error("unexpected value"); }

bool JsonReader::expect(char c) {
  space();
  if (failed_) return false;
  if (at_ >= text_.size() || text_[at_] != c) return error(fmt::format("expected '{}'", c));
  ++at_;
  return true;
}

bool JsonReader::escape(std::string& out) {
  const auto hex = [&](std::uint32_t& v) {
    if (text_.size() - at_ < 4) return false;
    const char* p = text_.data() + at_;
    const auto r = std::from_chars(p, p + 4, v, 16);
    if (r.ptr != p + 4) return false;
    at_ += 4;
    return true;
  };
  if (at_ >= text_.size()) return error("the text ends inside a string");
  const char c = text_[at_++];
  static constexpr char kFrom[] = "\"\\/bfnrt", kTo[] = "\"\\/\b\f\n\r\t";
  if (const char* p = std::strchr(kFrom, c); p != nullptr && c != '\0') {
    out += kTo[p - kFrom];
    return true;
  }
  std::uint32_t code = 0;
  if (c != 'u' || !hex(code)) return error("bad escape in a string");
  if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
    at_ += 2;
    std::uint32_t low = 0;
    if (!hex(low)) return error("bad escape in a string");
    code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xFFFD;
  } else if (code >= 0xD800 && code < 0xE000) {
    code = 0xFFFD;
  }
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 63));
    out += static_cast<char>(0x80 | (code & 63));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 63));
    out += static_cast<char>(0x80 | ((code >> 6) & 63));
    out += static_cast<char>(0x80 | (code & 63));
  }
  return true;
}

bool JsonReader::read_string(std::string& out) {
  out.clear();
  space();
  if (failed_) return false;
  if (at_ >= text_.size() || text_[at_] != '"') return error("expected a string");
  ++at_;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') return true;
    if (c == '\\') {
      if (!escape(out)) return false;
    } else {
      out += c;
    }
    if (out.size() > kMaxString) return error("a string of more than 64 MiB");
  }
  return error("the text ends inside a string", "is the file cut off?");
}

bool JsonReader::string(std::string& out) { return read_string(out); }

bool JsonReader::token(std::string_view& out) {
  space();
  if (failed_) return false;
  const std::size_t start = at_;
  while (at_ < text_.size() &&
         (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || std::strchr("+-.", text_[at_]) != nullptr) &&
         text_[at_] != '\0')
    ++at_;
  out = text_.substr(start, at_ - start);
  if (out.empty()) return error(at_ >= text_.size() ? "the text ends where a value should be" : "expected a value");
  return true;
}

bool JsonReader::number(double& out) {
  std::string_view t;
  if (!token(t)) return false;
  if (t == "NaN")
    out = std::nan("");
  else if (t == "Infinity")
    out = HUGE_VAL;
  else if (t == "-Infinity")
    out = -HUGE_VAL;
  else if (const auto r = std::from_chars(t.data(), t.data() + t.size(), out);
           r.ptr != t.data() + t.size() || r.ec == std::errc::invalid_argument)
    return error(fmt::format("expected a number, not '{}'", t.substr(0, 40)));
  return true;
}

bool JsonReader::integer(std::int64_t& out) {
  std::string_view t;
  if (!token(t)) return false;
  const auto r = std::from_chars(t.data(), t.data() + t.size(), out);
  if (r.ec == std::errc() && r.ptr == t.data() + t.size()) return true;
  double d = 0;
  const auto f = std::from_chars(t.data(), t.data() + t.size(), d);
  if (f.ec == std::errc() && f.ptr == t.data() + t.size() && d == std::floor(d) && std::abs(d) < 9e15) {
    out = static_cast<std::int64_t>(d);
    return true;
  }
  return error(fmt::format("expected an integer, not '{}'", t.substr(0, 40)));
}

bool JsonReader::boolean(bool& out) {
  std::string_view t;
  if (!token(t)) return false;
  if (t != "true" && t != "false") return error("expected true or false");
  out = t == "true";
  return true;
}

bool JsonReader::null() {
  if (peek() != Kind::null || text_.substr(at_, 4) != "null") return false;
  at_ += 4;
  return true;
}

bool JsonReader::skip() {
  switch (peek()) {
    case Kind::object:
      return object([&](const std::string&) { return skip(); });
    case Kind::array:
      return array([&] { return skip(); });
    case Kind::string: {
      std::string s;
      return read_string(s);
    }
    case Kind::boolean: {
      bool b;
      return boolean(b);
    }
    case Kind::null:
      return null() || error("expected null");
    default: {
      double d;
      return number(d);
    }
  }
}

bool JsonReader::raw(std::string& out) {
  space();
  const std::size_t start = at_;
  if (!skip()) return false;
  out = std::string(text_.substr(start, at_ - start));
  return true;
}

bool JsonReader::finish() { return peek() == Kind::end || error("text after the end of the value"); }

bool JsonReader::ids(std::vector<int>& out) {
  out.clear();
  return array([&] {
    std::int64_t v = 0;
    if (!integer(v)) return false;
    if (v < -1 || v > 65534)
      return error(fmt::format("expert id {} is out of range", v), "ids run from 0 to 65534; -1 is padding");
    if (out.size() >= 1024) return error("more than 1024 experts a token");
    out.push_back(static_cast<int>(v));
    return true;
  });
}

bool JsonReader::floats(std::vector<float>& out) {
  out.clear();
  return array([&] {
    double v = 0;
    if (!number(v)) return false;
    if (out.size() >= 65536) return error("more than 65536 numbers in a list");
    out.push_back(static_cast<float>(v));
    return true;
  });
}

bool JsonReader::index(int& out, int most) {
  std::int64_t v = 0;
  if (!integer(v)) return false;
  if (v < 0 || v > most) return error(fmt::format("{} is out of range", v), fmt::format("from 0 to {}", most));
  out = static_cast<int>(v);
  return true;
}

std::string JsonReader::path() const {
  std::string out;
  for (const Step& s : path_) {
    if (s.key != nullptr)
      out += (out.empty() ? "" : ".") + s.key->substr(0, 60);
    else if (s.index >= 0)
      out += fmt::format("[{}]", s.index);
  }
  return out;
}

SourceSpan JsonReader::here() const {
  SourceSpan span{file_, first_line_, 1};
  for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) {
    ++span.column;
    if (text_[i] == '\n') {
      ++span.line;
      span.column = 1;
    }
  }
  return span;
}

bool JsonReader::error(std::string message, std::string remedy) {
  if (!failed_) {
    diagnostic_ = {here(), path(), std::move(message), std::move(remedy), Severity::error};
    failed_ = true;
  }
  return false;
}

Failure JsonReader::failure() const {
  Failure f;
  f.diagnostics.error(diagnostic_.where, diagnostic_.key, diagnostic_.message, diagnostic_.remedy);
  return f;
}

}  // namespace sojourn
