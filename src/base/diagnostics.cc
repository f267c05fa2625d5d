// How findings are written, and the "did you mean" search.
#include "sojourn/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace sojourn {

std::string Diagnostic::text() const {
  std::string out = where.file;
  if (where.line > 0) out += fmt::format("{}{}", out.empty() ? "line " : ":", where.line);
  if (where.line > 0 && where.column > 0) out += fmt::format(":{}", where.column);
  if (!out.empty()) out += ": ";
  if (severity == Severity::warning) out += "warning: ";
  if (!key.empty()) out += key + ": ";
  out += message;
  if (!remedy.empty()) out += "; " + remedy;
  return out;
}

std::string Diagnostics::text() const {
  std::string out;
  for (const Diagnostic& d : items_) out += d.text() + "\n";
  return out;
}

namespace {

std::string lower(const std::string& word) {
  std::string out = word;
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Edits (insert, delete, replace, swap of neighbours) that turn a into b.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  const std::size_t n = b.size();
  std::vector<std::size_t> before(n + 1), last(n + 1), row(n + 1);
  for (std::size_t j = 0; j <= n; ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= n; ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[n];
}

}  // namespace

std::string closest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 80;
  if (word.empty() || word.size() > kLongest) return {};
  // A third of the length, rounded up; a single letter must match but for its case.
  const std::size_t limit = word.size() < 2 ? 0 : (word.size() + 2) / 3;
  const std::string wanted = lower(word);
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 2 * kLongest) continue;
    const std::size_t distance = edit_distance(wanted, lower(candidate));
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace sojourn
