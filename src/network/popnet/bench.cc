// Reading and writing popnet's files, line by line.
//
//   router of an address (x, y) = x * side + y
//
// Assumption, source: bench.h.
#include "network/popnet/bench.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace sojourn::popnet {
namespace {

constexpr double kLatest = 1e15;
constexpr double kMostFlits = 1e9;
constexpr std::size_t kMostFindings = 20;
constexpr std::int64_t kAnswered = 0xF0000, kCentral = 0xE0000;

struct Cell {
  std::string_view text;
  int column = 0;
};

void split(std::string_view line, std::vector<Cell>& cells) {
  cells.clear();
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < line.size() && line[end] != ' ' && line[end] != '\t' && line[end] != '\r') ++end;
    cells.push_back({line.substr(i, end - i), static_cast<int>(i) + 1});
    i = end;
  }
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) out += c >= ' ' && c < 127 ? c : '?';
  return out;
}

class Rows {
 public:
  Rows(const std::string& path, const BenchFormat& format) : path_(path), format_(format) {
    names_.push_back(format.protocol ? "source_time" : "time");
    if (format.protocol) names_.push_back("destination_time");
    for (const char* end : {"source", "destination"})
      for (int d = 0; d < format.dimensions; ++d)
        names_.push_back(format.dimensions == 1 ? std::string(end) : fmt::format("{}_{}", end, d == 0 ? "x" : "y"));
    names_.push_back("flits");
    if (format.protocol) names_.push_back("protocol");
  }

  void line(std::string_view text, int number, Bench& out) {
    split(text, cells_);
    if (cells_.empty()) return;
    line_ = number;
    at_ = 0;
    if (cells_.size() != names_.size()) {
      const bool few = cells_.size() < names_.size();
      const int column = few ? static_cast<int>(text.size()) + 1 : cells_[names_.size()].column;
      error(column, few ? names_[cells_.size()] : "",
            fmt::format("{} fields, expected {}", cells_.size(), names_.size()),
            fmt::format("write: {}", fmt::join(names_, " ")));
      return;
    }
    BenchRow r;
    r.time = value(0, kLatest, false);
    r.destination_time = format_.protocol ? value(0, kLatest, false) : r.time;
    for (std::int64_t* end : {r.source, r.destination})
      for (int d = 0; d < format_.dimensions; ++d) end[d] = static_cast<std::int64_t>(value(0, format_.side - 1, true));
    r.flits = static_cast<std::int64_t>(value(1, kMostFlits, true));
    if (format_.protocol) r.protocol = static_cast<std::int64_t>(value(0, 2147483647, true));
    if (!out.rows.empty() && r.time < out.rows.back().time) out.sorted = false;
    out.rows.push_back(r);
  }

  Diagnostics problems;

 private:
  void error(int column, const std::string& key, const std::string& message, const std::string& remedy) {
    if (problems.items().size() < kMostFindings) problems.error({path_, line_, column}, key, message, remedy);
  }
  double value(double low, double high, bool whole) {
    const Cell& cell = cells_[at_];
    const std::string& key = names_[at_++];
    double v = 0;
    const auto r = std::from_chars(cell.text.data(), cell.text.data() + cell.text.size(), v);
    const bool all = r.ptr == cell.text.data() + cell.text.size();
    if (r.ec == std::errc() && all && v >= low && v <= high && (!whole || v == std::floor(v))) return v;
    const bool number = all && r.ec != std::errc::invalid_argument && !std::isnan(v);
    error(cell.column, key, fmt::format("'{}': {}", printable(cell.text), number ? "out of range" : "not a number"),
          fmt::format("give {} from {:.0f} to {:.0f}", whole ? "a whole number" : "a number", low, high));
    return low;
  }

  std::string path_;
  BenchFormat format_;
  std::vector<std::string> names_;
  std::vector<Cell> cells_;
  std::size_t at_ = 0;
  int line_ = 0;
};

int router(const std::int64_t (&address)[2], const BenchFormat& format) {
  return static_cast<int>(format.dimensions == 1 ? address[0] : address[0] * format.side + address[1]);
}

/// Whole numbers without a fraction, others as they are.
void append(std::string& out, double v) {
  if (v == std::floor(v))
    fmt::format_to(std::back_inserter(out), "{:.0f}", v);
  else
    fmt::format_to(std::back_inserter(out), "{}", v);
}

}  // namespace

Result<Bench> read_bench(std::string_view text, const std::string& path, const BenchFormat& format) {
  Bench out;
  Rows rows(path, format);
  int number = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = std::min(text.find('\n', i), text.size());
    rows.line(text.substr(i, end - i), ++number, out);
    i = end + 1;
  }
  if (rows.problems.has_errors()) return fail(std::move(rows.problems));
  if (out.rows.empty()) return fail({path, 0, 0}, "", "holds no packets", "write one a line");
  for (const BenchRow& r : out.rows) {
    Packet p{r.time, router(r.source, format), router(r.destination, format), r.flits, -1};
    if (format.protocol && (r.protocol & kCentral) != 0) p.destination = 0;
    if (format.protocol && (r.protocol & kAnswered) != 0) p.reply_from = r.destination_time;
    out.packets.push_back(p);
  }
  return out;
}

std::string delay_text(const Bench& bench, const BenchFormat& format, const std::vector<Arrival>& arrivals) {
  std::string out;
  std::vector<double> first(format.protocol ? bench.rows.size() : 0);  // arrivals of packets that wait for a reply
  const auto addresses = [&](const BenchRow& r) {
    fmt::format_to(std::back_inserter(out), "{} ", static_cast<std::int64_t>(r.time));
    for (const std::int64_t* end : {r.source, r.destination})
      for (int d = 0; d < format.dimensions; ++d) fmt::format_to(std::back_inserter(out), "{} ", end[d]);
  };
  for (const Arrival& a : arrivals) {
    const BenchRow& r = bench.rows[a.packet];
    const double delay = a.time - a.ready;
    if (!format.protocol) {
      addresses(r);
      append(out, delay);
      out += '\n';
      continue;
    }
    const bool answered = bench.packets[a.packet].reply_from >= 0;
    if (answered && !a.reply) {
      first[a.packet] = delay;
      continue;
    }
    addresses(r);
    const auto whole = [](double v) { return static_cast<std::int64_t>(v); };
    if (answered)
      fmt::format_to(std::back_inserter(out), "{} 4 {} {} 0 {} \n", r.protocol, r.flits - 1, whole(first[a.packet]),
                     whole(delay));
    else
      fmt::format_to(std::back_inserter(out), "{} 2 {} {} \n", r.protocol, r.flits - 1, whole(delay));
  }
  return out;
}

Result<std::string> read_text(const std::string& path, const std::string& option) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return fail({}, option, path + ": no such file", "give a file");
  if (std::filesystem::is_directory(path, code)) return fail({}, option, path + ": is a folder", "give a file");
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.good() && !in.eof()) return fail({}, option, path + ": cannot be read", "", 3);
  return text;
}

}  // namespace sojourn::popnet
