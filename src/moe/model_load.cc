// Reads presets. The record in model_fields.cc says which keys exist and their bounds; this file adds what ties keys
// to each other (top_k <= experts, heads a multiple of kv_heads, ...). Nothing stops at the first error.
#include "moe/model_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/hash.h"
#include "config/reader.h"
#include "moe/model_fields.h"

namespace sojourn {
namespace {

namespace fs = std::filesystem;

constexpr double kMaxParams = 1e15;  // far above any model; below it every byte and MAC count fits 64 bits

bool member(AttentionKind kind, const std::vector<AttentionKind>& kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

/// An error about a key, unless that key has one already: a value out of bounds was replaced by its default.
void complain(TableReader& t, const std::string& key, std::string message, std::string remedy = {}) {
  for (const Diagnostic& d : t.problems().items())
    if (d.severity == Severity::error && d.key == t.dotted(key)) return;
  t.error(key, std::move(message), std::move(remedy));
}

template <class T>
void read_field(TableReader& table, const ModelField<T>& f, bool required, T& out) {
  if (!table.has(f.param.name)) {
    if (required) {
      Param p = f.param;  // the typed getter says what kind of value is missing
      p.required = true;
      (void)table.param(p);
    }
    f.set(out, f.param.default_value);
    return;
  }
  f.set(out, table.param(f.param));
}

void check_heads(TableReader& t, Attention& a, int hidden) {
  if (a.heads == 0) return;  // reported as missing or out of bounds
  if (!t.has("kv_heads")) a.kv_heads = a.kind == AttentionKind::mqa ? 1 : a.kind == AttentionKind::mha ? a.heads : 0;
  if (!t.has("head_dim") && hidden > 0) {
    if (hidden % a.heads == 0) {
      a.head_dim = hidden / a.heads;
    } else {
      complain(t, "heads", fmt::format("hidden = {} is not a multiple of heads = {}", hidden, a.heads),
               "give head_dim, or mend hidden or heads");
    }
  }
  if (a.kv_heads == 0) return;
  if (a.kind == AttentionKind::mha && a.kv_heads != a.heads) {
    complain(t, "kv_heads", fmt::format("kind = \"mha\" has kv_heads = heads = {}, not {}", a.heads, a.kv_heads),
             "use kind = \"gqa\"");
  } else if (a.kind == AttentionKind::mqa && a.kv_heads != 1) {
    complain(t, "kv_heads", fmt::format("kind = \"mqa\" has one key/value head, not {}", a.kv_heads),
             "use kind = \"gqa\"");
  } else if (a.heads % a.kv_heads != 0) {
    complain(t, "kv_heads", fmt::format("heads = {} is not a multiple of kv_heads = {}", a.heads, a.kv_heads),
             "each key/value head serves the same number of query heads");
  }
}

Attention read_attention(TableReader& t, int hidden) {
  Attention a;
  const std::size_t before = t.problems().items().size();
  const std::string kind = t.choice("kind", attention_kinds());
  const bool known = t.problems().items().size() == before;
  a.kind = attention_kind(kind);
  for (const AttentionField& f : attention_fields()) {
    const std::string& name = f.param.name;
    if (!known) {  // still read, so that its own bounds are checked
      read_field(t, f, false, a);
      continue;
    }
    if (!member(a.kind, f.kinds)) {
      if (!t.has(name)) continue;
      (void)t.param(f.param);
      std::string who;
      for (AttentionKind k : f.kinds) who += (who.empty() ? "" : ", ") + std::string(attention_kind_name(k));
      complain(t, name, fmt::format("kind = \"{}\" has no {}", kind, name),
               fmt::format("remove it (it is for {})", who));
      continue;
    }
    const bool needed = f.param.min >= 1 && name != "head_dim" && (name != "kv_heads" || a.kind == AttentionKind::gqa);
    read_field(t, f, needed, a);
  }
  if (known && member(a.kind, {AttentionKind::mha, AttentionKind::gqa, AttentionKind::mqa})) check_heads(t, a, hidden);
  if (a.kind == AttentionKind::linear && a.k_heads_linear > 0 && a.v_heads_linear % a.k_heads_linear != 0) {
    complain(t, "v_heads_linear",
             fmt::format("v_heads_linear = {} is not a multiple of k_heads_linear = {}", a.v_heads_linear,
                         a.k_heads_linear));
  }
  if (a.index_heads > 0 && a.index_dim == 0) complain(t, "index_heads", "an indexer needs index_dim", "add index_dim");
  if (a.index_heads > 0 && a.index_topk == 0)
    complain(t, "index_heads", "an indexer needs index_topk", "add index_topk");
  if (a.index_heads == 0 && a.index_dim > 0)
    complain(t, "index_dim", "there is no indexer", "add index_heads, or remove it");
  t.finish();
  return a;
}

void check_experts(TableReader& t, const ModelShape& m) {
  if (m.experts == 0) {
    for (const char* key :
         {"top_k", "moe_ff", "shared_experts", "shared_ff", "dense_first", "expert_groups", "group_top"})
      if (t.has(key)) complain(t, key, "the model has no experts", "give experts, or remove it");
    if (m.moe_every != 1) complain(t, "moe_every", "the model has no experts", "give experts, or remove it");
    if (!t.has("dense_ff")) (void)t.integer("dense_ff", Range{1, 1e9});
    return;
  }
  if (!t.has("top_k")) {
    (void)t.integer("top_k", Range{1, 1e9});
  } else if (m.top_k < 1 || m.top_k > m.experts) {
    complain(t, "top_k", fmt::format("{} is not between 1 and experts = {}", m.top_k, m.experts));
  }
  if (!t.has("moe_ff")) (void)t.integer("moe_ff", Range{1, 1e9});
  if (t.has("moe_ff") && m.moe_ff == 0)
    complain(t, "moe_ff", "an expert of width 0", "give the width of a routed expert");
  if (m.shared_experts > 0 && m.shared_ff == 0)
    complain(t, "shared_experts", "shared experts need shared_ff", "add shared_ff, the width of one shared expert");
  if (m.shared_experts == 0 && m.shared_ff > 0)
    complain(t, "shared_ff", "there is no shared expert", "give shared_experts, or remove it");
  if (m.layers > 0 && m.dense_first >= m.layers)
    complain(t, "dense_first", fmt::format("{} leaves no block of layers = {} for experts", m.dense_first, m.layers));
  else if (m.layers > 0 && m.moe_every > m.layers - m.dense_first)
    complain(t, "moe_every", fmt::format("no block of layers = {} would have experts", m.layers));
  const bool dense_blocks = m.moe_layers() < m.layers;
  if (dense_blocks && m.dense_ff == 0)
    complain(t, t.has("dense_ff") ? "dense_ff" : (m.dense_first > 0 ? "dense_first" : "moe_every"),
             fmt::format("{} blocks have a dense FFN, which needs dense_ff", m.layers - m.moe_layers()),
             "add dense_ff");
  if (!dense_blocks && m.dense_ff > 0)
    complain(t, "dense_ff", "every block has experts", "remove it, or give dense_first or moe_every");
  if (m.expert_groups == 0) {
    if (m.group_top > 0) complain(t, "group_top", "there are no expert groups", "give expert_groups, or remove it");
    return;
  }
  if (m.experts % m.expert_groups != 0) {
    complain(t, "expert_groups", fmt::format("experts = {} is not a multiple of {}", m.experts, m.expert_groups));
  } else if (m.group_top < 1 || m.group_top > m.expert_groups) {
    complain(t, t.has("group_top") ? "group_top" : "expert_groups",
             fmt::format("group_top = {} is not between 1 and expert_groups = {}", m.group_top, m.expert_groups));
  } else if (m.top_k > m.group_top * (m.experts / m.expert_groups)) {
    complain(t, "group_top",
             fmt::format("{} groups of {} experts cannot give top_k = {}", m.group_top, m.experts / m.expert_groups,
                         m.top_k));
  }
}

void check_alternation(TableReader& t, const ModelShape& m, bool has_alt) {
  const bool used = m.alt_every > 0 || m.alt_first > 0;
  if (used && !has_alt)
    complain(t, m.alt_every > 0 ? "alt_every" : "alt_first", "no [attention_alt] table", "add it, or remove this key");
  if (!used && has_alt)
    complain(t, "attention_alt", "no block uses it", "give alt_every or alt_first, or remove the table");
  if (m.layers > 0 && m.alt_every > m.layers)
    complain(t, "alt_every", fmt::format("{} is more than layers = {}", m.alt_every, m.layers));
  if (m.layers > 0 && m.alt_first > m.layers)
    complain(t, "alt_first", fmt::format("{} is more than layers = {}", m.alt_first, m.layers));
  if (m.alt_phase > 0 && m.alt_phase >= m.alt_every)
    complain(t, "alt_phase", fmt::format("{} is not below alt_every = {}", m.alt_phase, m.alt_every));
}

void read_unverified(TableReader& t, ModelShape& m) {
  std::vector<std::string> known;
  for (const Param& p : model_params()) {
    known.push_back(p.name);
    if (p.name.rfind("attention.", 0) == 0) known.push_back("attention_alt." + p.name.substr(10));
  }
  for (const std::string& name : t.texts("unverified")) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = closest(name, known);
      t.error("unverified", fmt::format("'{}' is not a key of a model", name),
              near.empty() ? "name keys such as \"vocab\" or \"attention.heads\"" : "did you mean " + near + "?");
    }
    m.unverified.push_back(name);
  }
}

Result<ModelShape> read_model(const ConfigFile& file) {
  Diagnostics problems;
  TableReader t = file.root(problems);
  ModelShape m;
  m.name = fs::path(file.name()).stem().string();
  m.file = file.name();
  m.source_sha256 = sha256_hex(file.text());
  for (const auto& f : shape_fields()) read_field(t, f, f.param.required, m);
  if (auto attention = t.sub("attention", true)) m.attention = read_attention(*attention, m.hidden);
  auto alt = t.sub("attention_alt");
  if (alt) m.attention_alt = read_attention(*alt, m.hidden);
  read_unverified(t, m);
  check_experts(t, m);
  check_alternation(t, m, t.has("attention_alt"));
  t.finish();
  if (!problems.has_errors() && static_cast<double>(m.total_params()) > kMaxParams) {
    t.error("layers", fmt::format("the model has {:.3g} parameters", static_cast<double>(m.total_params())),
            fmt::format("at most {:.0e}; check layers, experts and widths", kMaxParams));
  }
  if (problems.has_errors()) return fail(in_file_order(problems));
  return m;
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || (name.size() > 5 && name.compare(name.size() - 5, 5, ".toml") == 0);
}

std::string lower(std::string s) {
  for (char& c : s)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return s;
}

std::string trim(const std::string& s) {
  const auto first = s.find_first_not_of(" \t\r\n");
  return first == std::string::npos ? "" : s.substr(first, s.find_last_not_of(" \t\r\n") - first + 1);
}

const std::vector<std::string>& set_names() {
  static const std::vector<std::string> names = {"table2", "all-moe", "all-dense", "all"};
  return names;
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

Failure unknown(const std::string& name, const std::vector<std::string>& dirs, const SourceSpan& where,
                const std::string& key, bool sets) {
  std::vector<std::string> known = model_names(dirs);
  std::string remedy = known.empty()
                           ? fmt::format("no presets in {}", dirs.empty() ? "any search directory" : joined(dirs))
                           : "known: " + joined(known);
  if (sets) known.insert(known.end(), set_names().begin(), set_names().end());
  const std::string near = closest(lower(name), known);
  if (!near.empty()) remedy = fmt::format("did you mean {}? ({})", near, remedy);
  Diagnostics d;
  d.error(where, key, fmt::format("unknown model '{}'", name), remedy);
  return Failure{d, 2};
}

Result<ModelShape> load_one(const std::string& name, const std::vector<std::string>& dirs, const SourceSpan& where,
                            const std::string& key, bool sets) {
  if (name.empty()) return fail(where, key, "no model named", "name a preset or the path of a .toml file");
  std::string path = name;
  if (!is_path(name)) {
    path.clear();
    for (const std::string& dir : dirs) {
      const fs::path candidate = fs::path(dir) / (name + ".toml");
      std::error_code error;
      if (fs::is_regular_file(candidate, error)) {
        path = candidate.string();
        break;
      }
    }
    if (path.empty()) return tl::unexpected<Failure>(unknown(name, dirs, where, key, sets));
  }
  auto file = ConfigFile::parse_file(path);
  if (!file) return tl::unexpected<Failure>(file.error());
  return read_model(*file);
}

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string toml_value(const Value& v) {
  if (const auto* flag = std::get_if<bool>(&v)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&v)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&v)) {
    const std::string s = fmt::format("{}", *number);
    return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
  }
  return quoted(std::get<std::string>(v));
}

void write_attention(std::string& out, const char* table, const Attention& a) {
  out += fmt::format("\n[{}]\nkind = \"{}\"\n", table, attention_kind_name(a.kind));
  for (const AttentionField& f : attention_fields()) {
    if (member(a.kind, f.kinds) && f.get(a) != f.param.default_value)
      out += fmt::format("{} = {}\n", f.param.name, toml_value(f.get(a)));
  }
}

}  // namespace

std::string model_to_toml(const ModelShape& m) {
  std::string out;
  for (const auto& f : shape_fields()) {
    if (f.param.required || f.get(m) != f.param.default_value)
      out += fmt::format("{} = {}\n", f.param.name, toml_value(f.get(m)));
  }
  if (!m.unverified.empty()) {
    out += "unverified = [";
    for (std::size_t i = 0; i < m.unverified.size(); ++i) out += (i > 0 ? ", " : "") + quoted(m.unverified[i]);
    out += "]\n";
  }
  write_attention(out, "attention", m.attention);
  if (m.alt_every > 0 || m.alt_first > 0) write_attention(out, "attention_alt", m.attention_alt);
  return out;
}

Result<ModelShape> parse_model(std::string_view toml, const std::string& file) {
  auto parsed = ConfigFile::parse_text(toml, file);
  if (!parsed) return tl::unexpected<Failure>(parsed.error());
  return read_model(*parsed);
}

Result<ModelShape> load_model(const std::string& name_or_path, const std::vector<std::string>& search_dirs,
                              const SourceSpan& where, const std::string& key) {
  return load_one(name_or_path, search_dirs, where, key, false);
}

Result<std::vector<ModelShape>> load_model_list(const std::string& list, const std::vector<std::string>& search_dirs,
                                                const SourceSpan& where, const std::string& key) {
  std::vector<ModelShape> models;
  Diagnostics problems;
  std::set<std::string> seen;
  int exit_code = 2;
  const auto add = [&](const std::string& name, const std::string& set) {
    if (!seen.insert(set + "/" + name).second) return;
    auto m = load_one(name, search_dirs, where, key, true);
    if (!m) {
      problems.append(m.error().diagnostics);
      exit_code = std::max(exit_code, m.error().exit_code);
      return;
    }
    if (!set.empty() && set != "all" && (m->experts > 0) != (set == "all-moe")) return;
    const auto same =
        std::find_if(models.begin(), models.end(), [&](const ModelShape& o) { return o.name == m->name; });
    if (same == models.end()) {
      models.push_back(std::move(*m));
    } else if (same->source_sha256 != m->source_sha256) {
      problems.error(where, key,
                     fmt::format("two different models are called '{}': {} and {}", m->name, same->file, m->file),
                     "rename one of the files");
    }
  };
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    const std::string word = trim(list.substr(begin, comma - begin));
    begin = comma + 1;
    if (word.empty()) {
      problems.error(where, key, list.empty() ? "no model named" : fmt::format("an empty name in '{}'", list),
                     "names separated by commas, or a set: " + joined(set_names()));
    } else if (word == "table2") {
      for (const std::string& name : table2_models()) add(name, {});
    } else if (word == "all" || word == "all-moe" || word == "all-dense") {
      for (const std::string& name : model_names(search_dirs)) add(name, word);
    } else {
      add(word, {});
    }
  }
  if (problems.has_errors()) return fail(problems, exit_code);
  if (models.empty())
    return fail(where, key, fmt::format("'{}' names no model", list), "add presets to a search directory");
  return models;
}

std::vector<std::string> model_names(const std::vector<std::string>& search_dirs) {
  std::set<std::string> names;
  for (const std::string& dir : search_dirs) {
    std::error_code error;
    for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
      if (at->path().extension() == ".toml") names.insert(at->path().stem().string());
    }
  }
  return {names.begin(), names.end()};
}

const std::vector<std::string>& table2_models() {
  static const std::vector<std::string> names = {"dbrx",          "deepseek-v2-lite", "deepseek-v2",
                                                 "deepseek-v3",   "deepseek-moe-16b", "mixtral-8x7b",
                                                 "mixtral-8x22b", "qwen1.5-moe"};
  return names;
}

}  // namespace sojourn
