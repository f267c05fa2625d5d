// Read traffic for a DRAM memory of one or more channels: the patterns of the reference data and what they measure.
//
// Equations: efficiency = bytes / (first issue to last data) / peak; latency = acceptance (open loop: arrival) to last
// data. Assumptions: a request is 64 bytes, in 64 / transaction_bytes transactions, done with the last of them; a
// stream is in
//   order and waits when the channel of its next transaction is full, while others go on.
// Source: ours; the patterns are the reference data's (docs/memory.md).
#pragma once
#include <cstdint>
#include <vector>

#include "memory/channel.h"

namespace sojourn::dram {

enum class Pattern { idle_random, idle_rowhit, stream, random64, random_chunks, load_stream, load_random64 };
enum class Bases { aligned, same_bank_group, diff_bank_group, spread };

struct Traffic {
  Pattern pattern = Pattern::stream;
  std::int64_t requests = 1;          ///< idle_*, random64, load_*
  int streams = 1;                    ///< stream, random_chunks
  Bases bases = Bases::spread;        ///< stream
  std::vector<std::int64_t> starts;   ///< stream: first addresses, in place of `bases`
  std::int64_t bytes_per_stream = 0;  ///< stream, random_chunks
  int turn_bytes = 64;                ///< bytes a stream sends before the next one's turn
  int chunk_bytes = 64;               ///< random_chunks
  double load = 0;                    ///< load_*: of the peak
  std::uint64_t seed = 1;
};

struct Outcome {
  std::int64_t requests = 0;
  Cycle cycles = 0;  ///< first issue to last data
  double efficiency = 0, latency_ns = 0;
  /// pJ a byte; 0 where the record has no currents.
  double act = 0, read = 0, refresh = 0, background = 0;
  [[nodiscard]] double energy() const { return act + read + refresh + background; }
};

Outcome run(const DramRecord& record, const Traffic& traffic);

}  // namespace sojourn::dram
