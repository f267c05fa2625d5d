// NumPy's .npy header (format 1.0 to 3.0, documented in numpy.lib.format) and typed reading of its elements.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/file.h"

namespace sojourn {

struct NpyHeader {
  char kind = 0;  ///< 'u', 'i', 'f', 'b', 'S', 'U'
  int item = 0;   ///< bytes an element
  bool big_endian = false;
  bool fortran = false;
  std::vector<std::uint64_t> shape;
  std::uint64_t data = 0;  ///< offset of the elements
  std::uint64_t elements = 0;
  [[nodiscard]] std::uint64_t bytes() const { return elements * static_cast<std::uint64_t>(item); }
  [[nodiscard]] std::string text() const;  ///< "<u2 [4, 100, 2]"
};

inline constexpr std::uint64_t kNpyHeaderMax = 1 << 16;

[[nodiscard]] bool looks_like_npy(std::string_view head);
/// Parses the header from the first bytes (at least kNpyHeaderMax of them, or all); `total` = bytes of header and data,
/// checked against the shape, whose product must not overflow.
[[nodiscard]] Result<NpyHeader> parse_npy(std::string_view head, std::uint64_t total, const std::string& path,
                                          const std::string& key);
/// A version 1.0 header for little-endian C order, padded to a multiple of 64 bytes.
[[nodiscard]] std::string npy_header(const std::string& descr, const std::vector<std::uint64_t>& shape);
/// Element `i` of an integer, bool or float array as double / as integer (floats are truncated).
[[nodiscard]] double npy_number(const NpyHeader& h, std::string_view data, std::uint64_t i);
[[nodiscard]] std::int64_t npy_integer(const NpyHeader& h, std::string_view data, std::uint64_t i);

}  // namespace sojourn
