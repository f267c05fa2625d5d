// A comma-separated file with a header, whose wrong cells are reported with line and column.
#pragma once
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn {

class CsvTable {
 public:
  CsvTable(std::string path, Diagnostics& problems) : path_(std::move(path)), problems_(&problems) {
    std::ifstream in(path_);
    int line_number = 0;
    for (std::string line; std::getline(in, line);) {
      ++line_number;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line.empty()) continue;
      Row row{line_number, {""}, {1}};
      for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == ',') {
          row.cells.emplace_back();
          row.starts.push_back(static_cast<int>(i) + 2);
        } else {
          row.cells.back() += line[i];
        }
      }
      if (columns_.empty()) {
        for (std::size_t i = 0; i < row.cells.size(); ++i) columns_[row.cells[i]] = i;
      } else {
        if (row.cells.size() != columns_.size())
          problems_->error(
              {path_, line_number, 0}, "",
              std::to_string(row.cells.size()) + " cells under " + std::to_string(columns_.size()) + " columns",
              "give every column a cell, empty if it has no value");
        rows_.push_back(std::move(row));
      }
    }
  }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] bool has(const std::string& column) const { return columns_.count(column) != 0; }
  /// Reports the columns that the file lacks.
  void require(const std::vector<std::string>& names) const {
    for (const std::string& n : names)
      if (columns_.count(n) == 0) problems_->error({path_, 1, 1}, n, "the column is missing", "add it to the header");
  }
  [[nodiscard]] const std::string& text(std::size_t row, const std::string& column) const {
    static const std::string kEmpty;
    const auto i = columns_.find(column);
    return i == columns_.end() || i->second >= rows_[row].cells.size() ? kEmpty : rows_[row].cells[i->second];
  }
  [[nodiscard]] SourceSpan span(std::size_t row, const std::string& column) const {
    const auto i = columns_.find(column);
    const bool there = i != columns_.end() && i->second < rows_[row].starts.size();
    return {path_, rows_[row].line, there ? rows_[row].starts[i->second] : 0};
  }
  void wrong(std::size_t row, const std::string& column, const std::string& what, const std::string& remedy) const {
    problems_->error(span(row, column), column, "'" + text(row, column) + "': " + what, remedy);
  }
  /// The number a cell begins with ("1 (burst-bound 2)" is 1), or nothing.
  [[nodiscard]] std::optional<double> maybe(std::size_t row, const std::string& column) const {
    const std::string& t = text(row, column);
    double v = 0;
    const auto r = std::from_chars(t.data(), t.data() + t.size(), v);
    if (r.ec != std::errc() || !std::isfinite(v) || (r.ptr != t.data() + t.size() && *r.ptr != ' '))
      return std::nullopt;
    return v;
  }
  double number(std::size_t row, const std::string& column, double low, double high) const {
    const auto v = maybe(row, column);
    if (v && *v >= low && *v <= high) return *v;
    std::ostringstream range;
    range << low << " to " << high;
    wrong(row, column, "not a number in range", "give a number from " + range.str());
    return low;
  }
  int integer(std::size_t row, const std::string& column, int low, int high) const {
    const auto v = maybe(row, column);
    if (v && *v >= low && *v <= high && std::floor(*v) == *v) return static_cast<int>(*v);
    wrong(row, column, "not a whole number in range",
          "give a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return low;
  }

 private:
  struct Row {
    int line = 0;
    std::vector<std::string> cells;
    std::vector<int> starts;  ///< column of each cell's first character, from 1
  };
  std::string path_;
  Diagnostics* problems_;
  std::map<std::string, std::size_t> columns_;
  std::vector<Row> rows_;
};

}  // namespace sojourn
