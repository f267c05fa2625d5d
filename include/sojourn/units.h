// Physical quantities as integers: time in picoseconds, energy in femtojoules, sizes in bytes.
// Integers make sums exact and independent of order, which is what makes results reproducible bit for bit.
#pragma once
#include <cstdint>

namespace sojourn {

using Ps = std::int64_t;     ///< time, picoseconds
using Fj = std::int64_t;     ///< energy, femtojoules (1 pJ = 1000 fJ)
using Bytes = std::int64_t;  ///< size, bytes
using Macs = std::int64_t;   ///< multiply-accumulate operations (a FLOP is half of one)

inline constexpr Ps kPsPerNs = 1'000;
inline constexpr Ps kPsPerUs = 1'000'000;
inline constexpr Ps kPsPerMs = 1'000'000'000;
inline constexpr Ps kPsPerS = 1'000'000'000'000;

inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr Bytes kGiB = 1024 * kMiB;

inline constexpr double ps_to_s(Ps t) { return static_cast<double>(t) * 1e-12; }
inline constexpr double fj_to_pj(Fj e) { return static_cast<double>(e) * 1e-3; }

/// A rate kept as a 40-bit fixed-point "picoseconds per unit", so that serialisation times need one multiply and are
/// the same with every compiler. `time(n)` is n / rate rounded to the nearest picosecond (error of the fixed-point
/// form: relative 2^-41 of a picosecond over the time of one unit: 2e-12 at 4 TMAC/s, 1e-15 at 256 GB/s... ).
class Rate {
 public:
  Rate() = default;
  /// per_second: units (bytes, MACs) a second; must be > 0.
  explicit Rate(std::uint64_t per_second) : per_second_(per_second) {
    const unsigned __int128 scaled = (static_cast<unsigned __int128>(kPsPerS) << 40) + per_second / 2;
    ps_per_unit_fp_ = static_cast<unsigned __int128>(scaled / per_second);
  }
  [[nodiscard]] Ps time(std::int64_t units) const {
    const unsigned __int128 product = static_cast<unsigned __int128>(units) * ps_per_unit_fp_;
    return static_cast<Ps>((product + (static_cast<unsigned __int128>(1) << 39)) >> 40);
  }
  [[nodiscard]] std::uint64_t per_second() const { return per_second_; }

 private:
  std::uint64_t per_second_ = 0;
  unsigned __int128 ps_per_unit_fp_ = 0;
};

}  // namespace sojourn
