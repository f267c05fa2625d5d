// Aligned plain-text tables with a header and a unit row, for terminals and golden files.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sojourn {

/// Whether to write ANSI colours: only the caller knows if the text goes to a terminal.
struct TextStyle {
  bool colour = false;
  [[nodiscard]] std::string bold(std::string_view text) const;
  [[nodiscard]] std::string good(std::string_view text) const;
  [[nodiscard]] std::string dim(std::string_view text) const;
};

/// Columns a terminal needs for `text`: code points, without combining marks; wide CJK counts two.
[[nodiscard]] int display_width(std::string_view text);
/// Control characters and invalid UTF-8 replaced by '?', so that a name from a file cannot steer the terminal.
[[nodiscard]] std::string printable(std::string_view text);

class TextTable {
 public:
  enum class Align { left, right };
  void column(std::string header, std::string unit = {}, Align align = Align::right);
  /// Missing cells are empty. `highlight`: the row stands out when there is colour.
  void row(std::vector<std::string> cells, bool highlight = false);
  void rule();  ///< a line between groups of rows
  [[nodiscard]] std::string text(const TextStyle& style = {}, int indent = 2) const;

 private:
  struct Column {
    std::string header, unit;
    Align align;
  };
  struct Row {
    std::vector<std::string> cells;
    bool highlight = false, rule = false;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

/// `value` with `digits` significant digits, no exponent for everyday sizes: 0.00123, 12.3, 12345.
[[nodiscard]] std::string significant(double value, int digits = 4);
[[nodiscard]] std::string percent(double share, int decimals = 1);         ///< 0.436 -> "43.6"
[[nodiscard]] std::string signed_percent(double share, int decimals = 1);  ///< 0.436 -> "+43.6"

}  // namespace sojourn
