// The record of one DRAM device and its controller: everything the channel model knows about a memory.
//
// Equations: peak = transaction_bytes / (burst * tCK) a pseudo-channel; row-hit latency = (CL + burst) * tCK; refresh
// cap
//   = 1 - RFC / REFI; activate cap = 4 * transaction_bytes / (FAW * tCK); energy of a command = VDD * (its IDD less the
//   standby current) * its duration, the split of the Micron power notes TN-40-07 and TN-46-03.
// Assumptions: reads only; one rank; no PHY and no link above the controller; timings are whole clock cycles.
// Sources: JESD235 (HBM2), JESD79-4 (DDR4), JESD79-5 (DDR5) for the names and the commands' cycles on the bus; each
// record
//   names the source of its numbers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn::dram {

using Cycle = std::int64_t;

enum class Scheduler {
  shared_queue,  ///< one read queue a channel, oldest ready command first; opened rows wait for their read
  bank_queues,   ///< a transaction queue feeding a short queue a bank, served round robin
};

/// Supply in V and currents in mA of one chip; 0 = no energy is known.
struct DramCurrents {
  double vdd = 0;
  double idd0 = 0;   ///< activate - precharge cycling
  double idd2n = 0;  ///< precharged standby
  double idd3n = 0;  ///< active standby
  double idd4r = 0;  ///< reading
  double idd5 = 0;   ///< refreshing
  double chips = 1;  ///< on the bus of one pseudo-channel; the currents are one chip's
};

struct DramRecord {
  std::string name, text, source;
  double tck_ns = 1;
  int cl = 0, rcd = 0, rp = 0, ras = 0, rc = 0, burst = 0;  ///< cycles
  int ccd_s = 0, ccd_l = 0, rrd_s = 0, rrd_l = 0, faw = 0, rfc = 0, refi = 0;
  int rtp = 0;                          ///< read to precharge
  int ppd = 0;                          ///< precharge to precharge, DDR5
  int act_cycles = 1, read_cycles = 1;  ///< command bus cycles of ACT and RD
  bool split_bus = false;               ///< row and column commands have a bus each (HBM)
  int bank_groups = 1, banks = 1;       ///< banks of one group
  int page_bytes = 0;
  int transaction_bytes = 64;  ///< of one burst
  int channels = 1;            ///< with a queue of their own
  int pseudo_channels = 1;     ///< in a channel, sharing its queue and command bus
  std::int64_t capacity = 0;   ///< bytes, all channels
  int interleave_bytes = 0;    ///< consecutive bytes of one channel; 0 with one channel or a mapping with "ch"
  std::string mapping;         ///< "page_contiguous", "bankgroup_interleaved_xor" or e.g. "ro-ra-bg-ba-ch-co"
  Scheduler scheduler = Scheduler::shared_queue;
  int queue = 32;      ///< transactions a channel
  int bank_queue = 0;  ///< transactions a bank, bank_queues only
  DramCurrents idd;

  [[nodiscard]] int groups() const { return pseudo_channels * bank_groups; }
  [[nodiscard]] int all_banks() const { return groups() * banks; }  ///< of a channel
  /// Bytes a second of everything.
  [[nodiscard]] double peak() const { return 1e9 * transaction_bytes / (burst * tck_ns) * pseudo_channels * channels; }
  [[nodiscard]] double row_hit_ns() const { return (cl + burst) * tck_ns; }
  [[nodiscard]] double refresh_cap() const { return 1 - static_cast<double>(rfc) / refi; }
  /// Most of the peak that reads of one transaction a row can reach.
  [[nodiscard]] double activate_cap() const { return 4.0 * burst / faw; }
};

/// Energy in pJ of one command, and of one cycle of standby.
struct DramEnergy {
  double act = 0, read = 0, refresh = 0, active_cycle = 0, idle_cycle = 0;
};
DramEnergy energy_of(const DramRecord& record);

/// What the model cannot run: reported under `where`.
void check_record(const DramRecord& record, const SourceSpan& where, Diagnostics& problems);

/// Where a transaction lies.
struct Place {
  int channel = 0;
  int bank = 0;  ///< of the channel: (pseudo-channel * groups + group) * banks + bank
  std::int64_t row = 0;
};

/// From byte address to place; addresses wrap at the capacity.
class AddressMap {
 public:
  explicit AddressMap(const DramRecord& record);
  [[nodiscard]] Place place(std::int64_t address) const;
  /// Distance in bytes between two addresses that differ in the row number alone.
  [[nodiscard]] std::int64_t row_stride() const;
  /// The same for the bank group and for the bank.
  [[nodiscard]] std::int64_t group_stride() const;
  [[nodiscard]] std::int64_t bank_stride() const;

 private:
  enum class Field { channel, pseudo, rank, group, bank, row, column };
  struct Slice {
    Field field = Field::row;
    int shift = 0, bits = 0, into = 0;  ///< bits of the address from `shift`, placed from bit `into` of the field
  };
  [[nodiscard]] std::int64_t stride(Field field) const;
  std::vector<Slice> slices_;
  bool xored_ = false;
  int pseudo_bits_ = 0, group_bits_ = 0, bank_bits_ = 0, row_bits_ = 0, banks_ = 1, groups_ = 1;
};

}  // namespace sojourn::dram
