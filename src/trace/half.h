// IEEE binary16 bit patterns, as NumPy's float16 stores them.
#pragma once
#include <bit>
#include <cstdint>

namespace sojourn {

/// Nearest, ties to even; overflow becomes infinity.
[[nodiscard]] inline std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t mag = bits & 0x7FFFFFFF;
  if (mag > 0x7F800000) return static_cast<std::uint16_t>(sign | 0x7E00);   // NaN
  if (mag >= 0x477FF000) return static_cast<std::uint16_t>(sign | 0x7C00);  // rounds above 65504
  std::uint32_t half, rest, point;
  if (mag >= 0x38800000) {  // normal
    half = (mag - 0x38000000) >> 13;
    rest = mag & 0x1FFF;
    point = 0x1000;
  } else {
    const int shift = 126 - static_cast<int>(mag >> 23);
    if (shift > 24) return sign;
    const std::uint32_t m = (mag & 0x7FFFFF) | 0x800000;
    half = m >> shift;
    rest = m & ((1U << shift) - 1);
    point = 1U << (shift - 1);
  }
  if (rest > point || (rest == point && (half & 1) != 0)) ++half;
  return static_cast<std::uint16_t>(sign | half);
}

[[nodiscard]] inline float from_half(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000) << 16;
  std::uint32_t exponent = (h >> 10) & 31, m = h & 0x3FF;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | (m << 13));
  if (exponent == 0) {
    const float value = static_cast<float>(m) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (m << 13));
}

}  // namespace sojourn
