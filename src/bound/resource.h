// What can set a layer's lower bound; see bound.h.
#pragma once
#include <array>
#include <cstdint>

namespace sojourn {

enum class BoundResource : std::uint8_t {
  compute,
  sram_bandwidth,
  hbm_bandwidth,
  dram_bandwidth,
  sram_capacity,
  hbm_capacity,
  dram_capacity,
  links,
  critical_group
};
inline constexpr std::array<const char*, 9> kBoundResourceNames = {
    "compute",      "sram bandwidth", "hbm bandwidth", "dram bandwidth", "sram capacity",
    "hbm capacity", "dram capacity",  "links",         "critical group"};

}  // namespace sojourn
