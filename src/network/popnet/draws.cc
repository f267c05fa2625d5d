// Seeding, stepping and jumping of the generator.
//
//   x(n + j) = sum over i of c_i x(j + i), where z^n = sum of c_i z^i modulo z^31 - z^28 - 1
//
// Assumption: none beyond draws.h. Source: as there; jumping: Haramoto et al., "Efficient jump ahead", 2008.
#include "network/popnet/draws.h"

namespace sojourn::popnet {
namespace {

using Polynomial = std::array<std::uint32_t, 31>;

Polynomial times(const Polynomial& a, const Polynomial& b) {
  std::array<std::uint32_t, 61> wide{};
  for (std::size_t i = 0; i < 31; ++i)
    for (std::size_t j = 0; j < 31; ++j) wide[i + j] += a[i] * b[j];
  for (std::size_t d = 60; d >= 31; --d) {  // z^31 = z^28 + 1
    wide[d - 3] += wide[d];
    wide[d - 31] += wide[d];
  }
  Polynomial out;
  for (std::size_t i = 0; i < 31; ++i) out[i] = wide[i];
  return out;
}

}  // namespace

Draws::Draws(std::uint32_t seed) {
  auto word = static_cast<std::int32_t>(seed == 0 ? 1 : seed);
  for (std::uint32_t& x : x_) {
    x = static_cast<std::uint32_t>(word);
    // 16807 * word mod (2^31 - 1); a negative seed keeps its sign through the division, then wraps.
    std::int64_t product =
        16807 * static_cast<std::int64_t>(word % 127773) - 2836 * static_cast<std::int64_t>(word / 127773);
    if (product < 0) product += 2147483647;
    word = static_cast<std::int32_t>(product);
  }
  for (int i = 0; i < 310; ++i) next();
}

std::uint32_t Draws::next() {
  // x(n-31) is the oldest; x(n-3) lies 28 places after it.
  std::uint32_t& oldest = x_[at_];
  oldest += x_[at_ < 3 ? at_ + 28 : at_ - 3];
  at_ = at_ == 30 ? 0 : at_ + 1;
  return oldest >> 1;
}

void Draws::skip(std::uint64_t count) {
  constexpr std::uint64_t kWorthIt = 1 << 16;
  if (count < kWorthIt) {
    for (; count > 0; --count) next();
    return;
  }
  Polynomial power{}, factor{};
  power[0] = 1;
  factor[1] = 1;
  for (; count > 0; count >>= 1) {
    if ((count & 1) != 0) power = times(power, factor);
    factor = times(factor, factor);
  }
  std::array<std::uint32_t, 61> old{};
  for (std::size_t i = 0; i < 31; ++i) old[i] = x_[(at_ + i) % 31];
  for (std::size_t i = 31; i < 61; ++i) old[i] = old[i - 3] + old[i - 31];
  for (std::size_t j = 0; j < 31; ++j) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < 31; ++i) sum += power[i] * old[i + j];
    x_[j] = sum;
  }
  at_ = 0;
}

}  // namespace sojourn::popnet
