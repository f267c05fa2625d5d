// Bytes, parameters and MACs of a model, from its shape.
//
// Notation: d = hidden, f = FFN width, T = tokens, c = context, H/K = query/KV heads, h = head_dim, m = matrices.
//
// Experts (HCRMap, Section II)   S^wt = m d f weight_bytes;  Ops^token = m d f MACs;  dispatch = d activation_bytes.
// MHA/GQA/MQA                    params = d H h (x2 with an output gate) + 2 d K h + H h d
//                                MACs a token = params + 2 a H h;   KV a token = 2 K h
// MLA (DeepSeek-V2, 2.1)         params = Q + d (r_kv + rope) + r_kv H (nope + v) + H v d,
//                                Q = d r_q + r_q H (nope + rope), or d H (nope + rope) with no q_lora
//   prefill, not absorbed        MACs a token = params + a H (nope + rope + v); an earlier chunk's latents are expanded
//                                again, r_kv H (nope + v) each
//   decode, absorbed             MACs a token = params + a H (2 r_kv + rope): W_UK is folded into the query and W_UV
//   into
//                                the output, which cost exactly the r_kv H (nope + v) that expanding one token would
//                                KV a token = r_kv + rope
// Sparse attention (DSA)         indexer params = (r_q or d) I i + d i + d I; MACs a token = params + c I (i + 1), I
// index
//                                heads of i dimensions, one index key a token; attention then sees a = min(c, topk)
// Linear (gated delta net)       q, k: kh heads; v, z (gate), o: vh heads; all of n dimensions
//                                params = d (2 kh n + 2 vh n + 2 vh) + conv (2 kh n + vh n) + vh n d
//                                MACs a token = params + 4 vh n n: decay the state, read it by k, write it, read it by
//                                q state a sequence = vh n n + (conv - 1)(2 kh n + vh n), at activation_bytes
// a (tokens attended to)         min(c, window or topk), averaged over the tokens; causal prefill averages (T+1)/2.
// FFN                            m d f, dense or shared; gate d E; LM head d vocab.
//
// Assumptions, ours where no paper states them: norms, biases, softmax, rotary and position embeddings are neglected
// (below 0.3 % of parameters of every preset). Non-routed weights, the gate among them, are read once a window at
// weight_bytes. In prefill the window's own KV is written once and read once (queries share it on chip), and earlier KV
// is read once; in decode a sequence shares nothing with another. Linear attention is counted in its recurrent form;
// chunked kernels do more arithmetic for better locality. Sparse attention in prefill keeps the un-absorbed form.
#include "sojourn/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sojourn {
namespace {

using Wide = __int128;

std::int64_t narrow(Wide v) {
  constexpr Wide kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp<Wide>(v, 0, kMax));
}

Bytes scaled(std::int64_t elements, double bytes_each) {
  const double b = static_cast<double>(elements) * bytes_each;
  return b >= 9.2e18 ? std::numeric_limits<Bytes>::max() : static_cast<Bytes>(std::llround(b));
}

Wide product(std::initializer_list<std::int64_t> factors) {
  Wide p = 1;
  for (std::int64_t f : factors) p *= f;
  return p;
}

std::int64_t ffn_params(const ModelShape& m, std::int64_t width) {
  return narrow(product({m.matrices, m.hidden, width}));
}

bool is_softmax(AttentionKind k) {
  return k == AttentionKind::mha || k == AttentionKind::gqa || k == AttentionKind::mqa;
}

/// Elements the convolution of a linear block runs over: q, k and v of a token.
std::int64_t conv_width(const Attention& a) { return (2LL * a.k_heads_linear + a.v_heads_linear) * a.linear_dim; }

std::int64_t indexer_params(const ModelShape& m, const Attention& a) {
  if (a.index_heads == 0) return 0;
  const std::int64_t from = a.q_lora > 0 ? a.q_lora : m.hidden;
  return narrow(product({from, a.index_heads, a.index_dim}) + product({m.hidden, a.index_dim}) +
                product({m.hidden, a.index_heads}));
}

std::int64_t params_of(const ModelShape& m, const Attention& a) {
  const std::int64_t d = m.hidden;
  switch (a.kind) {
    case AttentionKind::mha:
    case AttentionKind::gqa:
    case AttentionKind::mqa: {
      const std::int64_t q = static_cast<std::int64_t>(a.heads) * a.head_dim;
      const std::int64_t kv = static_cast<std::int64_t>(a.kv_heads) * a.head_dim;
      return narrow(product({d, q}) * (a.output_gate ? 3 : 2) + product({2, d, kv}) + indexer_params(m, a));
    }
    case AttentionKind::mla: {
      const std::int64_t qk = static_cast<std::int64_t>(a.heads) * (a.nope_dim + a.rope_dim);
      const Wide q = a.q_lora > 0 ? product({d, a.q_lora}) + product({a.q_lora, qk}) : product({d, qk});
      return narrow(q + product({d, a.kv_lora + a.rope_dim}) + product({a.kv_lora, a.heads, a.nope_dim + a.v_dim}) +
                    product({a.heads, a.v_dim, d}) + indexer_params(m, a));
    }
    case AttentionKind::linear: {
      const std::int64_t k = static_cast<std::int64_t>(a.k_heads_linear) * a.linear_dim;
      const std::int64_t v = static_cast<std::int64_t>(a.v_heads_linear) * a.linear_dim;
      return narrow(product({d, 2 * k + 2 * v + 2 * a.v_heads_linear}) + product({a.conv, conv_width(a)}) +
                    product({v, d}));
    }
  }
  return 0;
}

/// Sum over i = 1..n of min(p + i, cap); cap 0 = no limit.
Wide attended_sum(std::int64_t n, std::int64_t p, std::int64_t cap) {
  const auto plain = [p](Wide count) { return count * p + count * (count + 1) / 2; };
  if (cap == 0 || p + n <= cap) return plain(n);
  const std::int64_t below = std::max<std::int64_t>(0, cap - p);
  return plain(below) + static_cast<Wide>(n - below) * cap;
}

/// What the tokens of a window attend to.
struct Attended {
  Wide all = 0;                ///< token-context pairs before any cut
  Wide cut = 0;                ///< after the sliding window or the sparse choice
  std::int64_t sequences = 1;  ///< prompts in the window
  std::int64_t earlier = 0;    ///< context tokens from before the window (prefill)
};

Attended attended(const Attention& a, Mode mode, std::int64_t tokens, std::int64_t context) {
  std::int64_t cap = a.window;
  if (a.index_topk > 0 && (cap == 0 || a.index_topk < cap)) cap = a.index_topk;
  Attended out;
  if (mode == Mode::decode) {
    const std::int64_t seen = cap > 0 ? std::min(context, cap) : context;
    out.all = product({tokens, context});
    out.cut = product({tokens, seen});
    out.sequences = tokens;
    return out;
  }
  if (context == 0 || context == (tokens + 1) / 2) {  // one prompt
    out.all = attended_sum(tokens, 0, 0);
    out.cut = attended_sum(tokens, 0, cap);
    return out;
  }
  if (context < (tokens + 1) / 2) {  // several prompts of L = 2c - 1
    const std::int64_t length = 2 * context - 1;
    out.all = product({tokens, context});
    out.cut = (attended_sum(length, 0, cap) * tokens + length / 2) / length;
    out.sequences = (tokens + length - 1) / length;
    return out;
  }
  out.earlier = context - (tokens + 1) / 2;  // a chunk of a longer prompt
  out.all = attended_sum(tokens, out.earlier, 0);
  out.cut = attended_sum(tokens, out.earlier, cap);
  return out;
}

}  // namespace

const char* attention_kind_name(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::mha:
      return "mha";
    case AttentionKind::gqa:
      return "gqa";
    case AttentionKind::mqa:
      return "mqa";
    case AttentionKind::mla:
      return "mla";
    case AttentionKind::linear:
      return "linear";
  }
  return "?";
}

bool ModelShape::is_moe(int block) const {
  if (experts == 0 || block < dense_first || block >= layers) return false;
  return (block - dense_first + 1) % std::max(1, moe_every) == 0;
}

int ModelShape::moe_layers() const {
  return experts == 0 ? 0 : std::max(0, layers - dense_first) / std::max(1, moe_every);
}

const Attention& ModelShape::attention_of(int block) const {
  if (block < alt_first) return attention_alt;
  return alt_every > 0 && (block + 1 + alt_phase) % alt_every == 0 ? attention_alt : attention;
}

std::int64_t ModelShape::expert_params() const { return experts == 0 ? 0 : ffn_params(*this, moe_ff); }
Bytes ModelShape::expert_bytes() const { return scaled(expert_params(), weight_bytes); }
Macs ModelShape::expert_macs_per_token() const { return expert_params(); }
Bytes ModelShape::activation_bytes_per_token() const { return scaled(hidden, activation_bytes); }
Bytes ModelShape::routed_bytes() const { return narrow(product({expert_bytes(), experts, moe_layers()})); }

std::int64_t ModelShape::attention_params(int block) const { return params_of(*this, attention_of(block)); }

std::int64_t ModelShape::block_params(int block) const {
  Wide p = attention_params(block);
  if (is_moe(block)) {
    p += product({shared_experts, ffn_params(*this, shared_ff)}) + product({hidden, experts});
  } else {
    p += ffn_params(*this, dense_ff);
  }
  return narrow(p);
}

std::int64_t ModelShape::total_params() const {
  Wide p = product({vocab, hidden}) * (tied_embeddings ? 1 : 2);
  for (int b = 0; b < layers; ++b) p += block_params(b);
  return narrow(p + product({expert_params(), experts, moe_layers()}));
}

std::int64_t ModelShape::active_params() const {
  return narrow(total_params() - product({expert_params(), experts - top_k, moe_layers()}));
}

Bytes ModelShape::block_weight_bytes(int block) const { return scaled(block_params(block), weight_bytes); }
Bytes ModelShape::head_bytes() const { return scaled(narrow(product({vocab, hidden})), weight_bytes); }

Bytes ModelShape::kv_bytes_per_token(int block) const {
  const Attention& a = attention_of(block);
  std::int64_t elements = 0;
  if (is_softmax(a.kind)) elements = 2LL * a.kv_heads * a.head_dim;
  if (a.kind == AttentionKind::mla) elements = a.kv_lora + a.rope_dim;
  if (a.index_heads > 0) elements += a.index_dim;
  return scaled(elements, kv_bytes);
}

Bytes ModelShape::state_bytes(int block) const {
  const Attention& a = attention_of(block);
  if (a.kind != AttentionKind::linear) return 0;
  const Wide state = product({a.v_heads_linear, a.linear_dim, a.linear_dim});
  return scaled(narrow(state + product({std::max(0, a.conv - 1), conv_width(a)})), activation_bytes);
}

BlockWork block_work(const ModelShape& m, int block, Mode mode, int tokens, int context) {
  BlockWork w;
  if (tokens <= 0) return w;
  const Attention& a = m.attention_of(block);
  const Attended seen = attended(a, mode, tokens, std::max(0, context));
  const Bytes index_bytes = scaled(a.index_heads > 0 ? a.index_dim : 0, m.kv_bytes);
  const Bytes kv_bytes = m.kv_bytes_per_token(block) - index_bytes;

  Wide macs = product({m.attention_params(block), tokens});
  if (is_softmax(a.kind)) macs += seen.cut * product({2, a.heads, a.head_dim});
  if (a.kind == AttentionKind::mla) {
    if (mode == Mode::prefill) {
      macs += seen.cut * product({a.heads, a.nope_dim + a.rope_dim + a.v_dim});
      macs += product({seen.earlier, a.kv_lora, a.heads, a.nope_dim + a.v_dim});
    } else {
      macs += seen.cut * product({a.heads, 2LL * a.kv_lora + a.rope_dim});
    }
  }
  if (a.kind == AttentionKind::linear) macs += product({4, tokens, a.v_heads_linear, a.linear_dim, a.linear_dim});
  if (a.index_heads > 0) macs += seen.all * product({a.index_heads, a.index_dim + 1});
  w.attention_macs = narrow(macs);

  if (a.kind == AttentionKind::linear) {
    const Wide state = m.state_bytes(block);
    w.kv_write_bytes = narrow(state * seen.sequences);
    w.kv_read_bytes = mode == Mode::decode ? w.kv_write_bytes : (seen.earlier > 0 ? narrow(state) : 0);
  } else {
    w.kv_write_bytes = narrow(product({tokens, kv_bytes + index_bytes}));
    if (mode == Mode::decode) {
      w.kv_read_bytes = narrow(seen.cut * kv_bytes + seen.all * index_bytes);
    } else {
      const std::int64_t kept = a.window > 0 ? std::min<std::int64_t>(seen.earlier, a.window) : seen.earlier;
      w.kv_read_bytes = narrow(product({tokens + kept, kv_bytes + index_bytes}));
    }
  }

  if (m.is_moe(block)) {
    w.shared_macs = narrow(product({m.shared_experts, ffn_params(m, m.shared_ff), tokens}));
    w.gate_macs = narrow(product({m.hidden, m.experts, tokens}));
  } else {
    w.dense_macs = narrow(product({ffn_params(m, m.dense_ff), tokens}));
  }
  w.weight_bytes = m.block_weight_bytes(block);
  return w;
}

BlockWork head_work(const ModelShape& m, int output_tokens) {
  BlockWork w;
  if (output_tokens <= 0) return w;
  w.dense_macs = narrow(product({m.vocab, m.hidden, output_tokens}));
  w.weight_bytes = m.head_bytes();
  return w;
}

}  // namespace sojourn
