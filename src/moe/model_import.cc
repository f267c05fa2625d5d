// Maps the keys of Hugging Face configurations to a preset.
//
// Which blocks have experts and which attention a block uses is written down block by block, as the modelling code of
// each family decides it, and then fitted to the preset's (dense_first, moe_every) and (alt_first, alt_every,
// alt_phase); a pattern that these cannot state is refused, never approximated. Assumptions: `tie_word_embeddings`
// absent is false (the default of every family here); Llama-4's chunked attention is a window of the chunk's size;
// multi-token-prediction blocks, vision towers and biases are left out. Source: the families' public config.json files
// and the transformers library's documented meaning of their keys.
#include "moe/model_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "moe/model_load.h"

namespace sojourn {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes = 4U << 20;
constexpr int kMaxDepth = 64;
constexpr int kMaxBlocks = 10'000;

SourceSpan span_at(std::string_view text, std::size_t byte, const std::string& file) {
  SourceSpan s{file, 1, 1};
  for (std::size_t i = 0; i < std::min(byte, text.size()); ++i) {
    if (text[i] == '\n') {
      ++s.line;
      s.column = 1;
    } else {
      ++s.column;
    }
  }
  return s;
}

/// Byte at which brackets nest deeper than kMaxDepth.
std::optional<std::size_t> too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return std::nullopt;
}

/// One object of the configuration. Getters report what is missing or wrong under the object's dotted path.
class Keys {
 public:
  Keys(const Json& object, std::string path, std::string_view text, std::string file, std::string model_type,
       Diagnostics& problems)
      : object_(&object),
        path_(std::move(path)),
        text_(text),
        file_(std::move(file)),
        type_(std::move(model_type)),
        problems_(&problems) {}

  [[nodiscard]] const Json* find(const std::string& key) const {
    const auto at = object_->find(key);
    return at == object_->end() || at->is_null() ? nullptr : &*at;  // null means "not set" in these files
  }
  [[nodiscard]] bool has(const std::string& key) const { return find(key) != nullptr; }

  int integer(const std::string& key, double min, double max) const { return integer_or(key, std::nullopt, min, max); }
  int integer(const std::string& key, int otherwise, double min, double max) const {
    return integer_or(key, otherwise, min, max);
  }
  bool flag(const std::string& key, bool otherwise) const {
    const Json* v = find(key);
    if (v == nullptr) return otherwise;
    if (!v->is_boolean()) {
      error(key, fmt::format("expected true or false, found {}", v->type_name()));
      return otherwise;
    }
    return v->get<bool>();
  }
  /// A list of words, one a block; empty when absent or wrong.
  std::vector<std::string> words(const std::string& key, int blocks) const {
    const Json* v = find(key);
    std::vector<std::string> out;
    if (v == nullptr) return out;
    if (!v->is_array() || static_cast<int>(std::min<std::size_t>(v->size(), kMaxBlocks + 1)) != blocks) {
      error(key, fmt::format("expected a list of {} words, one a block", blocks));
      return out;
    }
    for (const Json& word : *v) {
      if (!word.is_string()) {
        error(key, fmt::format("expected words, found {}", word.type_name()));
        return {};
      }
      out.push_back(word.get<std::string>());
    }
    return out;
  }
  std::set<int> indices(const std::string& key) const {
    const Json* v = find(key);
    std::set<int> out;
    if (v == nullptr) return out;
    if (!v->is_array() || v->size() > kMaxBlocks) {
      error(key, "expected a list of block numbers");
      return out;
    }
    for (const Json& n : *v) {
      if (!n.is_number_integer() || n.get<double>() < 0 || n.get<double>() >= kMaxBlocks) {
        error(key, "expected a list of block numbers");
        return {};
      }
      out.insert(n.get<int>());
    }
    return out;
  }
  /// A nested object, reported when absent.
  std::optional<Keys> object(const std::string& key) const {
    const Json* v = find(key);
    if (v == nullptr || !v->is_object()) {
      missing(key);
      return std::nullopt;
    }
    return Keys(*v, dotted(key), text_, file_, type_, *problems_);
  }
  void error(const std::string& key, std::string message, std::string remedy = {}) const {
    problems_->error(where(key), dotted(key), std::move(message), std::move(remedy));
  }

 private:
  int integer_or(const std::string& key, std::optional<int> otherwise, double min, double max) const {
    const Json* v = find(key);
    if (v == nullptr) {
      if (!otherwise) missing(key);
      return otherwise.value_or(0);
    }
    const double n = v->is_number() ? v->get<double>() : std::nan("");
    if (!v->is_number() || n != std::floor(n)) {
      error(key, fmt::format("expected a whole number, found {}", v->is_number() ? v->dump() : v->type_name()));
    } else if (n < min || n > max) {
      error(key, fmt::format("{:.0f} is not between {:.0f} and {:.0f}", n, min, max));
    } else {
      return static_cast<int>(n);
    }
    return otherwise.value_or(0);
  }
  void missing(const std::string& key) const {
    problems_->error({file_, 0, 0}, dotted(key), fmt::format("missing; model_type \"{}\" needs it", type_),
                     "use the config.json as published, or write the preset by hand (models/README.md)");
  }
  [[nodiscard]] std::string dotted(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  [[nodiscard]] SourceSpan where(const std::string& key) const {
    std::size_t from = 0;  // a nested key is looked for after its object's name
    if (!path_.empty()) from = std::min(text_.find("\"" + path_.substr(path_.rfind('.') + 1) + "\""), text_.size());
    const std::size_t at = text_.find("\"" + key + "\"", from);
    return at == std::string_view::npos ? SourceSpan{file_, 0, 0} : span_at(text_, at, file_);
  }

  const Json* object_;
  std::string path_;
  std::string_view text_;
  std::string file_, type_;
  Diagnostics* problems_;
};

constexpr double kDim = 1 << 20, kWidth = 1 << 24, kExperts = 65'535;

void common(const Keys& k, ModelShape& m) {
  m.layers = k.integer("num_hidden_layers", 1, kMaxBlocks);
  m.hidden = k.integer("hidden_size", 1, kDim);
  m.vocab = k.integer("vocab_size", 1, 1 << 26);
}

Attention heads(const Keys& k, int hidden, const std::string& heads_key = "num_attention_heads") {
  Attention a;
  a.heads = k.integer(heads_key, 1, 1 << 16);
  a.kv_heads = k.integer("num_key_value_heads", a.heads, 1, 1 << 16);
  a.head_dim = k.integer("head_dim", a.heads > 0 ? hidden / a.heads : 0, 1, 1 << 16);
  if (!k.has("head_dim") && a.heads > 0 && hidden % a.heads != 0)
    k.error(heads_key, fmt::format("hidden_size = {} is not a multiple of {}", hidden, a.heads), "give head_dim");
  return a;
}

void set_kind(Attention& a) {
  a.kind = a.kv_heads == a.heads ? AttentionKind::mha : a.kv_heads == 1 ? AttentionKind::mqa : AttentionKind::gqa;
}

/// dense_first and moe_every that give exactly these blocks experts.
void fit_experts(const Keys& k, ModelShape& m, const std::string& key, const std::function<bool(int)>& has_experts) {
  std::vector<int> at;
  for (int b = 0; b < m.layers; ++b)
    if (has_experts(b)) at.push_back(b);
  if (m.layers == 0) return;
  if (at.empty()) {
    k.error(key, "no block has experts");
    return;
  }
  m.moe_every = at.size() > 1 ? at[1] - at[0] : m.layers - at[0];
  m.dense_first = at[0] - m.moe_every + 1;
  bool same = m.dense_first >= 0;
  for (int b = 0; same && b < m.layers; ++b) same = m.is_moe(b) == std::binary_search(at.begin(), at.end(), b);
  if (!same)
    k.error(key, "the blocks with experts follow no pattern a preset can state",
            "a preset has dense blocks first, then experts in every n-th block");
}

/// alt_first, alt_every and alt_phase that give exactly these blocks `attention_alt`.
void fit_alternation(const Keys& k, ModelShape& m, const std::string& key, const std::vector<bool>& alt) {
  const int n = static_cast<int>(alt.size());
  if (std::find(alt.begin(), alt.end(), false) == alt.end()) {
    m.attention = m.attention_alt;  // every block alike
    return;
  }
  int run = 0;
  while (run < n && alt[run]) ++run;
  for (const int first : {0, run}) {
    std::vector<int> at;
    for (int b = first; b < n; ++b)
      if (alt[b]) at.push_back(b);
    m.alt_first = first;
    m.alt_every = at.empty() ? 0 : at.size() > 1 ? at[1] - at[0] : n;
    m.alt_phase = at.empty() ? 0 : (m.alt_every - (at[0] + 1) % m.alt_every) % m.alt_every;
    bool same = true;
    for (int b = 0; same && b < n; ++b)
      same = alt[b] == (b < first || (m.alt_every > 0 && (b + 1 + m.alt_phase) % m.alt_every == 0));
    if (same) return;
  }
  k.error(key, "the two kinds of block follow no pattern a preset can state",
          "a preset has leading blocks of one kind, then one in every n-th block");
}

/// `layer_types` against the word of the blocks that use attention_alt; `interval` when there is no such list.
void alternate(const Keys& k, ModelShape& m, const std::string& main, const std::string& other, int interval) {
  std::vector<bool> alt;
  const std::vector<std::string> types = k.words("layer_types", m.layers);
  for (int b = 0; b < m.layers; ++b) {
    if (types.empty()) {
      alt.push_back((b + 1) % std::max(1, interval) == 0);
    } else if (types[b] != main && types[b] != other) {
      k.error("layer_types", fmt::format("'{}' is neither {} nor {}", types[b], main, other));
      return;
    } else {
      alt.push_back(types[b] == other);
    }
  }
  fit_alternation(k, m, "layer_types", alt);
}

/// DeepSeek's MoE keys, which GLM took over.
void deepseek_experts(const Keys& k, ModelShape& m) {
  m.experts = k.integer("n_routed_experts", 1, kExperts);
  m.top_k = k.integer("num_experts_per_tok", 1, kExperts);
  m.moe_ff = k.integer("moe_intermediate_size", 1, kWidth);
  m.shared_experts = k.integer("n_shared_experts", 0, 0, 1024);
  if (m.shared_experts > 0) m.shared_ff = m.moe_ff;
  const int first = k.integer("first_k_dense_replace", 0, 0, kMaxBlocks);
  const int every = k.integer("moe_layer_freq", 1, 1, kMaxBlocks);
  const std::vector<std::string> types = k.words("mlp_layer_types", m.layers);
  fit_experts(k, m, types.empty() ? "first_k_dense_replace" : "mlp_layer_types",
              [&](int b) { return types.empty() ? b >= first && b % std::max(1, every) == 0 : types[b] == "sparse"; });
  if (m.moe_layers() < m.layers) m.dense_ff = k.integer("intermediate_size", 1, kWidth);
  const int groups = k.integer("n_group", 1, 1, kExperts);
  if (groups > 1) {
    m.expert_groups = groups;
    m.group_top = k.integer("topk_group", 1, kExperts);
  }
}

void mla(const Keys& k, ModelShape& m) {
  Attention& a = m.attention;
  a.kind = AttentionKind::mla;
  a.heads = k.integer("num_attention_heads", 1, 1 << 16);
  a.q_lora = k.integer("q_lora_rank", 0, 0, kDim);
  a.kv_lora = k.integer("kv_lora_rank", 1, kDim);
  a.nope_dim = k.integer("qk_nope_head_dim", 1, 1 << 16);
  a.rope_dim = k.integer("qk_rope_head_dim", 0, 1 << 16);
  a.v_dim = k.integer("v_head_dim", 1, 1 << 16);
  if (!k.has("index_topk")) return;
  a.index_topk = k.integer("index_topk", 1, 1e9);
  const std::vector<std::string> types = k.words("indexer_types", m.layers);
  m.attention_alt = a;  // with its own indexer; the others reuse an earlier block's choice
  m.attention_alt.index_heads = k.integer("index_n_heads", 1, 1 << 16);
  m.attention_alt.index_dim = k.integer("index_head_dim", 1, 1 << 16);
  std::vector<bool> alt(static_cast<std::size_t>(m.layers), true);
  for (std::size_t b = 0; b < types.size(); ++b) alt[b] = types[b] == "full";
  fit_alternation(k, m, "indexer_types", alt);
}

void qwen_experts(const Keys& k, ModelShape& m) {
  m.experts = k.integer("num_experts", 1, kExperts);
  m.top_k = k.integer("num_experts_per_tok", 1, kExperts);
  m.moe_ff = k.integer("moe_intermediate_size", 1, kWidth);
  m.shared_ff = k.integer("shared_expert_intermediate_size", 0, 0, kWidth);
  m.shared_experts = m.shared_ff > 0 ? 1 : 0;
  const int step = k.integer("decoder_sparse_step", 1, 1, kMaxBlocks);
  const std::set<int> dense = k.indices("mlp_only_layers");
  fit_experts(k, m, dense.empty() ? "decoder_sparse_step" : "mlp_only_layers",
              [&](int b) { return (b + 1) % std::max(1, step) == 0 && dense.count(b) == 0; });
  if (m.moe_layers() < m.layers) m.dense_ff = k.integer("intermediate_size", 1, kWidth);
}

/// Qwen's use_sliding_window and Mistral's sliding_window, when it is on for every block.
void window(const Keys& k, Attention& a, bool on) {
  if (on) a.window = k.integer("sliding_window", 0, 0, 1e9);
}

void dense_model(const Keys& k, ModelShape& m) {
  common(k, m);
  m.attention = heads(k, m.hidden);
  m.dense_ff = k.integer("intermediate_size", 1, kWidth);
}

void local_experts(const Keys& k, ModelShape& m, const std::string& experts_key) {
  common(k, m);
  m.attention = heads(k, m.hidden);
  m.experts = k.integer(experts_key, 1, kExperts);
  m.top_k = k.integer(k.has("experts_per_token") ? "experts_per_token" : "num_experts_per_tok", 1, kExperts);
  m.moe_ff = k.integer("intermediate_size", 1, kWidth);
}

void hybrid_qwen(const Keys& k, ModelShape& m) {
  common(k, m);
  Attention& l = m.attention;
  l.kind = AttentionKind::linear;
  l.k_heads_linear = k.integer("linear_num_key_heads", 1, 1 << 16);
  l.v_heads_linear = k.integer("linear_num_value_heads", 1, 1 << 16);
  l.linear_dim = k.integer("linear_key_head_dim", 1, 1 << 16);
  l.conv = k.integer("linear_conv_kernel_dim", 0, 1024);
  if (k.integer("linear_value_head_dim", l.linear_dim, 1, 1 << 16) != l.linear_dim)
    k.error("linear_value_head_dim", "differs from linear_key_head_dim", "a preset has one width for both");
  m.attention_alt = heads(k, m.hidden);
  m.attention_alt.output_gate = k.flag("attn_output_gate", true);
  alternate(k, m, "linear_attention", "full_attention", k.integer("full_attention_interval", 4, 1, kMaxBlocks));
  qwen_experts(k, m);
}

void gpt_oss(const Keys& k, ModelShape& m) {
  local_experts(k, m, "num_local_experts");
  m.attention_alt = m.attention;
  m.attention.window = k.integer("sliding_window", 1, 1e9);
  alternate(k, m, "sliding_attention", "full_attention", 2);
}

void llama4(const Keys& k, ModelShape& m) {
  local_experts(k, m, "num_local_experts");
  m.shared_experts = 1;
  m.shared_ff = m.moe_ff;
  const int step = k.integer("interleave_moe_layer_step", 1, 1, kMaxBlocks);
  const std::set<int> listed = k.indices("moe_layers");
  fit_experts(k, m, listed.empty() ? "interleave_moe_layer_step" : "moe_layers",
              [&](int b) { return listed.empty() ? (b + 1) % std::max(1, step) == 0 : listed.count(b) != 0; });
  if (m.moe_layers() < m.layers) m.dense_ff = k.integer("intermediate_size_mlp", 1, kWidth);
  const int chunk = k.integer("attention_chunk_size", 0, 0, 1e9);
  if (chunk == 0) return;
  m.attention_alt = m.attention;
  m.attention.window = chunk;
  alternate(k, m, "chunked_attention", "full_attention", 4);
}

void dbrx(const Keys& k, ModelShape& m) {
  m.layers = k.integer("n_layers", 1, kMaxBlocks);
  m.hidden = k.integer("d_model", 1, kDim);
  m.vocab = k.integer("vocab_size", 1, 1 << 26);
  m.attention = heads(k, m.hidden, "n_heads");
  if (const auto attn = k.object("attn_config")) m.attention.kv_heads = attn->integer("kv_n_heads", 1, 1 << 16);
  if (const auto ffn = k.object("ffn_config")) {
    m.experts = ffn->integer("moe_num_experts", 1, kExperts);
    m.top_k = ffn->integer("moe_top_k", 1, kExperts);
    m.moe_ff = ffn->integer("ffn_hidden_size", 1, kWidth);
  }
}

using Family = std::function<void(const Keys&, ModelShape&)>;

const std::map<std::string, Family>& families() {
  static const std::map<std::string, Family> table = [] {
    std::map<std::string, Family> t;
    const Family mla_moe = [](const Keys& k, ModelShape& m) { common(k, m), mla(k, m), deepseek_experts(k, m); };
    const Family gqa_moe = [](const Keys& k, ModelShape& m) {
      common(k, m);
      m.attention = heads(k, m.hidden);
      deepseek_experts(k, m);
    };
    const Family qwen_moe = [](const Keys& k, ModelShape& m) {
      common(k, m);
      m.attention = heads(k, m.hidden);
      window(k, m.attention, k.flag("use_sliding_window", false));
      qwen_experts(k, m);
    };
    const Family windowed = [](const Keys& k, ModelShape& m) {
      dense_model(k, m);
      window(k, m.attention, k.flag("use_sliding_window", !k.has("use_sliding_window") && k.has("sliding_window")));
    };
    const Family qwen_dense = [](const Keys& k, ModelShape& m) {
      dense_model(k, m);
      window(k, m.attention, k.flag("use_sliding_window", false));
    };
    for (const char* name : {"deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa", "glm4_moe_lite"})
      t[name] = mla_moe;
    for (const char* name : {"deepseek", "glm4_moe"}) t[name] = gqa_moe;
    for (const char* name : {"qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text"}) t[name] = qwen_moe;
    for (const char* name : {"qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"}) t[name] = hybrid_qwen;
    for (const char* name : {"llama4", "llama4_text"}) t[name] = llama4;
    for (const char* name : {"qwen2", "qwen3"}) t[name] = qwen_dense;
    t["llama"] = dense_model;
    t["mistral"] = windowed;
    t["mixtral"] = [](const Keys& k, ModelShape& m) {
      local_experts(k, m, "num_local_experts");
      window(k, m.attention, true);
    };
    t["olmoe"] = [](const Keys& k, ModelShape& m) { local_experts(k, m, "num_experts"); };
    t["gpt_oss"] = gpt_oss;
    t["dbrx"] = dbrx;
    return t;
  }();
  return table;
}

std::string word_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

/// What the checkpoint's own format would make of weight_bytes.
std::string weight_hint(const Json& root, const Json& text) {
  const Json* q = nullptr;
  for (const Json* o : {&text, &root})
    if (const auto at = o->find("quantization_config"); at != o->end() && at->is_object()) q = &*at;
  std::string format = q != nullptr ? word_of(*q, "quant_method") : std::string();
  double bytes = 0;
  if (q != nullptr) {
    const auto bits = q->find("bits");
    if (bits != q->end() && bits->is_number_integer() && *bits >= 1 && *bits <= 32) bytes = bits->get<double>() / 8;
    if (format == "fp8") bytes = 1.0;
    if (format == "mxfp4") bytes = 0.53125;  // 4 bits, and 8 bits of scale for every 32
    if (format.empty()) format = "quantised";
  } else {
    for (const char* key : {"dtype", "torch_dtype"})
      for (const Json* o : {&text, &root})
        if (format.empty()) format = word_of(*o, key);
    if (format == "bfloat16" || format == "float16") bytes = 2.0;
    if (format == "float32") bytes = 4.0;
  }
  format.erase(std::remove_if(format.begin(), format.end(),
                              [](unsigned char c) { return !std::isalnum(c) && c != '_' && c != '-'; }),
               format.end());
  if (format.empty()) return {};
  if (bytes == 0) return fmt::format("# The checkpoint's weights are {}.\n", format);
  return fmt::format("# The checkpoint's weights are {}: weight_bytes = {} would match it.\n", format, bytes);
}

Result<std::string> import_object(const Json& root, std::string_view text, const std::string& file) {
  if (!root.is_object())
    return fail({file, 1, 1}, {}, fmt::format("expected an object, found {}", root.type_name()),
                "give the config.json of a model");
  const std::string outer_type = word_of(root, "model_type");
  const auto nested = root.find("text_config");
  const bool has_nested = nested != root.end() && nested->is_object();
  const Json& object = has_nested ? *nested : root;
  std::string type = word_of(object, "model_type");
  if (families().count(type) == 0 && families().count(outer_type) != 0) type = outer_type;
  if (type.empty()) type = outer_type;

  std::vector<std::string> known;
  for (const auto& [name, family] : families()) known.push_back(name);
  if (type.empty())
    return fail({file, 1, 1}, "model_type", "missing", fmt::format("known: {}", fmt::join(known, ", ")));
  Diagnostics problems;
  const Keys keys(object, has_nested ? "text_config" : "", text, file, type, problems);
  const auto family = families().find(type);
  if (family == families().end()) {
    const std::string near = closest(type, known);
    keys.error("model_type", fmt::format("unknown model_type '{}'", type),
               fmt::format("{}known: {}. Or write the preset by hand: it needs layers, hidden, vocab, experts, top_k, "
                           "moe_ff, dense_ff for dense blocks, and [attention] kind with its head counts and widths "
                           "(num_hidden_layers, hidden_size, vocab_size, ... in the config.json)",
                           near.empty() ? "" : "did you mean " + near + "? ", fmt::join(known, ", ")));
    return fail(problems);
  }
  ModelShape m;
  family->second(keys, m);
  const Json* tied = keys.find("tie_word_embeddings");
  if (tied == nullptr && root.contains("tie_word_embeddings")) tied = &root["tie_word_embeddings"];
  m.tied_embeddings = tied != nullptr && tied->is_boolean() && tied->get<bool>();
  if (m.attention.kind != AttentionKind::linear && m.attention.kind != AttentionKind::mla) set_kind(m.attention);
  if (m.attention_alt.heads > 0 && m.attention_alt.kind != AttentionKind::mla) set_kind(m.attention_alt);
  if (problems.has_errors()) return fail(problems);

  m.text = fmt::format("imported from a Hugging Face config.json, model_type {}", type);
  m.source = file;
  std::string out =
      "# Written by `sojourn model import`. Norms, biases, vision towers and multi-token prediction are\n"
      "# not part of a preset.\n";
  out += weight_hint(root, object) + model_to_toml(m);
  auto loaded = parse_model(out, file);
  if (!loaded) return tl::unexpected<Failure>(loaded.error());
  return out;
}

}  // namespace

Result<std::string> model_import_hf_text(std::string_view json, const std::string& file) {
  if (json.size() > kMaxBytes)
    return fail({file, 0, 0}, {}, fmt::format("{} bytes; a config.json has at most {}", json.size(), kMaxBytes));
  if (const auto at = too_deep(json))
    return fail(span_at(json, *at, file), {}, fmt::format("nested deeper than {} brackets", kMaxDepth));
  try {
    const Json root = Json::parse(json);
    return import_object(root, json, file);
  } catch (const Json::parse_error& e) {
    std::string why = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    if (const auto colon = why.find(": "); colon != std::string::npos) why = why.substr(colon + 2);
    return fail(span_at(json, e.byte > 0 ? e.byte - 1 : 0, file), {}, "not JSON: " + why, "mend the file");
  } catch (const Json::exception& e) {
    return fail({file, 0, 0}, {}, std::string("cannot be used: ") + e.what(), "mend the file");
  }
}

Result<std::string> model_import_hf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return fail({path, 0, 0}, {}, "no such file", "give the path of a Hugging Face config.json");
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (in.fail() && !in.eof())) return fail({path, 0, 0}, {}, "cannot be read", {}, 3);
  text.resize(static_cast<std::size_t>(in.gcount()));
  return model_import_hf_text(text, path);
}

}  // namespace sojourn
