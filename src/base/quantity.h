// Text with units ("64 MiB", "2.0 TB/s", "1.25 pJ/B") to base-unit numbers and back. Decimal input is exact: a value
// asked for as a whole number of base units (bytes, ps, B/s, fJ) is never rounded through a double.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "sojourn/params.h"
#include "sojourn/units.h"

namespace sojourn {

struct QuantityError {
  std::string message;  ///< "8 GBs: unknown unit"
  std::string remedy;   ///< "did you mean GB?"; may be empty
};

/// `text` in the base unit of `unit` (see Unit). Units of plain numbers (none, tokens, cores, windows, fraction) take
/// no suffix, except that a fraction may be written "80%". Only Unit::none may be negative. Errors: not a number,
/// missing or unknown unit, unit of another dimension, negative, NaN or infinite, overflow.
[[nodiscard]] tl::expected<double, QuantityError> parse_quantity(std::string_view text, Unit unit);

/// As parse_quantity, but a whole number of base units, exactly. Further error: not whole ("0.5 B").
[[nodiscard]] tl::expected<std::int64_t, QuantityError> parse_whole(std::string_view text, Unit unit);

/// Nothing when min <= value <= max; otherwise what is wrong and the allowed range, in people's units.
[[nodiscard]] std::optional<QuantityError> check_range(double value, Unit unit, double min, double max);

/// True for units whose text must carry a suffix.
[[nodiscard]] bool needs_suffix(Unit unit);
/// "a size such as 64 MiB": for error messages.
[[nodiscard]] std::string expected_form(Unit unit);
/// A base-unit value for people: bytes as KiB/MiB/GiB when whole, times as ps..s, rates as MB/s..TB/s; six significant
/// digits at most. Parses back with parse_quantity.
[[nodiscard]] std::string format_quantity(double value, Unit unit);

[[nodiscard]] std::string format_bytes(Bytes bytes);             ///< "64 MiB"; at most 6 significant digits
[[nodiscard]] std::string format_time(Ps time);                  ///< "1.25 us"
[[nodiscard]] std::string format_rate(double bytes_per_second);  ///< "2 TB/s" (decimal prefixes)
[[nodiscard]] std::string format_energy(Fj energy);              ///< "3.2 uJ"

}  // namespace sojourn
