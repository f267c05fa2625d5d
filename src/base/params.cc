// Parameter records: typed getters and the resolution of text given on the command line.
#include "sojourn/params.h"

#include <cassert>

#include "base/quantity.h"

namespace sojourn {

const char* unit_name(Unit unit) {
  switch (unit) {
    case Unit::none:
      return "";
    case Unit::bytes:
      return "B";
    case Unit::bytes_per_second:
      return "B/s";
    case Unit::picoseconds:
      return "ps";
    case Unit::hertz:
      return "Hz";
    case Unit::femtojoules:
      return "fJ";
    case Unit::fj_per_byte:
      return "fJ/B";
    case Unit::millimetres:
      return "mm";
    case Unit::metres_per_second:
      return "m/s";
    case Unit::watts:
      return "W";
    case Unit::tokens:
      return "tokens";
    case Unit::cores:
      return "cores";
    case Unit::windows:
      return "windows";
    case Unit::fraction:
      return "fraction";
  }
  return "";
}

namespace {

/// The value of a declared parameter. Asking for another is our own bug, never the user's.
const Value& declared(const std::map<std::string, Value>& values, const std::string& name) {
  const auto it = values.find(name);
  assert(it != values.end() && "parameter was not declared");
  static const Value kNothing = std::int64_t{0};
  return it == values.end() ? kNothing : it->second;
}

}  // namespace

double ParamSet::number(const std::string& name) const {
  const Value& v = declared(values_, name);
  if (const auto* whole = std::get_if<std::int64_t>(&v)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&v);
  assert(number != nullptr && "parameter is not a number");
  return number == nullptr ? 0 : *number;
}

std::int64_t ParamSet::integer(const std::string& name) const {
  const auto* whole = std::get_if<std::int64_t>(&declared(values_, name));
  assert(whole != nullptr && "parameter is not an integer");
  return whole == nullptr ? 0 : *whole;
}

bool ParamSet::flag(const std::string& name) const {
  const auto* flag = std::get_if<bool>(&declared(values_, name));
  assert(flag != nullptr && "parameter is not a flag");
  return flag != nullptr && *flag;
}

const std::string& ParamSet::word(const std::string& name) const {
  static const std::string kEmpty;
  const auto* word = std::get_if<std::string>(&declared(values_, name));
  assert(word != nullptr && "parameter is not a word");
  return word == nullptr ? kEmpty : *word;
}

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

/// `text` as a value of p; reports and returns false when it is not.
bool parse_value(const Param& p, const std::string& text, const SourceSpan& where, const std::string& key, Value& out,
                 Diagnostics& problems) {
  const auto reject = [&](const QuantityError& e) {
    problems.error(where, key, e.message, e.remedy);
    return false;
  };
  if (std::holds_alternative<bool>(p.default_value)) {
    if (text != "true" && text != "false") return reject({text + ": not a flag", "write true or false"});
    out = text == "true";
  } else if (std::holds_alternative<std::int64_t>(p.default_value)) {
    const auto value = parse_whole(text, p.unit);
    if (!value) return reject(value.error());
    if (const auto e = check_range(static_cast<double>(*value), p.unit, p.min, p.max)) return reject(*e);
    out = *value;
  } else if (std::holds_alternative<double>(p.default_value)) {
    const auto value = parse_quantity(text, p.unit);
    if (!value) return reject(value.error());
    if (const auto e = check_range(*value, p.unit, p.min, p.max)) return reject(*e);
    out = *value;
  } else {
    bool known = p.choices.empty();
    for (const std::string& c : p.choices) known = known || c == text;
    if (!known) {
      const std::string near = closest(text, p.choices);
      return reject({"unknown choice '" + text + "'",
                     (near.empty() ? "" : "did you mean " + near + "? ") + ("choices: " + joined(p.choices))});
    }
    out = text;
  }
  return true;
}

}  // namespace

Result<ParamSet> resolve(const std::vector<Param>& params,
                         const std::vector<std::pair<std::string, std::string>>& given, const SourceSpan& where,
                         const std::string& key_prefix) {
  const std::string prefix = key_prefix.empty() ? "" : key_prefix + ".";
  Diagnostics problems;
  ParamSet out;
  std::vector<std::string> names;
  for (const Param& p : params) {
    names.push_back(p.name);
    if (!p.required) out.set(p.name, p.default_value);
  }
  std::map<std::string, bool> seen;
  for (const auto& [name, text] : given) {
    const Param* param = nullptr;
    for (const Param& p : params)
      if (p.name == name) param = &p;
    if (param == nullptr) {
      const std::string near = closest(name, names);
      problems.error(where, prefix + name, "unknown parameter",
                     names.empty()  ? "there are none here"
                     : near.empty() ? "known: " + joined(names)
                                    : "did you mean " + near + "?");
      continue;
    }
    seen[name] = true;
    Value value;
    if (parse_value(*param, text, where, prefix + name, value, problems)) out.set(name, std::move(value));
  }
  for (const Param& p : params)
    if (p.required && !seen[p.name])
      problems.error(where, prefix + p.name, "missing", "expected " + expected_form(p.unit) + " (" + p.text + ")");
  if (problems.has_errors()) return fail(std::move(problems));
  return out;
}

}  // namespace sojourn
