// One parameter record drives validation, `sojourn describe`, help, Python signatures and the docs page.
#pragma once
#include <cassert>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn {

/// Dimension of a parameter. Text in configs carries the unit ("64 MiB", "2.0 TB/s", "1.25 pJ/B"); the parsed value is
/// in the base unit named here.
enum class Unit {
  none,               ///< plain number
  bytes,              ///< B
  bytes_per_second,   ///< B/s
  picoseconds,        ///< ps
  hertz,              ///< Hz
  femtojoules,        ///< fJ
  fj_per_byte,        ///< fJ/B
  millimetres,        ///< mm
  metres_per_second,  ///< m/s
  watts,              ///< W
  tokens,             ///< tokens (plain number)
  cores,              ///< cores (plain number)
  windows,            ///< serving windows (plain number)
  fraction            ///< 0..1
};
[[nodiscard]] const char* unit_name(Unit unit);

using Value = std::variant<bool, std::int64_t, double, std::string>;

struct Param {
  std::string name;
  Unit unit = Unit::none;
  Value default_value;                 ///< its alternative is the parameter's type
  double min = -1e300, max = 1e300;    ///< inclusive bounds for numbers
  std::vector<std::string> choices{};  ///< allowed words for strings; empty = any
  std::string text;                    ///< one line, for people
  std::string source{};                ///< paper section, "ours", "[R]" ...
  bool required = false;               ///< no default: `default_value` only tells the type
};

/// Values by name; every declared parameter is present (defaults filled in by `resolve`).
class ParamSet {
 public:
  void set(const std::string& name, Value v) { values_[name] = std::move(v); }
  [[nodiscard]] bool has(const std::string& name) const { return values_.count(name) != 0; }
  [[nodiscard]] double number(const std::string& name) const;
  [[nodiscard]] std::int64_t integer(const std::string& name) const;
  [[nodiscard]] bool flag(const std::string& name) const;
  [[nodiscard]] const std::string& word(const std::string& name) const;
  [[nodiscard]] const std::map<std::string, Value>& values() const { return values_; }

 private:
  std::map<std::string, Value> values_;
};

/// Checks `given` (name -> text as typed, e.g. from `--set hcrmap.alpha=0.9`) against `params`, fills in defaults.
/// Errors: unknown name (with did-you-mean), wrong type or unit, out of bounds, unknown choice.
[[nodiscard]] Result<ParamSet> resolve(const std::vector<Param>& params,
                                       const std::vector<std::pair<std::string, std::string>>& given,
                                       const SourceSpan& where, const std::string& key_prefix);

/// What every plug-in says of itself.
struct PluginInfo {
  std::string name;
  std::string text;  ///< one line
  std::vector<Param> params{};
};

/// Plug-ins of one kind by name. Filled once at start by the generated `register_all_<kind>()`; read-only afterwards.
template <class Factory>
class Registry {
 public:
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}
  void add(PluginInfo info, Factory factory) {
    std::string name = info.name;
    const bool fresh = entries_.emplace(std::move(name), Entry{std::move(info), std::move(factory)}).second;
    assert(fresh && "two plug-ins of one name");
    (void)fresh;
  }
  struct Entry {
    PluginInfo info;
    Factory factory;
  };
  [[nodiscard]] const Entry* find(const std::string& name) const {
    auto it = entries_.find(name);
    return it == entries_.end() ? nullptr : &it->second;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, entry] : entries_) out.push_back(name);
    return out;
  }
  [[nodiscard]] const std::map<std::string, Entry>& entries() const { return entries_; }
  [[nodiscard]] const std::string& kind() const { return kind_; }
  /// The entry, or a diagnostic "unknown policy 'hcrmp'; did you mean hcrmap? (known: ...)".
  [[nodiscard]] Result<const Entry*> require(const std::string& name, const SourceSpan& where,
                                             const std::string& key) const {
    if (const Entry* e = find(name)) return e;
    std::string known;
    for (const auto& [n, entry] : entries_) known += (known.empty() ? "" : ", ") + n;
    const std::string near = closest(name, names());
    return fail(where, key, "unknown " + kind_ + " '" + name + "'",
                near.empty() ? "known: " + known : "did you mean " + near + "? (known: " + known + ")");
  }

 private:
  std::string kind_;
  std::map<std::string, Entry> entries_;
};

}  // namespace sojourn
