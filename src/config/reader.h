// TOML for people who make mistakes: every value is read through a typed getter that records the key, checks unit and
// bounds, and reports problems with file:line:column, the dotted key and a remedy. All errors of a file come in one
// pass. The TOML library stays behind reader.cc.
//
//   Diagnostics problems;
//   auto file = ConfigFile::parse_file(path);            // unreadable, not TOML, duplicate keys -> Failure
//   TableReader root = file->root(problems);
//   const std::string name = root.text("name");          // required: a missing key is reported, "" comes back
//   const std::int64_t k = root.integer("top_k", Range{1, 64});
//   const Bytes cap = root.whole("capacity", Unit::bytes, 64 * kMiB, Range{1, 1e15});   // optional with default
//   for (TableReader& m : root.tables("memory")) { ...; m.finish(); }
//   root.finish();                                       // every key nobody asked for is an error, with did-you-mean
//   if (problems.has_errors()) return fail(in_file_order(problems));
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sojourn/diagnostics.h"
#include "sojourn/params.h"

namespace sojourn {

struct ConfigNode;  // reader.cc

/// Inclusive bounds, in the base unit of the value they belong to.
struct Range {
  double min = -1e300, max = 1e300;
};

/// A view of one TOML table. Copies share nothing but the file; the ConfigFile and the Diagnostics must outlive it.
/// Getters without a default are required keys: when absent or wrong they report it and return 0, "" or {}.
class TableReader {
 public:
  [[nodiscard]] bool has(const std::string& key) const;  ///< does not count as a use of the key
  [[nodiscard]] std::vector<std::string> keys() const;   ///< keys present, in file order

  std::string text(const std::string& key);
  std::string text(const std::string& key, const std::string& default_value);
  std::int64_t integer(const std::string& key, Range range);
  std::int64_t integer(const std::string& key, std::int64_t default_value, Range range);
  double number(const std::string& key, Range range);
  double number(const std::string& key, double default_value, Range range);
  bool flag(const std::string& key);
  bool flag(const std::string& key, bool default_value);
  std::string choice(const std::string& key, const std::vector<std::string>& words);
  std::string choice(const std::string& key, const std::vector<std::string>& words, const std::string& default_value);

  /// Base-unit value. Dimensional units are strings ("2 ns"); plain units (none, tokens, fraction, ...) are numbers.
  double quantity(const std::string& key, Unit unit, Range range);
  double quantity(const std::string& key, Unit unit, double default_value, Range range);
  /// The same, as an exact whole number of base units (bytes, ps, fJ, B/s).
  std::int64_t whole(const std::string& key, Unit unit, Range range);
  std::int64_t whole(const std::string& key, Unit unit, std::int64_t default_value, Range range);

  /// Lists; a lone value counts as a list of one. Absent: {} (report with `require` if it must be there).
  std::vector<std::int64_t> integers(const std::string& key, Range range);
  std::vector<double> numbers(const std::string& key, Range range);
  std::vector<std::string> texts(const std::string& key);
  std::vector<std::vector<std::int64_t>> integer_lists(const std::string& key, Range range);

  /// Reports a missing key; true when it is there.
  bool require(const std::string& key);

  /// [key]; nothing when absent (reported if `required`) or not a table (always reported).
  std::optional<TableReader> sub(const std::string& key, bool required = false);
  /// [[key]]; empty when absent (reported if `required`). A single [key] counts as one.
  std::vector<TableReader> tables(const std::string& key, bool required = false);

  /// One declared parameter, by its record: unit, default, bounds, choices. A Param whose default is an integer is read
  /// as an exact whole number of base units. Wrong or absent: the default.
  Value param(const Param& p);
  ParamSet params(const std::vector<Param>& records);

  /// Reports every key that no getter asked for. Call once, last.
  void finish();

  /// Span of the value of `key`; of the table when absent.
  [[nodiscard]] SourceSpan where(const std::string& key) const;
  [[nodiscard]] SourceSpan where() const;                          ///< of the table (1:1 for the root)
  [[nodiscard]] std::string dotted(const std::string& key) const;  ///< "memory[1].banks"
  [[nodiscard]] const std::string& path() const { return path_; }  ///< "memory[1]"; "" for the root
  /// A finding of the caller's about `key`.
  void error(const std::string& key, std::string message, std::string remedy = {});
  void warning(const std::string& key, std::string message, std::string remedy = {});
  [[nodiscard]] Diagnostics& problems() const { return *problems_; }

 private:
  friend class ConfigFile;
  TableReader(std::shared_ptr<const ConfigNode> root, const ConfigNode* table, std::string path, Diagnostics* problems)
      : root_(std::move(root)), table_(table), path_(std::move(path)), problems_(problems) {}
  const ConfigNode* get(const std::string& key, bool required, const std::string& form);
  [[nodiscard]] const ConfigNode* find(const std::string& key) const;
  std::optional<std::string> text_of(const std::string& key, bool required);
  std::optional<std::int64_t> integer_of(const std::string& key, Range range, bool required, Unit unit);
  std::optional<double> number_of(const std::string& key, Range range, bool required, Unit unit);
  std::optional<bool> flag_of(const std::string& key, bool required);
  std::optional<std::string> choice_of(const std::string& key, const std::vector<std::string>& words, bool required);
  std::optional<std::int64_t> whole_in(const ConfigNode& node, const std::string& key, Range range, Unit unit);
  std::optional<double> double_in(const ConfigNode& node, const std::string& key, Range range, Unit unit);
  void wrong_type(const ConfigNode& node, const std::string& key, const std::string& expected);

  std::shared_ptr<const ConfigNode> root_;
  const ConfigNode* table_;
  std::string path_;
  Diagnostics* problems_;
  std::vector<std::string> used_;  ///< keys asked for, present or not
};

/// A parsed TOML file. Cheap to copy.
class ConfigFile {
 public:
  static constexpr std::int64_t kMaxBytes = 4 << 20;
  /// Errors: cannot be read (exit 2), larger than 4 MiB, not UTF-8, nested too deeply, not TOML, duplicate keys.
  [[nodiscard]] static Result<ConfigFile> parse_file(const std::string& path);
  [[nodiscard]] static Result<ConfigFile> parse_text(std::string_view text, const std::string& name);
  [[nodiscard]] TableReader root(Diagnostics& problems) const;
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& text() const { return *text_; }  ///< as read

 private:
  std::shared_ptr<const ConfigNode> root_;
  std::shared_ptr<const std::string> text_;
  std::string name_;
};

/// The same findings by file, line and column (findings without a line last).
[[nodiscard]] Diagnostics in_file_order(const Diagnostics& problems);

}  // namespace sojourn
