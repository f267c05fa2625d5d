// Seeded random streams and our own distributions: the same numbers with every compiler and standard library.
// Generator: xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64 from (seed, stream name, index), so that two
// streams never share a sequence and adding one stream moves no other.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace sojourn {

class Rng {
 public:
  Rng(std::uint64_t seed, std::string_view stream, std::uint64_t index = 0) {
    std::uint64_t h = 1469598103934665603ULL;  // FNV-1a of the stream name
    for (char ch : stream) h = (h ^ static_cast<unsigned char>(ch)) * 1099511628211ULL;
    std::uint64_t x = seed ^ h ^ (index * 0x9E3779B97F4A7C15ULL);
    for (std::uint64_t& word : state_) word = splitmix(x);
  }
  std::uint64_t next() {
    const std::uint64_t result = rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }
  /// Uniform in [0, n), n > 0; unbiased (Lemire's rejection).
  std::uint64_t below(std::uint64_t n) {
    unsigned __int128 m = static_cast<unsigned __int128>(next()) * n;
    if (static_cast<std::uint64_t>(m) < n) {
      const std::uint64_t threshold = (0 - n) % n;
      while (static_cast<std::uint64_t>(m) < threshold) m = static_cast<unsigned __int128>(next()) * n;
    }
    return static_cast<std::uint64_t>(m >> 64);
  }
  /// Uniform in [0, 1) with 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Standard normal (Marsaglia's polar method, one value a call).
  double normal() {
    for (;;) {
      const double u = 2 * uniform() - 1, v = 2 * uniform() - 1, s = u * u + v * v;
      if (s > 0 && s < 1) return u * std::sqrt(-2 * std::log(s) / s);
    }
  }
  /// Fisher-Yates.
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  static std::uint64_t rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  static std::uint64_t splitmix(std::uint64_t& x) {
    std::uint64_t z = (x += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  std::uint64_t state_[4];
};

}  // namespace sojourn
