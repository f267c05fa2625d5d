// Turns rows of expert ids, in token-major or layer-major order, into TraceData: the shape checks every per-token
// importer shares. Rows carry the file's own layer numbers; the trace's layers are those numbers in ascending order.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sojourn/params.h"
#include "sojourn/trace.h"

namespace sojourn {

/// Experts and top-k of well-known models, matched in a model id ("Qwen/Qwen1.5-MoE-A2.7B-Chat"). Source: their
/// configs.
struct KnownModel {
  const char* name;
  int experts, top_k;
};
[[nodiscard]] const KnownModel* known_model(const std::string& id);

/// Rows of one sequence (request, or forward pass).
struct SequenceRows {
  std::map<int, std::vector<std::uint16_t>> ids;  ///< by layer number, tokens * k
  std::map<int, std::vector<float>> weights;      ///< same shape where present
  std::vector<std::int32_t> position;             ///< empty = 0, 1, ...
  std::vector<std::uint8_t> phase;                ///< empty = unknown
};

class TraceBuilder {
 public:
  explicit TraceBuilder(std::string format) { meta.format = std::move(format); }
  TraceMeta meta;  ///< experts, top_k: what the file declares, 0 = unknown

  /// Appends one token's experts to `rows`. False with a reason: wrong k, an expert twice is only counted.
  [[nodiscard]] bool add(SequenceRows& rows, int layer, std::span<const int> ids, std::span<const float> weights,
                         std::string& why);
  /// Closes a sequence; layers must agree in length. Rows are left empty. An empty sequence is reported and dropped.
  [[nodiscard]] Result<bool> close(SequenceRows& rows, const std::string& domain, const SourceSpan& where,
                                   Diagnostics& warnings);
  /// Resolves experts (parameter, file, known model, largest id), sorts by weight, checks ids.
  [[nodiscard]] Result<TraceData> finish(const ParamSet& params, const SourceSpan& where, Diagnostics& warnings);
  [[nodiscard]] int top_k() const { return k_; }

 private:
  TraceData data_;
  std::vector<int> layers_;
  std::vector<std::vector<float>> weights_;
  int k_ = 0, largest_ = -1;
  std::int64_t duplicates_ = 0, padded_ = 0;
  bool all_weights_ = true, all_phases_ = true;
};

/// Parameters every per-token format has.
[[nodiscard]] std::vector<Param> common_params();

}  // namespace sojourn
