// Checks of a DRAM record, its energies, and the address mappings.
//
// Equations: as in dram.h. A mapping cuts the address into fields; bankgroup_interleaved_xor replaces pseudo-channel,
//   group, bank and row by their exclusive or with consecutive bits of the column, which is invertible.
// Assumptions: every field is a power of two wide.
// Source: the layouts are those the reference data names; permutation-based interleaving is Zhang et al., MICRO 2000.
#include "memory/dram.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace sojourn::dram {
namespace {

int log2_of(std::int64_t v) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(v))) - 1; }
bool power_of_two(std::int64_t v) { return v > 0 && std::has_single_bit(static_cast<std::uint64_t>(v)); }

}  // namespace

DramEnergy energy_of(const DramRecord& r) {
  const DramCurrents& i = r.idd;
  const double v = i.vdd * i.chips * r.tck_ns;  // mA * V * ns = pJ
  DramEnergy e;
  e.act = v * (i.idd0 * r.rc - i.idd3n * r.ras - i.idd2n * r.rp);
  e.read = v * (i.idd4r - i.idd3n) * r.burst;
  e.refresh = v * (i.idd5 - i.idd3n) * r.rfc;
  e.active_cycle = v * i.idd3n;
  e.idle_cycle = v * i.idd2n;
  return e;
}

void check_record(const DramRecord& r, const SourceSpan& where, Diagnostics& problems) {
  const auto wrong = [&](const char* key, const std::string& what, const std::string& remedy) {
    problems.error(where, key, what, remedy);
  };
  const std::pair<const char*, std::int64_t> powers[] = {
      {"bank_groups", r.bank_groups}, {"banks", r.banks},
      {"page_bytes", r.page_bytes},   {"transaction_bytes", r.transaction_bytes},
      {"channels", r.channels},       {"pseudo_channels", r.pseudo_channels}};
  for (const auto& [key, value] : powers)
    if (!power_of_two(value)) wrong(key, fmt::format("{}: must be a power of two", value), "give 1, 2, 4, ...");
  if (r.all_banks() > 128) wrong("banks", "more than 128 banks a channel", "split the channel");
  if (r.page_bytes < 4 * r.transaction_bytes) wrong("page_bytes", "less than four transactions", "give a larger page");
  if (r.transaction_bytes > 64) wrong("transaction_bytes", "more than the 64 bytes of a request", "give 32 or 64");
  if (r.refi <= r.rfc + r.rp + r.ras) wrong("REFI", "no time left between refreshes", "give REFI above RFC + RAS + RP");
  if (r.scheduler == Scheduler::bank_queues && r.bank_queue < 1)
    wrong("bank_queue", "a scheduler with bank queues needs their depth", "give e.g. 8");
  if (r.capacity < static_cast<std::int64_t>(r.channels) * r.all_banks() * r.page_bytes * 2 ||
      !power_of_two(r.capacity))
    wrong("capacity", "must be a power of two and hold at least two rows", "give all channels' bytes");
  if (r.mapping != "page_contiguous" && r.mapping != "bankgroup_interleaved_xor") {
    std::string rest = r.mapping + "-";
    for (const char* field : {"ro-", "ra-", "bg-", "ba-", "ch-", "co-"})
      if (const auto at = rest.find(field); at != std::string::npos) rest.erase(at, 3);
    if (!rest.empty())
      wrong("mapping", fmt::format("'{}': unknown mapping", r.mapping),
            "known: page_contiguous, bankgroup_interleaved_xor, or ro ra bg ba ch co in any order joined by '-'");
  } else if (r.channels > 1 &&
             (!power_of_two(r.interleave_bytes) || r.interleave_bytes < 64 || r.interleave_bytes > r.page_bytes)) {
    wrong("interleave_bytes", fmt::format("{}: must be a power of two from 64 to a page", r.interleave_bytes),
          "give e.g. 256");
  }
}

AddressMap::AddressMap(const DramRecord& r) : banks_(r.banks), groups_(r.bank_groups) {
  const int channel_bits = log2_of(r.channels), column_bits = log2_of(r.page_bytes / r.transaction_bytes);
  const int offset = log2_of(r.transaction_bytes);
  pseudo_bits_ = log2_of(r.pseudo_channels);
  group_bits_ = log2_of(r.bank_groups);
  bank_bits_ = log2_of(r.banks);
  row_bits_ = log2_of(r.capacity) - offset - channel_bits - pseudo_bits_ - group_bits_ - bank_bits_ - column_bits;
  xored_ = r.mapping == "bankgroup_interleaved_xor";
  std::vector<Slice> order;  // least significant first
  if (r.mapping == "page_contiguous") {
    order = {{Field::column, 0, column_bits, 0}};
  } else if (xored_) {
    order = {{Field::column, 0, 2, 0}};
  } else {
    for (std::size_t at = r.mapping.size() + 1; at >= 3; at -= 3) {
      const std::string f = r.mapping.substr(at - 3, 2);
      if (f == "ro") order.push_back({Field::row, 0, row_bits_, 0});
      if (f == "ra") order.push_back({Field::rank, 0, 0, 0});
      if (f == "bg") order.push_back({Field::group, 0, group_bits_, 0});
      if (f == "ba") order.push_back({Field::bank, 0, bank_bits_, 0});
      if (f == "ch") order.push_back({Field::channel, 0, channel_bits, 0});
      if (f == "co") order.push_back({Field::column, 0, column_bits, 0});
    }
  }
  const bool split_channel = r.mapping == "page_contiguous" || xored_;
  if (split_channel) {
    order.push_back({Field::pseudo, 0, pseudo_bits_, 0});
    order.push_back({Field::group, 0, group_bits_, 0});
    order.push_back({Field::bank, 0, bank_bits_, 0});
    if (xored_) order.push_back({Field::column, 0, column_bits - 2, 2});
    order.push_back({Field::row, 0, row_bits_, 0});
  }
  // Bits of the channel number lie at the interleave, the others around them.
  const int gap = split_channel && channel_bits > 0 ? log2_of(r.interleave_bytes) : 64;
  int at = offset;
  if (gap < 64) slices_.push_back({Field::channel, gap, channel_bits, 0});
  for (Slice s : order) {
    int left = s.bits;
    while (left > 0) {
      if (at == gap) at += channel_bits;
      const int take = at < gap ? std::min(left, gap - at) : left;
      slices_.push_back({s.field, at, take, s.into});
      at += take;
      s.into += take;
      left -= take;
    }
  }
}

Place AddressMap::place(std::int64_t address) const {
  std::int64_t value[7] = {};
  for (const Slice& s : slices_)
    value[static_cast<int>(s.field)] |= ((address >> s.shift) & ((std::int64_t{1} << s.bits) - 1)) << s.into;
  const auto field = [&](Field f) -> std::int64_t& { return value[static_cast<int>(f)]; };
  if (xored_) {
    std::int64_t column = field(Field::column);
    const auto mix = [&](Field f, int bits) {
      field(f) ^= column & ((std::int64_t{1} << bits) - 1);
      column >>= bits;
    };
    mix(Field::pseudo, pseudo_bits_);
    mix(Field::group, group_bits_);
    mix(Field::bank, bank_bits_);
    mix(Field::row, row_bits_);
  }
  Place p;
  p.channel = static_cast<int>(field(Field::channel));
  p.bank = static_cast<int>((field(Field::pseudo) * groups_ + field(Field::group)) * banks_ + field(Field::bank));
  p.row = field(Field::row);
  return p;
}

std::int64_t AddressMap::stride(Field field) const {
  for (const Slice& s : slices_)
    if (s.field == field && s.into == 0 && s.bits > 0) return std::int64_t{1} << s.shift;
  return 0;
}
std::int64_t AddressMap::row_stride() const { return stride(Field::row); }
std::int64_t AddressMap::group_stride() const { return stride(Field::group); }
std::int64_t AddressMap::bank_stride() const { return stride(Field::bank); }

}  // namespace sojourn::dram
