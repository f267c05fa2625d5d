// What a trace or a set of loads looks like: skew, how many experts a block of tokens touches, how fast the hot experts
// move.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sojourn/trace.h"
#include "trace/loads.h"

namespace sojourn {

/// Skew of one vector of loads.
struct LoadShape {
  double gini = 0;          ///< 0 even, towards 1 all on one expert
  double entropy_bits = 0;  ///< of the load shares
  double entropy = 0;       ///< the same over log2(experts): 1 even
  double max_over_mean = 0;
  double top10pct_share = 0;  ///< share of the ceil(0.1 E) hottest experts
};
[[nodiscard]] LoadShape load_shape(const std::vector<double>& loads);
/// Pearson correlation; empty when either side does not vary.
[[nodiscard]] std::optional<double> pearson(const std::vector<double>& a, const std::vector<double>& b);

inline constexpr int kUnionBlocks[] = {1, 8, 64, 128};
inline constexpr int kWindows[] = {512, 2048};

struct LayerStats {
  LoadShape shape;
  std::optional<double> unions[4];       ///< mean distinct experts in blocks of kUnionBlocks consecutive tokens
  std::optional<double> correlation[2];  ///< mean correlation of the loads of adjacent windows of kWindows tokens
  std::optional<double> reuse;  ///< share of a token's experts that the token before it in the sequence had too
};

struct DomainStats {
  std::string name;
  std::int64_t sequences = 0, tokens = 0;
  std::vector<std::vector<double>> loads;  ///< [layer][expert]
  LoadShape shape;                         ///< mean over layers
};

struct TraceStats {
  std::vector<LayerStats> layers;
  LayerStats mean;  ///< over layers
  std::vector<DomainStats> domains;
  std::vector<std::vector<double>> domain_correlation;  ///< mean over layers; NaN where undefined
  std::int64_t sequences = 0, prefill_tokens = 0, decode_tokens = 0;
  std::int64_t length_min = 0, length_max = 0;
  double length_mean = 0;
};

/// Tokens are taken in file order. Blocks and windows that are cut off by the end are left out.
[[nodiscard]] TraceStats trace_stats(const Trace& trace);

struct LoadStats {
  std::vector<LoadShape> layers;  ///< of the sum over steps
  LoadShape mean;
  std::vector<std::optional<double>> step_correlation;  ///< per layer, of adjacent steps
};
[[nodiscard]] LoadStats load_stats(const LoadData& data);

}  // namespace sojourn
