// CSV (RFC 4180): quoted fields may hold commas, doubled quotes and newlines. Rows come one at a time from mapped text.
#pragma once
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn {

class CsvReader {
 public:
  CsvReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;
  }
  /// The next non-empty row; false at the end or on an unterminated quote (see broken()).
  bool row(std::vector<std::string>& out) {
    while (at_ < text_.size()) {
      out.clear();
      row_line_ = line_;
      read(out);
      if (broken_) return false;
      if (out.size() > 1 || !out[0].empty()) return true;
    }
    return false;
  }
  [[nodiscard]] bool broken() const { return broken_; }
  /// Where the current row starts.
  [[nodiscard]] SourceSpan here() const { return {file_, row_line_, 1}; }

 private:
  void read(std::vector<std::string>& out) {
    std::string field;
    while (true) {
      field.clear();
      if (at_ < text_.size() && text_[at_] == '"') {
        ++at_;
        while (true) {
          if (at_ >= text_.size()) {
            broken_ = true;
            return;
          }
          const char c = text_[at_++];
          if (c == '\n') ++line_;
          if (c == '"') {
            if (at_ < text_.size() && text_[at_] == '"')
              ++at_;
            else
              break;
          }
          field += c;
        }
      }
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') field += text_[at_++];
      const bool end = at_ >= text_.size() || text_[at_] == '\n';
      if (end && !field.empty() && field.back() == '\r') field.pop_back();
      out.push_back(field);
      if (at_ < text_.size()) {
        if (text_[at_] == '\n') ++line_;
        ++at_;
      }
      if (end) return;
    }
  }
  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  int line_ = 1, row_line_ = 1;
  bool broken_ = false;
};

/// The whole field as a number (spaces around it allowed).
template <class T>
[[nodiscard]] bool csv_number(std::string_view s, T& out) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  const auto r = std::from_chars(s.data(), s.data() + s.size(), out);
  return !s.empty() && r.ec == std::errc() && r.ptr == s.data() + s.size();
}

}  // namespace sojourn
