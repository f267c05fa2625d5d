// The random numbers of popnet runs: the additive feedback generator of the C library, so that a seed gives the same
// choices in both.
//
//   x(n) = x(n-3) + x(n-31) mod 2^32; a draw is x(n) / 2, and picks floor(m * draw / (2^31 - 1)) out of m
//
// Assumption: a run starts with x(0..30) from 16807 * x mod (2^31 - 1) and throws 310 numbers away, as glibc's
// random(). Numbers that only fill payloads are stepped over; long steps go by powers of z modulo z^31 - z^28 - 1.
// Source: Knuth, The Art of Computer Programming, vol. 2, 3.2.2; srandom(3).
#pragma once
#include <array>
#include <cstdint>

namespace sojourn::popnet {

class Draws {
 public:
  explicit Draws(std::uint32_t seed);
  /// 0 to 2^31 - 1.
  std::uint32_t next();
  /// One of 0 to n - 1.
  int below(int n) {
    const double unit = static_cast<double>(next()) * 1.0 / 2147483647.0;
    const int v = static_cast<int>(static_cast<double>(n) * unit);
    return v < n ? v : n - 1;
  }
  void skip(std::uint64_t count);

 private:
  std::array<std::uint32_t, 31> x_{};  ///< ring: x_[at_] is the oldest
  std::size_t at_ = 3;                 // the first three words count as newer than the rest
};

}  // namespace sojourn::popnet
