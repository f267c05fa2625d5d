// Quoting and number formatting for JSON output.
#include "trace/json_text.h"

#include <fmt/format.h>

namespace sojourn {

std::string json_number(double v) {
  if (!std::isfinite(v)) return "null";
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".en") == std::string::npos) return s + ".0";
  return s;
}

std::string json_quote(std::string_view s) {
  std::string out = "\"";
  for (std::size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
      ++i;
    } else if (c < 0x20) {
      out += fmt::format("\\u{:04x}", c);
      ++i;
    } else if (c < 0x80) {
      out += static_cast<char>(c);
      ++i;
    } else {
      const std::size_t n = c >= 0xF0 && c < 0xF5 ? 4 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xC2 && c < 0xE0 ? 2 : 0;
      bool good = n != 0 && i + n <= s.size();
      for (std::size_t k = 1; good && k < n; ++k) good = (static_cast<unsigned char>(s[i + k]) & 0xC0) == 0x80;
      const auto second = good && n > 2 ? static_cast<unsigned char>(s[i + 1]) : 0x90;
      if (n == 3 && ((c == 0xE0 && second < 0xA0) || (c == 0xED && second >= 0xA0))) good = false;
      if (n == 4 && ((c == 0xF0 && second < 0x90) || (c == 0xF4 && second >= 0x90))) good = false;
      if (good)
        out += s.substr(i, n);
      else
        out += "\xEF\xBF\xBD";
      i += good ? n : 1;
    }
  }
  return out + '"';
}

}  // namespace sojourn
