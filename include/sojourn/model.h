// Shapes of Mixture-of-Experts models, from which every byte and operation follows.
#pragma once
#include <string>
#include <vector>

#include "sojourn/units.h"

namespace sojourn {

enum class Mode { prefill, decode };
[[nodiscard]] inline const char* mode_name(Mode m) { return m == Mode::prefill ? "prefill" : "decode"; }

enum class AttentionKind { mha, gqa, mqa, mla, linear };

/// One attention block. Fields that a kind does not use are 0.
struct Attention {
  AttentionKind kind = AttentionKind::gqa;
  int heads = 0, kv_heads = 0, head_dim = 0;                             ///< MHA/GQA/MQA
  int q_lora = 0, kv_lora = 0, nope_dim = 0, rope_dim = 0, v_dim = 0;    ///< MLA
  int k_heads_linear = 0, v_heads_linear = 0, linear_dim = 0, conv = 0;  ///< linear (gated delta) attention
  int window = 0;                                                        ///< sliding window, tokens; 0 = full
  bool output_gate = false;
  int index_heads = 0, index_dim = 0, index_topk = 0;  ///< sparse-attention indexer (DSA); 0 = none. index_topk with
                                                       ///< no heads: the block reuses an earlier block's choice.
  friend bool operator==(const Attention&, const Attention&) = default;
};
[[nodiscard]] const char* attention_kind_name(AttentionKind kind);

struct ModelShape {
  std::string name, text;
  int layers = 0;       ///< transformer blocks
  int dense_first = 0;  ///< leading blocks with a dense FFN
  int moe_every = 1;    ///< a MoE FFN every n-th block after the dense ones
  int hidden = 0;       ///< d_model
  int moe_ff = 0;       ///< d_ffn of a routed expert
  int dense_ff = 0;     ///< d_ffn of dense blocks (0 = none)
  int experts = 0, top_k = 0;
  int shared_experts = 0, shared_ff = 0;  ///< shared_ff: d_ffn of one shared expert
  int vocab = 0;
  bool tied_embeddings = false;
  int matrices = 3;                      ///< per expert: 3 = SwiGLU, 2 = two-layer FFN
  int expert_groups = 0, group_top = 0;  ///< node-limited routing
  Attention attention;                   ///< of most blocks
  Attention attention_alt;               ///< of the other blocks of a hybrid model
  int alt_every = 0;          ///< every n-th block (n-1, 2n-1, ...) uses `attention_alt`; 0 = never (see models/README)
  int alt_phase = 0;          ///< moves that pattern this many blocks towards block 0
  int alt_first = 0;          ///< these leading blocks use `attention_alt` too
  double weight_bytes = 1.0;  ///< bytes a weight (FP8)
  double activation_bytes = 2.0;                     ///< bytes an activation (BF16)
  double kv_bytes = 2.0;                             ///< bytes an element of the KV cache (BF16)
  double published_total = 0, published_active = 0;  ///< parameters its authors state, in 1e9; 0 = none stated
  std::vector<std::string> unverified;               ///< keys taken from memory or derived, not from a published config
  std::string source;                                ///< where the shape was read: publication or repository
  std::string file, source_sha256;                   ///< the preset file, and the SHA-256 of its text

  [[nodiscard]] int moe_layers() const;
  [[nodiscard]] bool is_moe(int block) const;
  [[nodiscard]] const Attention& attention_of(int block) const;
  [[nodiscard]] Bytes expert_bytes() const;                 ///< S^wt = matrices * d * ff * weight_bytes
  [[nodiscard]] Macs expert_macs_per_token() const;         ///< Ops^token: 2 d f or 3 d f, in MACs
  [[nodiscard]] Bytes activation_bytes_per_token() const;   ///< d * activation_bytes (dispatch and gather)
  [[nodiscard]] Bytes routed_bytes() const;                 ///< all routed experts of all layers
  [[nodiscard]] Bytes block_weight_bytes(int block) const;  ///< everything of a block that is not a routed expert
  [[nodiscard]] Bytes head_bytes() const;                   ///< LM head
  [[nodiscard]] Bytes kv_bytes_per_token(int block) const;  ///< KV cache appended a token
  [[nodiscard]] Bytes state_bytes(int block) const;         ///< constant state a sequence (linear attention), else 0

  // Parameter counts; norms, biases, positions and multi-token-prediction heads are not counted.
  [[nodiscard]] std::int64_t expert_params() const;              ///< of one routed expert
  [[nodiscard]] std::int64_t attention_params(int block) const;  ///< projections, gate, indexer, convolution
  [[nodiscard]] std::int64_t block_params(int block) const;      ///< everything of a block but routed experts
  [[nodiscard]] std::int64_t total_params() const;               ///< with embedding and LM head
  [[nodiscard]] std::int64_t active_params() const;              ///< total less the routed experts not chosen
  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

/// Work of the events of one block that the router does not decide.
struct BlockWork {
  Macs attention_macs = 0, dense_macs = 0, shared_macs = 0, gate_macs = 0;
  Bytes weight_bytes = 0;  ///< non-routed weights read once a window
  Bytes kv_read_bytes = 0, kv_write_bytes = 0;
  [[nodiscard]] Macs macs() const { return attention_macs + dense_macs + shared_macs; }
};
/// tokens: in the window (prefill: prompt tokens, decode: sequences); context: mean tokens each attends to, before any
/// window or sparse choice cuts it. Prefill with context 0 is one prompt of `tokens`, whose causal mean is (T+1)/2.
[[nodiscard]] BlockWork block_work(const ModelShape& m, int block, Mode mode, int tokens, int context);
/// LM head: one token a sequence in prefill, every token in decode.
[[nodiscard]] BlockWork head_work(const ModelShape& m, int output_tokens);

}  // namespace sojourn
