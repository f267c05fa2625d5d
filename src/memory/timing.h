// A tier as the engine sees it: latency, bandwidth and energy, derived from a detailed model of its device.
//
// Equations: DRAM: idle latency is the mean of idle random reads; efficiency at n streams is the mean over seeds of n
//   streams with random bases; energies are those of the widest such run. SRAM, ReRAM: peak = banks * width / cycle;
//   with n streams that each ask a random bank in a cycle, the asked banks are banks * (1 - (1 - 1/banks)^n), so a
//   stream gets that over n of its rate (Strecker 1970).
// Assumptions: reads only. Streams take turns of 1 KiB. A refused SRAM or ReRAM access is drawn anew (Strecker's).
// Sources: the record's; the stream counts and sizes are ours.
#pragma once
#include <string>
#include <vector>

#include "memory/dram.h"

namespace sojourn {

struct MemoryTiming {
  std::string name, text, source, kind;
  double idle_ns = 0;
  double peak = 0;  ///< bytes a second
  struct Point {
    int streams = 1;
    double efficiency = 0;
  };
  std::vector<Point> curve;  ///< by streams
  /// pJ a byte at the widest point; all 0 when unknown.
  double act = 0, read = 0, refresh = 0, background = 0;
  /// Linear between the points, flat beyond them.
  [[nodiscard]] double efficiency(int streams) const;
};

/// Single-ported banks that serve one access a cycle.
struct BankedMemory {
  int banks = 1;
  int width_bytes = 64;
  double access_ns = 1, cycle_ns = 1;
  double energy_pj_per_byte = 0;
};

MemoryTiming derive(const dram::DramRecord& record);
MemoryTiming derive(const BankedMemory& memory);

std::vector<std::string> memory_preset_names();
/// The shipped record of this name, with its curve; derived once a process. Unknown names are reported with the known
/// ones.
Result<MemoryTiming> memory_preset(const std::string& name);
/// The record itself; only for kind "dram".
Result<dram::DramRecord> dram_preset(const std::string& name);

}  // namespace sojourn
