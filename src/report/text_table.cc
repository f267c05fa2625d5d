// Layout of plain-text tables.
#include "report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace sojourn {
namespace {

/// Decodes one code point; returns its length, 1 with code U+FFFD when invalid.
size_t decode(std::string_view s, std::uint32_t& code) {
  const auto at = [&](size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(s[i])); };
  const std::uint32_t first = at(0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xC2 && first < 0xE0 ? 2
                        : first >= 0xE0 && first < 0xF0 ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
  code = 0xFFFD;
  if (length == 0 || s.size() < length) return 1;
  std::uint32_t value = length == 1 ? first : first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0u) != 0x80u) return 1;
    value = value << 6 | (at(i) & 0x3Fu);
  }
  code = value;
  return length;
}

int code_width(std::uint32_t code) {
  if (code >= 0x300 && code < 0x370) return 0;
  if (code == 0x200B || code == 0x200D || (code >= 0xFE00 && code < 0xFE10)) return 0;
  const bool wide = (code >= 0x1100 && code < 0x1160) || (code >= 0x2E80 && code < 0xA4D0) ||
                    (code >= 0xAC00 && code < 0xD7A4) || (code >= 0xF900 && code < 0xFB00) ||
                    (code >= 0xFF00 && code < 0xFF61) || (code >= 0x1F300 && code < 0x1FAFF);
  return wide ? 2 : 1;
}

std::string paint(bool colour, std::string_view code, std::string_view text) {
  if (!colour) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

std::string padded(const std::string& text, int width, TextTable::Align align) {
  const std::string space(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
  return align == TextTable::Align::left ? text + space : space + text;
}

void strip_right(std::string& line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
}

}  // namespace

std::string TextStyle::bold(std::string_view text) const { return paint(colour, "1", text); }
std::string TextStyle::good(std::string_view text) const { return paint(colour, "1;32", text); }
std::string TextStyle::dim(std::string_view text) const { return paint(colour, "2", text); }

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    std::uint32_t code = 0;
    text.remove_prefix(decode(text, code));
    width += code_width(code);
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::uint32_t code = 0;
    const size_t length = decode(text, code);
    const bool invalid = length == 1 && code == 0xFFFD;
    // C0, C1, and marks that reorder text.
    const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
                         (code >= 0x2066 && code <= 0x2069);
    if (invalid || control)
      out += '?';
    else
      out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

void TextTable::column(std::string header, std::string unit, Align align) {
  columns_.push_back({std::move(header), std::move(unit), align});
}

void TextTable::row(std::vector<std::string> cells, bool highlight) {
  for (std::string& cell : cells) cell = printable(cell);
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), highlight, false});
}

void TextTable::rule() {
  if (!rows_.empty() && !rows_.back().rule) rows_.push_back({{}, false, true});
}

std::string TextTable::text(const TextStyle& style, int indent) const {
  std::vector<int> widths;
  int total = 0;
  bool units = false;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int width = std::max(display_width(columns_[c].header), display_width(columns_[c].unit));
    for (const Row& r : rows_)
      if (!r.rule) width = std::max(width, display_width(r.cells[c]));
    widths.push_back(width);
    total += width + (c == 0 ? 0 : 2);
    units = units || !columns_[c].unit.empty();
  }
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string out;
  const auto line = [&](const auto& cell_of, const auto& paint_line) {
    std::string text;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (c != 0) text += "  ";
      text += padded(cell_of(c), widths[c], columns_[c].align);
    }
    strip_right(text);
    out += margin + paint_line(text) + "\n";
  };
  line([&](size_t c) { return columns_[c].header; }, [&](const std::string& t) { return style.bold(t); });
  if (units) line([&](size_t c) { return columns_[c].unit; }, [&](const std::string& t) { return style.dim(t); });
  const std::string dashes(static_cast<size_t>(total), '-');
  out += margin + style.dim(dashes) + "\n";
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& r = rows_[i];
    if (r.rule) {
      if (i + 1 < rows_.size()) out += margin + style.dim(dashes) + "\n";
      continue;
    }
    line([&](size_t c) { return r.cells[c]; }, [&](const std::string& t) { return r.highlight ? style.good(t) : t; });
  }
  return out;
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (magnitude < -6 || magnitude > 9) return fmt::format("{:.{}e}", value, digits - 1);
  return fmt::format("{:.{}f}", value, std::max(0, digits - 1 - magnitude));
}

std::string percent(double share, int decimals) {
  if (!std::isfinite(share)) return "-";
  return fmt::format("{:.{}f}", share * 100, decimals);
}

std::string signed_percent(double share, int decimals) {
  if (!std::isfinite(share)) return "-";
  return fmt::format("{:+.{}f}", share * 100, decimals);
}

}  // namespace sojourn
