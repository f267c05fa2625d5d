// The typed getters: one place that turns a wrong value into a finding with position, key and remedy.
#include "config/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/quantity.h"
#include "config/node.h"

namespace sojourn {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

}  // namespace

TableReader ConfigFile::root(Diagnostics& problems) const { return {root_, root_.get(), "", &problems}; }

const ConfigNode* TableReader::find(const std::string& key) const {
  for (const ConfigNode::Entry& e : table_->entries)
    if (e.key == key) return &e.value;
  return nullptr;
}

bool TableReader::has(const std::string& key) const { return find(key) != nullptr; }

std::vector<std::string> TableReader::keys() const {
  std::vector<std::string> out;
  for (const ConfigNode::Entry& e : table_->entries) out.push_back(e.key);
  return out;
}

std::string TableReader::dotted(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

SourceSpan TableReader::where() const { return {root_->text, table_->line, table_->column}; }

SourceSpan TableReader::where(const std::string& key) const {
  const ConfigNode* node = find(key);
  return node == nullptr ? where() : SourceSpan{root_->text, node->line, node->column};
}

void TableReader::error(const std::string& key, std::string message, std::string remedy) {
  problems_->error(where(key), dotted(key), std::move(message), std::move(remedy));
}

void TableReader::warning(const std::string& key, std::string message, std::string remedy) {
  problems_->warning(where(key), dotted(key), std::move(message), std::move(remedy));
}

const ConfigNode* TableReader::get(const std::string& key, bool required, const std::string& form) {
  if (std::find(used_.begin(), used_.end(), key) == used_.end()) used_.push_back(key);
  const ConfigNode* node = find(key);
  if (node == nullptr && required) error(key, "missing", "add it: " + form);
  return node;
}

void TableReader::wrong_type(const ConfigNode& node, const std::string& key, const std::string& expected) {
  problems_->error({root_->text, node.line, node.column}, dotted(key),
                   fmt::format("{} where {} belongs", kind_name(node.kind), expected), "write " + expected);
}

std::optional<std::int64_t> TableReader::whole_in(const ConfigNode& node, const std::string& key, Range range,
                                                  Unit unit) {
  const SourceSpan span{root_->text, node.line, node.column};
  std::int64_t value = 0;
  if (needs_suffix(unit) && node.kind == ConfigNode::Kind::text) {
    const auto parsed = parse_whole(node.text, unit);
    if (!parsed) {
      problems_->error(span, dotted(key), parsed.error().message, parsed.error().remedy);
      return std::nullopt;
    }
    value = *parsed;
  } else if (node.kind == ConfigNode::Kind::integer && !needs_suffix(unit)) {
    value = node.integer;
  } else if (node.kind == ConfigNode::Kind::integer || (node.kind == ConfigNode::Kind::number && needs_suffix(unit))) {
    problems_->error(span, dotted(key), "missing unit", "expected " + expected_form(unit) + ", in quotes");
    return std::nullopt;
  } else {
    wrong_type(node, key, needs_suffix(unit) ? expected_form(unit) + ", in quotes" : "an integer without quotes");
    return std::nullopt;
  }
  if (const auto e = check_range(static_cast<double>(value), unit, range.min, range.max)) {
    problems_->error(span, dotted(key), e->message, e->remedy);
    return std::nullopt;
  }
  return value;
}

std::optional<double> TableReader::double_in(const ConfigNode& node, const std::string& key, Range range, Unit unit) {
  const SourceSpan span{root_->text, node.line, node.column};
  double value = 0;
  const bool numeric = node.kind == ConfigNode::Kind::integer || node.kind == ConfigNode::Kind::number;
  if (needs_suffix(unit) && node.kind == ConfigNode::Kind::text) {
    const auto parsed = parse_quantity(node.text, unit);
    if (!parsed) {
      problems_->error(span, dotted(key), parsed.error().message, parsed.error().remedy);
      return std::nullopt;
    }
    value = *parsed;
  } else if (numeric && !needs_suffix(unit)) {
    value = node.kind == ConfigNode::Kind::integer ? static_cast<double>(node.integer) : node.number;
  } else if (numeric) {
    problems_->error(span, dotted(key), "missing unit", "expected " + expected_form(unit) + ", in quotes");
    return std::nullopt;
  } else {
    wrong_type(node, key, expected_form(unit) + (needs_suffix(unit) ? ", in quotes" : " without quotes"));
    return std::nullopt;
  }
  if (!std::isfinite(value)) {
    problems_->error(span, dotted(key), "not a finite number", "expected " + expected_form(unit));
    return std::nullopt;
  }
  if (const auto e = check_range(value, unit, range.min, range.max)) {
    problems_->error(span, dotted(key), e->message, e->remedy);
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> TableReader::text_of(const std::string& key, bool required) {
  const ConfigNode* node = get(key, required, "a string in quotes");
  if (node == nullptr) return std::nullopt;
  if (node->kind == ConfigNode::Kind::text) return node->text;
  wrong_type(*node, key, "a string in quotes");
  return std::nullopt;
}

std::optional<std::int64_t> TableReader::integer_of(const std::string& key, Range range, bool required, Unit unit) {
  const ConfigNode* node = get(key, required, expected_form(unit));
  return node == nullptr ? std::nullopt : whole_in(*node, key, range, unit);
}

std::optional<double> TableReader::number_of(const std::string& key, Range range, bool required, Unit unit) {
  const ConfigNode* node = get(key, required, expected_form(unit));
  return node == nullptr ? std::nullopt : double_in(*node, key, range, unit);
}

std::optional<bool> TableReader::flag_of(const std::string& key, bool required) {
  const ConfigNode* node = get(key, required, "true or false");
  if (node == nullptr) return std::nullopt;
  if (node->kind == ConfigNode::Kind::boolean) return node->boolean;
  wrong_type(*node, key, "true or false");
  return std::nullopt;
}

std::optional<std::string> TableReader::choice_of(const std::string& key, const std::vector<std::string>& words,
                                                  bool required) {
  const ConfigNode* node = get(key, required, "one of: " + joined(words));
  if (node == nullptr) return std::nullopt;
  if (node->kind != ConfigNode::Kind::text) {
    wrong_type(*node, key, "a string in quotes, one of: " + joined(words));
    return std::nullopt;
  }
  if (std::find(words.begin(), words.end(), node->text) != words.end()) return node->text;
  const std::string near = closest(node->text, words);
  error(key, "unknown choice '" + node->text + "'",
        (near.empty() ? "" : "did you mean " + near + "? ") + ("choices: " + joined(words)));
  return std::nullopt;
}

std::string TableReader::text(const std::string& key) { return text_of(key, true).value_or(""); }
std::string TableReader::text(const std::string& key, const std::string& default_value) {
  return text_of(key, false).value_or(default_value);
}
std::int64_t TableReader::integer(const std::string& key, Range range) {
  return integer_of(key, range, true, Unit::none).value_or(0);
}
std::int64_t TableReader::integer(const std::string& key, std::int64_t default_value, Range range) {
  return integer_of(key, range, false, Unit::none).value_or(default_value);
}
double TableReader::number(const std::string& key, Range range) {
  return number_of(key, range, true, Unit::none).value_or(0);
}
double TableReader::number(const std::string& key, double default_value, Range range) {
  return number_of(key, range, false, Unit::none).value_or(default_value);
}
bool TableReader::flag(const std::string& key) { return flag_of(key, true).value_or(false); }
bool TableReader::flag(const std::string& key, bool default_value) {
  return flag_of(key, false).value_or(default_value);
}
std::string TableReader::choice(const std::string& key, const std::vector<std::string>& words) {
  return choice_of(key, words, true).value_or("");
}
std::string TableReader::choice(const std::string& key, const std::vector<std::string>& words,
                                const std::string& default_value) {
  return choice_of(key, words, false).value_or(default_value);
}
double TableReader::quantity(const std::string& key, Unit unit, Range range) {
  return number_of(key, range, true, unit).value_or(0);
}
double TableReader::quantity(const std::string& key, Unit unit, double default_value, Range range) {
  return number_of(key, range, false, unit).value_or(default_value);
}
std::int64_t TableReader::whole(const std::string& key, Unit unit, Range range) {
  return integer_of(key, range, true, unit).value_or(0);
}
std::int64_t TableReader::whole(const std::string& key, Unit unit, std::int64_t default_value, Range range) {
  return integer_of(key, range, false, unit).value_or(default_value);
}

std::vector<std::int64_t> TableReader::integers(const std::string& key, Range range) {
  std::vector<std::int64_t> out;
  const ConfigNode* node = get(key, false, "");
  if (node == nullptr) return out;
  const bool lone = node->kind != ConfigNode::Kind::array;
  for (std::size_t i = 0; i < (lone ? 1 : node->items.size()); ++i)
    if (const auto v = whole_in(lone ? *node : node->items[i], key, range, Unit::none)) out.push_back(*v);
  return out;
}

std::vector<double> TableReader::numbers(const std::string& key, Range range) {
  std::vector<double> out;
  const ConfigNode* node = get(key, false, "");
  if (node == nullptr) return out;
  const bool lone = node->kind != ConfigNode::Kind::array;
  for (std::size_t i = 0; i < (lone ? 1 : node->items.size()); ++i)
    if (const auto v = double_in(lone ? *node : node->items[i], key, range, Unit::none)) out.push_back(*v);
  return out;
}

std::vector<std::string> TableReader::texts(const std::string& key) {
  std::vector<std::string> out;
  const ConfigNode* node = get(key, false, "");
  if (node == nullptr) return out;
  const bool lone = node->kind != ConfigNode::Kind::array;
  for (std::size_t i = 0; i < (lone ? 1 : node->items.size()); ++i) {
    const ConfigNode& item = lone ? *node : node->items[i];
    if (item.kind == ConfigNode::Kind::text) {
      out.push_back(item.text);
    } else {
      wrong_type(item, key, "a string in quotes");
    }
  }
  return out;
}

std::vector<std::vector<std::int64_t>> TableReader::integer_lists(const std::string& key, Range range) {
  std::vector<std::vector<std::int64_t>> out;
  const ConfigNode* node = get(key, false, "");
  if (node == nullptr) return out;
  if (node->kind != ConfigNode::Kind::array) {
    wrong_type(*node, key, "a list of lists such as [[0, 1], [2, 3]]");
    return out;
  }
  for (const ConfigNode& row : node->items) {
    out.emplace_back();
    if (row.kind != ConfigNode::Kind::array) {
      wrong_type(row, key, "a list of lists such as [[0, 1], [2, 3]]");
      continue;
    }
    for (const ConfigNode& item : row.items)
      if (const auto v = whole_in(item, key, range, Unit::none)) out.back().push_back(*v);
  }
  return out;
}

bool TableReader::require(const std::string& key) { return get(key, true, "a value") != nullptr; }

std::optional<TableReader> TableReader::sub(const std::string& key, bool required) {
  const ConfigNode* node = get(key, required, "a table [" + dotted(key) + "]");
  if (node == nullptr) return std::nullopt;
  if (node->kind != ConfigNode::Kind::table) {
    wrong_type(*node, key, "a table [" + dotted(key) + "]");
    return std::nullopt;
  }
  return TableReader(root_, node, dotted(key), problems_);
}

std::vector<TableReader> TableReader::tables(const std::string& key, bool required) {
  std::vector<TableReader> out;
  const std::string form = "tables [[" + dotted(key) + "]]";
  const ConfigNode* node = get(key, required, form);
  if (node == nullptr) return out;
  if (node->kind == ConfigNode::Kind::table) {
    out.push_back(TableReader(root_, node, dotted(key), problems_));
  } else if (node->kind == ConfigNode::Kind::array) {
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      if (node->items[i].kind != ConfigNode::Kind::table) {
        wrong_type(node->items[i], key, form);
      } else {
        out.push_back(TableReader(root_, &node->items[i], fmt::format("{}[{}]", dotted(key), i), problems_));
      }
    }
  } else {
    wrong_type(*node, key, form);
  }
  return out;
}

Value TableReader::param(const Param& p) {
  const Range range{p.min, p.max};
  Value out = p.default_value;
  if (std::holds_alternative<bool>(out)) {
    if (const auto v = flag_of(p.name, p.required)) out = *v;
  } else if (std::holds_alternative<std::int64_t>(out)) {
    if (const auto v = integer_of(p.name, range, p.required, p.unit)) out = *v;
  } else if (std::holds_alternative<double>(out)) {
    if (const auto v = number_of(p.name, range, p.required, p.unit)) out = *v;
  } else if (const auto v =
                 p.choices.empty() ? text_of(p.name, p.required) : choice_of(p.name, p.choices, p.required)) {
    out = *v;
  }
  return out;
}

ParamSet TableReader::params(const std::vector<Param>& records) {
  ParamSet out;
  for (const Param& p : records) out.set(p.name, param(p));
  return out;
}

void TableReader::finish() {
  for (const ConfigNode::Entry& e : table_->entries) {
    if (std::find(used_.begin(), used_.end(), e.key) != used_.end()) continue;
    const std::string near = closest(e.key, used_);
    std::vector<std::string> known = used_;
    std::sort(known.begin(), known.end());
    problems_->error({root_->text, e.line, e.column}, dotted(e.key), "unknown key",
                     near.empty() ? "known keys here: " + joined(known) : "did you mean " + near + "?");
  }
}

Diagnostics in_file_order(const Diagnostics& problems) {
  std::vector<Diagnostic> sorted = problems.items();
  std::stable_sort(sorted.begin(), sorted.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::make_tuple(a.where.file, a.where.line == 0, a.where.line, a.where.column) <
           std::make_tuple(b.where.file, b.where.line == 0, b.where.line, b.where.column);
  });
  Diagnostics out;
  for (const Diagnostic& d : sorted) {
    if (d.severity == Severity::error) {
      out.error(d.where, d.key, d.message, d.remedy);
    } else {
      out.warning(d.where, d.key, d.message, d.remedy);
    }
  }
  return out;
}

}  // namespace sojourn
