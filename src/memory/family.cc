// Command bus, read-to-precharge and currents by DRAM family.
//
// Equations: RTP in cycles = RTP in ns / tCK, to the nearest.
// Assumptions: HBM2 has a bus for row and one for column commands, its ACT takes two cycles; DDR5 takes two cycles for
// ACT
//   and RD; DDR4 one for all. RTP is 5 ns (HBM2) and 7.5 ns (DDR4, DDR5). Currents: HBM2 of one 128-bit channel, shared
//   by width; DDR4 of one 8 Gb x8 chip, eight a channel; none for DDR5, whose energy stays unknown.
// Sources: JESD235, JESD79-4, JESD79-5; currents are the IDD values that DRAMsim3's HBM2_8Gb_x128 and DDR4_8Gb_x8_3200
//   configurations state (their origin: vendors' data sheets).
#include "memory/family.h"

#include <cctype>
#include <cmath>
#include <string>

namespace sojourn::dram {

std::optional<Family> family_in(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower.find("hbm2") != std::string::npos) return Family::hbm2;
  if (lower.find("ddr5") != std::string::npos) return Family::ddr5;
  if (lower.find("ddr4") != std::string::npos) return Family::ddr4;
  return std::nullopt;
}

void apply_family(DramRecord& r, Family family) {
  const double rtp_ns = family == Family::hbm2 ? 5 : 7.5;
  r.rtp = static_cast<int>(std::lround(rtp_ns / r.tck_ns));
  if (family == Family::hbm2) {
    r.split_bus = true;
    r.act_cycles = 2;
    const double bits = 8.0 * r.transaction_bytes / (2 * r.burst);  // two beats a cycle
    r.idd = {1.2, 65, 40, 55, 390, 250, bits / 128};
  } else if (family == Family::ddr5) {
    r.act_cycles = r.read_cycles = 2;
    r.ppd = 2;
  } else {
    r.idd = {1.2, 57, 37, 52, 168, 250, 8};
  }
}

}  // namespace sojourn::dram
