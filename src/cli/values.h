// Typed values from option text, with messages that say what to give instead.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn::cli {

/// Collects every mistake of a command line before giving up.
class Values {
 public:
  /// `text` empty: `fallback`.
  std::int64_t whole(const std::string& key, const std::string& text, std::int64_t fallback, std::int64_t min,
                     std::int64_t max);
  double number(const std::string& key, const std::string& text, double fallback, double min, double max);
  /// The index of the word among `words`.
  size_t choice(const std::string& key, const std::string& text, const std::vector<std::string>& words);
  /// Comma-separated, blanks trimmed; empty parts and repeats are mistakes.
  std::vector<std::string> list(const std::string& key, const std::string& text);
  /// "name=value".
  std::pair<std::string, std::string> assignment(const std::string& key, const std::string& text);
  void error(const std::string& key, const std::string& message, const std::string& remedy);

  [[nodiscard]] bool ok() const { return !problems_.has_errors(); }
  [[nodiscard]] Failure failure() const { return Failure{problems_, 2}; }

 private:
  Diagnostics problems_;
};

/// --trace texts: FILE or MODEL=FILE; (model or "", file). The file must be there.
void read_traces(const std::vector<std::string>& texts, Values& values,
                 std::vector<std::pair<std::string, std::string>>& traces);

}  // namespace sojourn::cli
