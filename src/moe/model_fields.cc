// The one record of a preset's keys: bounds are generous for models that could exist and small enough that no product
// of them leaves 128 bits.
#include "moe/model_fields.h"

#include <algorithm>

#include "moe/model_load.h"

namespace sojourn {
namespace {

template <auto Member, class T>
ModelField<T> field(std::string name, Value default_value, double min, double max, std::string text,
                    bool required = false, Unit unit = Unit::none) {
  ModelField<T> f;
  f.param = Param{std::move(name), unit, std::move(default_value), min, max, {}, std::move(text), {}};
  f.param.required = required;
  using M = std::remove_reference_t<decltype(std::declval<T&>().*Member)>;
  f.set = [](T& t, const Value& v) {
    if constexpr (std::is_same_v<M, int>) {
      t.*Member = static_cast<int>(std::get<std::int64_t>(v));
    } else {
      t.*Member = std::get<M>(v);
    }
  };
  f.get = [](const T& t) {
    if constexpr (std::is_same_v<M, int>) {
      return Value{static_cast<std::int64_t>(t.*Member)};
    } else {
      return Value{t.*Member};
    }
  };
  return f;
}

constexpr double kLayers = 10'000, kDim = 1 << 20, kHeads = 1 << 16, kWidth = 1 << 24;
const std::int64_t kZero = 0, kOne = 1;

}  // namespace

const std::vector<ModelField<ModelShape>>& shape_fields() {
  using S = ModelShape;
  static const std::vector<ModelField<S>> fields = {
      field<&S::text, S>("text", std::string{}, 0, 0, "one line about the model"),
      field<&S::source, S>("source", std::string{}, 0, 0, "where the shape was read"),
      field<&S::layers, S>("layers", kZero, 1, kLayers, "transformer blocks", true),
      field<&S::dense_first, S>("dense_first", kZero, 0, kLayers, "leading blocks with a dense FFN"),
      field<&S::moe_every, S>("moe_every", kOne, 1, kLayers, "a MoE FFN every n-th block after the dense ones"),
      field<&S::hidden, S>("hidden", kZero, 1, kDim, "model width d", true),
      field<&S::vocab, S>("vocab", kZero, 1, 1 << 26, "rows of the embedding and of the LM head", true),
      field<&S::tied_embeddings, S>("tied_embeddings", false, 0, 0, "the LM head is the embedding"),
      field<&S::experts, S>("experts", kZero, 0, 65'535, "routed experts a MoE block; 0 = a dense model"),
      field<&S::top_k, S>("top_k", kZero, 0, 65'535, "routed experts a token", false, Unit::none),
      field<&S::moe_ff, S>("moe_ff", kZero, 0, kWidth, "FFN width of a routed expert"),
      field<&S::shared_experts, S>("shared_experts", kZero, 0, 1024, "experts every token uses"),
      field<&S::shared_ff, S>("shared_ff", kZero, 0, kWidth, "FFN width of one shared expert"),
      field<&S::dense_ff, S>("dense_ff", kZero, 0, kWidth, "FFN width of blocks without experts"),
      field<&S::matrices, S>("matrices", std::int64_t{3}, 2, 3, "matrices an FFN: 3 = SwiGLU, 2 = two-layer"),
      field<&S::expert_groups, S>("expert_groups", kZero, 0, 65'535, "groups of node-limited routing; 0 = none"),
      field<&S::group_top, S>("group_top", kZero, 0, 65'535, "groups a token may use"),
      field<&S::alt_every, S>("alt_every", kZero, 0, kLayers, "every n-th block uses [attention_alt]; 0 = none"),
      field<&S::alt_phase, S>("alt_phase", kZero, 0, kLayers, "moves that pattern this many blocks earlier"),
      field<&S::alt_first, S>("alt_first", kZero, 0, kLayers, "leading blocks that use [attention_alt] too"),
      field<&S::weight_bytes, S>("weight_bytes", 1.0, 0.0625, 16, "bytes a weight (1 = FP8)"),
      field<&S::activation_bytes, S>("activation_bytes", 2.0, 0.0625, 16, "bytes an activation (2 = BF16)"),
      field<&S::kv_bytes, S>("kv_bytes", 2.0, 0.0625, 16, "bytes an element of the KV cache (2 = BF16)"),
      field<&S::published_total, S>("published_total", 0.0, 0, 1e6, "parameters its authors state, in 1e9; 0 = none"),
      field<&S::published_active, S>("published_active", 0.0, 0, 1e6, "parameters a token, as stated, in 1e9"),
  };
  return fields;
}

const std::vector<AttentionField>& attention_fields() {
  using A = Attention;
  using K = AttentionKind;
  static const std::vector<K> softmax = {K::mha, K::gqa, K::mqa};
  static const std::vector<K> cached = {K::mha, K::gqa, K::mqa, K::mla};
  static const std::vector<K> mla = {K::mla}, linear = {K::linear};
  static const std::vector<AttentionField> fields = {
      {field<&A::heads, A>("heads", kZero, 1, kHeads, "query heads"), cached},
      {field<&A::kv_heads, A>("kv_heads", kZero, 1, kHeads, "key/value heads (mha: heads; mqa: 1)"), softmax},
      {field<&A::head_dim, A>("head_dim", kZero, 1, kHeads, "width of a head; default hidden / heads"), softmax},
      {field<&A::output_gate, A>("output_gate", false, 0, 0,
                                 "the output is gated by a projection as wide as the query"),
       softmax},
      {field<&A::window, A>("window", kZero, 0, 1e9, "sliding window; 0 = full", false, Unit::tokens), cached},
      {field<&A::q_lora, A>("q_lora", kZero, 0, kDim, "MLA: query rank; 0 = a full projection"), mla},
      {field<&A::kv_lora, A>("kv_lora", kZero, 1, kDim, "MLA: width of the latent KV"), mla},
      {field<&A::nope_dim, A>("nope_dim", kZero, 1, kHeads, "MLA: head width without rotary position"), mla},
      {field<&A::rope_dim, A>("rope_dim", kZero, 0, kHeads, "MLA: head width with rotary position"), mla},
      {field<&A::v_dim, A>("v_dim", kZero, 1, kHeads, "MLA: width of a value head"), mla},
      {field<&A::k_heads_linear, A>("k_heads_linear", kZero, 1, kHeads, "linear: query and key heads"), linear},
      {field<&A::v_heads_linear, A>("v_heads_linear", kZero, 1, kHeads, "linear: value heads"), linear},
      {field<&A::linear_dim, A>("linear_dim", kZero, 1, kHeads, "linear: width of a head"), linear},
      {field<&A::conv, A>("conv", kZero, 0, 1024, "linear: taps of the causal convolution"), linear},
      {field<&A::index_heads, A>("index_heads", kZero, 0, kHeads, "sparse indexer heads; 0 = none, or another block's"),
       cached},
      {field<&A::index_dim, A>("index_dim", kZero, 0, kHeads, "sparse indexer head width"), cached},
      {field<&A::index_topk, A>("index_topk", kZero, 0, 1e9, "tokens a sparse block attends to; 0 = all", false,
                                Unit::tokens),
       cached},
  };
  return fields;
}

const std::vector<std::string>& attention_kinds() {
  static const std::vector<std::string> kinds = {"mha", "gqa", "mqa", "mla", "linear"};
  return kinds;
}

AttentionKind attention_kind(const std::string& name) {
  const auto& kinds = attention_kinds();
  const auto at = std::find(kinds.begin(), kinds.end(), name);
  return at == kinds.end() ? AttentionKind::gqa : static_cast<AttentionKind>(at - kinds.begin());
}

std::vector<Param> model_params() {
  std::vector<Param> out;
  for (const auto& f : shape_fields()) out.push_back(f.param);
  Param kind{"attention.kind", Unit::none, std::string{"gqa"}, 0, 0, attention_kinds(), "form of attention", {}, true};
  out.push_back(kind);
  for (const AttentionField& f : attention_fields()) {
    Param p = f.param;
    p.name = "attention." + p.name;
    out.push_back(std::move(p));
  }
  out.push_back(Param{"unverified", Unit::none, std::string{}, 0, 0, {}, "keys not read in a published config", {}});
  return out;
}

std::vector<std::pair<std::string, Value>> model_values(const ModelShape& m) {
  std::vector<std::pair<std::string, Value>> out;
  for (const auto& f : shape_fields()) out.emplace_back(f.param.name, f.get(m));
  const auto add = [&out](const std::string& table, const Attention& a) {
    out.emplace_back(table + ".kind", std::string(attention_kind_name(a.kind)));
    for (const AttentionField& f : attention_fields()) {
      if (std::find(f.kinds.begin(), f.kinds.end(), a.kind) != f.kinds.end())
        out.emplace_back(table + "." + f.param.name, f.get(a));
    }
  };
  add("attention", m.attention);
  if (m.alt_every > 0 || m.alt_first > 0) add("attention_alt", m.attention_alt);
  return out;
}

}  // namespace sojourn
