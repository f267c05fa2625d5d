// What the standards fix for a family of DRAM, so that a record need not give it.
#pragma once
#include <optional>
#include <string_view>

#include "memory/dram.h"

namespace sojourn::dram {

enum class Family { hbm2, ddr4, ddr5 };

/// The family named in a text such as "one HBM2 channel"; nothing when there is none.
std::optional<Family> family_in(std::string_view text);
/// Fills command bus cycles, RTP, PPD and currents of a record whose timings and geometry are set.
void apply_family(DramRecord& record, Family family);

}  // namespace sojourn::dram
