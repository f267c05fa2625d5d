// A recorded sequence of router decisions: which k experts each token of each layer was sent to.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn {

/// Where numbers come from; travels with every figure.
enum class Origin {
  recorded,   ///< from the named model
  surrogate,  ///< recorded from another model of the same expert count and top-k
  synthetic,  ///< drawn from a generator
  calibrated  ///< a generator whose knobs were fitted to published statistics
};
[[nodiscard]] const char* origin_name(Origin o);

struct TraceMeta {
  std::string name;   ///< file stem
  std::string model;  ///< preset name where known
  int layers = 0, experts = 0, top_k = 0;
  std::int64_t tokens = 0;
  Origin origin = Origin::recorded;
  std::string recorded_from, note;
  std::vector<std::string> serves;    ///< presets a surrogate stands in for
  std::vector<std::string> domains;   ///< may be empty
  std::vector<int> sequence_domain;   ///< per sequence, index into domains; empty = one domain
  std::string format;                 ///< importer that made it
  std::vector<int> layer_ids;         ///< the layers' numbers in the model; empty = 0, 1, ...
  std::vector<std::string> sources;   ///< files it was made from, with their SHA-256
  std::string training;               ///< "yes", "no" or words: was it used to tune a policy
  std::string details;                ///< JSON object text: generator knobs and fit residuals; may be empty
  std::vector<std::string> warnings;  ///< what the importer dropped or could not know
  std::string sha256;                 ///< of the container file
};

/// Read-only view of an `.npz` container (or of a memory-built trace). Big arrays stay in the file: they are
/// memory-mapped, compressed members through an unlinked temporary file, so a trace need not fit in memory.
class Trace {
 public:
  virtual ~Trace() = default;
  [[nodiscard]] virtual const TraceMeta& meta() const = 0;
  /// Expert ids of one layer, row-major [tokens, k]; 65535 = no expert (padded).
  [[nodiscard]] virtual std::span<const std::uint16_t> ids(int layer) const = 0;
  /// float16 bit patterns [tokens, k]; empty when not recorded.
  [[nodiscard]] virtual std::span<const std::uint16_t> weights(int layer) const = 0;
  [[nodiscard]] virtual std::span<const std::int32_t> sequence_id() const = 0;  ///< [tokens]
  [[nodiscard]] virtual std::span<const std::int32_t> position() const = 0;     ///< [tokens]
  [[nodiscard]] virtual std::span<const std::uint8_t> phase() const = 0;  ///< [tokens] 0 prefill 1 decode; may be empty
};

/// Everything an importer produces, held in memory, before it is written as a container.
struct TraceData {
  TraceMeta meta;
  std::vector<std::vector<std::uint16_t>> ids;      ///< [layers][tokens * k]
  std::vector<std::vector<std::uint16_t>> weights;  ///< same shape, float16 bits; empty = none
  std::vector<std::int32_t> sequence_id, position;
  std::vector<std::uint8_t> phase;
};

/// Opens a container. Errors (exit 2): not a zip, missing or misshapen arrays, ids out of range, truncated, absurd
/// sizes.
[[nodiscard]] Result<std::unique_ptr<Trace>> open_trace(const std::string& path);
/// The same view over data in memory.
[[nodiscard]] std::unique_ptr<Trace> make_trace(TraceData data);
/// Writes atomically (temporary file, rename). Same data, same bytes.
[[nodiscard]] Result<std::string> write_trace(const TraceData& data, const std::string& path);

}  // namespace sojourn
