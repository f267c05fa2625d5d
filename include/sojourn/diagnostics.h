// User errors are values. A Diagnostic says where (file:line:column), which key, what is wrong and how to mend it; a
// Result carries either a value or every diagnostic found in one pass. Asserts are for our own bugs only.
#pragma once
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace sojourn {

struct SourceSpan {
  std::string file;  ///< as the user wrote it; "<command line>" for options; empty when there is no source
  int line = 0;      ///< 1-based; 0 = unknown
  int column = 0;    ///< 1-based; 0 = unknown
};

enum class Severity { error, warning };

struct Diagnostic {
  SourceSpan where;
  std::string key;      ///< dotted key or option, e.g. "memory.hbm.capacity" or "--windows"; may be empty
  std::string message;  ///< what is wrong
  std::string remedy;   ///< what to do about it; may be empty
  Severity severity = Severity::error;
  /// "packages/a.toml:12:8: memory.hbm.capacity: 8 GBs: unknown unit; did you mean GB?"
  [[nodiscard]] std::string text() const;
};

/// An ordered list of findings; several errors of one file are reported in one pass.
class Diagnostics {
 public:
  void error(SourceSpan where, std::string key, std::string message, std::string remedy = {}) {
    items_.push_back({std::move(where), std::move(key), std::move(message), std::move(remedy), Severity::error});
  }
  void warning(SourceSpan where, std::string key, std::string message, std::string remedy = {}) {
    items_.push_back({std::move(where), std::move(key), std::move(message), std::move(remedy), Severity::warning});
  }
  void append(const Diagnostics& other) { items_.insert(items_.end(), other.items_.begin(), other.items_.end()); }
  [[nodiscard]] bool has_errors() const {
    for (const Diagnostic& d : items_)
      if (d.severity == Severity::error) return true;
    return false;
  }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] const std::vector<Diagnostic>& items() const { return items_; }
  /// One line a diagnostic.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Diagnostic> items_;
};

/// Why a Result failed decides the exit code: the user's input (2) or the machine (3).
struct Failure {
  Diagnostics diagnostics;
  int exit_code = 2;
};

template <class T>
using Result = tl::expected<T, Failure>;

[[nodiscard]] inline tl::unexpected<Failure> fail(Diagnostics diagnostics, int exit_code = 2) {
  return tl::unexpected<Failure>(Failure{std::move(diagnostics), exit_code});
}
[[nodiscard]] inline tl::unexpected<Failure> fail(SourceSpan where, std::string key, std::string message,
                                                  std::string remedy = {}, int exit_code = 2) {
  Diagnostics d;
  d.error(std::move(where), std::move(key), std::move(message), std::move(remedy));
  return fail(std::move(d), exit_code);
}

/// The closest of `candidates` to `word` by edit distance (at most a third of its length), or empty: "did you mean".
[[nodiscard]] std::string closest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace sojourn
