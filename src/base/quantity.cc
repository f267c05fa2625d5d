// Quantities: a number, a suffix, and one table of suffixes. Values are decimal digits times a power of ten until the
// very end, so that "31.8 pJ/B" is exactly 31800 fJ/B.
#include "base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace sojourn {
namespace {

using Wide = unsigned __int128;

/// One suffix: value in base units = number * multiplier * 10^power.
struct Suffix {
  const char* name;
  Unit unit;
  std::uint64_t multiplier;
  int power;
};

constexpr std::uint64_t kBinary[] = {1ULL << 10, 1ULL << 20, 1ULL << 30, 1ULL << 40, 1ULL << 50};

constexpr Suffix kSuffixes[] = {
    {"B", Unit::bytes, 1, 0},
    {"kB", Unit::bytes, 1, 3},
    {"MB", Unit::bytes, 1, 6},
    {"GB", Unit::bytes, 1, 9},
    {"TB", Unit::bytes, 1, 12},
    {"PB", Unit::bytes, 1, 15},
    {"KiB", Unit::bytes, kBinary[0], 0},
    {"MiB", Unit::bytes, kBinary[1], 0},
    {"GiB", Unit::bytes, kBinary[2], 0},
    {"TiB", Unit::bytes, kBinary[3], 0},
    {"PiB", Unit::bytes, kBinary[4], 0},
    {"B/s", Unit::bytes_per_second, 1, 0},
    {"kB/s", Unit::bytes_per_second, 1, 3},
    {"MB/s", Unit::bytes_per_second, 1, 6},
    {"GB/s", Unit::bytes_per_second, 1, 9},
    {"TB/s", Unit::bytes_per_second, 1, 12},
    {"PB/s", Unit::bytes_per_second, 1, 15},
    {"KiB/s", Unit::bytes_per_second, kBinary[0], 0},
    {"MiB/s", Unit::bytes_per_second, kBinary[1], 0},
    {"GiB/s", Unit::bytes_per_second, kBinary[2], 0},
    {"TiB/s", Unit::bytes_per_second, kBinary[3], 0},
    {"bit/s", Unit::bytes_per_second, 125, -3},
    {"kbit/s", Unit::bytes_per_second, 125, 0},
    {"Mbit/s", Unit::bytes_per_second, 125, 3},
    {"Gbit/s", Unit::bytes_per_second, 125, 6},
    {"Tbit/s", Unit::bytes_per_second, 125, 9},
    {"ps", Unit::picoseconds, 1, 0},
    {"ns", Unit::picoseconds, 1, 3},
    {"us", Unit::picoseconds, 1, 6},
    {"\u00b5s", Unit::picoseconds, 1, 6},
    {"ms", Unit::picoseconds, 1, 9},
    {"s", Unit::picoseconds, 1, 12},
    {"Hz", Unit::hertz, 1, 0},
    {"kHz", Unit::hertz, 1, 3},
    {"MHz", Unit::hertz, 1, 6},
    {"GHz", Unit::hertz, 1, 9},
    {"fJ", Unit::femtojoules, 1, 0},
    {"pJ", Unit::femtojoules, 1, 3},
    {"nJ", Unit::femtojoules, 1, 6},
    {"uJ", Unit::femtojoules, 1, 9},
    {"mJ", Unit::femtojoules, 1, 12},
    {"J", Unit::femtojoules, 1, 15},
    {"fJ/B", Unit::fj_per_byte, 1, 0},
    {"pJ/B", Unit::fj_per_byte, 1, 3},
    {"nJ/B", Unit::fj_per_byte, 1, 6},
    {"fJ/bit", Unit::fj_per_byte, 8, 0},
    {"pJ/bit", Unit::fj_per_byte, 8, 3},
    {"um", Unit::millimetres, 1, -3},
    {"mm", Unit::millimetres, 1, 0},
    {"cm", Unit::millimetres, 1, 1},
    {"m", Unit::millimetres, 1, 3},
    {"m/s", Unit::metres_per_second, 1, 0},
    {"km/s", Unit::metres_per_second, 1, 3},
    {"mm/ns", Unit::metres_per_second, 1, 6},
    {"mW", Unit::watts, 1, -3},
    {"W", Unit::watts, 1, 0},
    {"kW", Unit::watts, 1, 3},
    {"%", Unit::fraction, 1, -2},
};

/// A decimal number: digits * 10^power, exactly, unless `rounded`.
struct Decimal {
  bool negative = false;
  std::uint64_t digits = 0;
  int power = 0;
  bool rounded = false;  ///< more significant digits than fit
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view s) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  return s;
}

/// Reads a decimal number off the front of `s`; false when there is none.
bool read_decimal(std::string_view& s, Decimal& out) {
  std::size_t i = 0;
  if (i < s.size() && (s[i] == '-' || s[i] == '+')) out.negative = s[i++] == '-';
  bool any = false, point = false;
  int pending_zeros = 0;  // zeros that count only if another digit follows
  constexpr std::uint64_t kFull = (std::numeric_limits<std::uint64_t>::max() - 9) / 10;
  const auto push = [&](unsigned digit) {
    if (out.digits > kFull) {
      out.rounded = out.rounded || digit != 0;
      ++out.power;
    } else {
      out.digits = out.digits * 10 + digit;
    }
  };
  for (; i < s.size() && (is_digit(s[i]) || (s[i] == '.' && !point)); ++i) {
    if (s[i] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (s[i] == '0' && point) {
      ++pending_zeros;
      continue;
    }
    for (; point && pending_zeros > 0; --pending_zeros) {
      push(0);
      --out.power;
    }
    push(static_cast<unsigned>(s[i] - '0'));
    if (point) --out.power;
  }
  if (!any) return false;
  if (i + 1 < s.size() && (s[i] == 'e' || s[i] == 'E')) {
    std::size_t j = i + 1;
    bool minus = false;
    if (s[j] == '-' || s[j] == '+') minus = s[j++] == '-';
    if (j < s.size() && is_digit(s[j])) {
      int exponent = 0;
      for (; j < s.size() && is_digit(s[j]); ++j) exponent = std::min(exponent * 10 + (s[j] - '0'), 100000);
      out.power += minus ? -exponent : exponent;
      i = j;
    }
  }
  s.remove_prefix(i);
  return true;
}

std::string shorten(std::string_view text) {
  constexpr std::size_t kShown = 60;
  return text.size() <= kShown ? std::string(text) : std::string(text.substr(0, kShown)) + "...";
}

tl::unexpected<QuantityError> wrong(std::string_view text, const std::string& message, std::string remedy = {}) {
  return tl::unexpected<QuantityError>({shorten(text) + ": " + message, std::move(remedy)});
}

struct Scaled {
  Decimal number;
  std::uint64_t multiplier = 1;
};

/// Number and suffix of `text`, the suffix's power of ten already in the number.
tl::expected<Scaled, QuantityError> read_scaled(std::string_view text, Unit unit) {
  std::string_view rest = trim(text);
  if (rest.empty()) return wrong("\"\"", "empty", "expected " + expected_form(unit));
  Scaled out;
  if (!read_decimal(rest, out.number)) {
    std::string word(rest.substr(0, 4));
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!word.empty() && (word[0] == '-' || word[0] == '+')) word.erase(0, 1);
    if (word.rfind("nan", 0) == 0 || word.rfind("inf", 0) == 0)
      return wrong(text, "not a finite number", "expected " + expected_form(unit));
    return wrong(text, "not a number", "expected " + expected_form(unit));
  }
  rest = trim(rest);
  const Suffix* found = nullptr;
  const Suffix* other = nullptr;
  for (const Suffix& s : kSuffixes) {
    if (rest != s.name) continue;
    (s.unit == unit ? found : other) = &s;
  }
  if (rest.empty()) {
    if (needs_suffix(unit)) return wrong(text, "missing unit", "expected " + expected_form(unit));
  } else if (found != nullptr) {
    out.multiplier = found->multiplier;
    out.number.power += found->power;
  } else if (other != nullptr) {
    return wrong(text, "wrong unit", "expected " + expected_form(unit));
  } else {
    std::vector<std::string> names;
    for (const Suffix& s : kSuffixes)
      if (s.unit == unit) names.emplace_back(s.name);
    const std::string near = closest(std::string(rest), names);
    if (names.empty()) return wrong(text, "takes no unit", "expected " + expected_form(unit));
    return wrong(text, "unknown unit", near.empty() ? "expected " + expected_form(unit) : "did you mean " + near + "?");
  }
  if (out.number.negative && out.number.digits != 0 && unit != Unit::none)
    return wrong(text, "must not be negative", "expected " + expected_form(unit));
  return out;
}

enum class Exactness { exact, fraction, overflow };

/// digits * multiplier * 10^power as an integer below 2^63.
Exactness to_integer(const Scaled& s, std::uint64_t& out) {
  constexpr Wide kMost = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
  Wide value = static_cast<Wide>(s.number.digits) * s.multiplier;
  int power = s.number.power;
  if (value == 0) power = 0;
  for (; power < 0; ++power) {
    if (value % 10 != 0) return Exactness::fraction;
    value /= 10;
  }
  for (; power > 0; --power) {
    if (value > kMost) return Exactness::overflow;
    value *= 10;
  }
  if (value > kMost) return Exactness::overflow;
  out = static_cast<std::uint64_t>(value);
  return s.number.rounded ? Exactness::fraction : Exactness::exact;
}

struct Step {
  const char* name;
  double scale;
};

std::string with_prefix(double value, const std::vector<Step>& steps) {
  const double size = std::fabs(value);
  const Step* chosen = &steps.front();
  for (const Step& s : steps)
    if (size >= s.scale) chosen = &s;
  return fmt::format("{:.6g} {}", value / chosen->scale, chosen->name);
}

}  // namespace

bool needs_suffix(Unit unit) {
  switch (unit) {
    case Unit::none:
    case Unit::tokens:
    case Unit::cores:
    case Unit::windows:
    case Unit::fraction:
      return false;
    default:
      return true;
  }
}

std::string expected_form(Unit unit) {
  switch (unit) {
    case Unit::none:
      return "a number such as 4";
    case Unit::bytes:
      return "a size such as 64 MiB";
    case Unit::bytes_per_second:
      return "a bandwidth such as 256 GB/s";
    case Unit::picoseconds:
      return "a time such as 2 ns";
    case Unit::hertz:
      return "a frequency such as 1 GHz";
    case Unit::femtojoules:
      return "an energy such as 0.4 pJ";
    case Unit::fj_per_byte:
      return "an energy a byte such as 1.25 pJ/B";
    case Unit::millimetres:
      return "a length such as 10 mm";
    case Unit::metres_per_second:
      return "a speed such as 1.5e8 m/s";
    case Unit::watts:
      return "a power such as 150 W";
    case Unit::tokens:
      return "a number of tokens";
    case Unit::cores:
      return "a number of cores";
    case Unit::windows:
      return "a number of windows";
    case Unit::fraction:
      return "a fraction such as 0.8";
  }
  return "a number";
}

tl::expected<std::int64_t, QuantityError> parse_whole(std::string_view text, Unit unit) {
  const auto scaled = read_scaled(text, unit);
  if (!scaled) return tl::unexpected<QuantityError>(scaled.error());
  std::uint64_t value = 0;
  switch (to_integer(*scaled, value)) {
    case Exactness::exact:
      break;
    case Exactness::overflow:
      return wrong(text, "too large", "use a smaller value");
    case Exactness::fraction:
      return needs_suffix(unit) ? wrong(text, fmt::format("not a whole number of {}", unit_name(unit)),
                                        fmt::format("the smallest step is 1 {}", unit_name(unit)))
                                : wrong(text, "not a whole number", "write an integer such as 4");
  }
  const auto magnitude = static_cast<std::int64_t>(value);
  return scaled->number.negative ? -magnitude : magnitude;
}

tl::expected<double, QuantityError> parse_quantity(std::string_view text, Unit unit) {
  const auto scaled = read_scaled(text, unit);
  if (!scaled) return tl::unexpected<QuantityError>(scaled.error());
  double value = 0;
  std::uint64_t whole = 0;
  if (to_integer(*scaled, whole) == Exactness::exact) {
    value = static_cast<double>(whole);
  } else {
    // One correctly rounded conversion: the suffix is already in the digits and the power.
    const Wide digits = static_cast<Wide>(scaled->number.digits) * scaled->multiplier;
    const std::string plain = fmt::format("{}e{}", digits, scaled->number.power);
    const auto [end, problem] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
    if (problem == std::errc::result_out_of_range) {
      if (scaled->number.power > 0) return wrong(text, "too large", "use a smaller value");
      value = 0;
    }
  }
  if (!std::isfinite(value)) return wrong(text, "too large", "use a smaller value");
  return scaled->number.negative && value != 0 ? -value : value;
}

std::optional<QuantityError> check_range(double value, Unit unit, double min, double max) {
  if (value >= min && value <= max) return std::nullopt;
  constexpr double kUnbounded = 1e299;
  const auto shown = [&](double v) { return format_quantity(v, unit); };
  QuantityError out;
  if (value < min) {
    out.message = fmt::format("{}: less than the least allowed, {}", shown(value), shown(min));
  } else if (value > max) {
    out.message = fmt::format("{}: more than the most allowed, {}", shown(value), shown(max));
  } else {
    out.message = "not a finite number";
  }
  if (min > -kUnbounded && max < kUnbounded) {
    out.remedy = fmt::format("use a value from {} to {}", shown(min), shown(max));
  } else if (min > -kUnbounded) {
    out.remedy = fmt::format("use at least {}", shown(min));
  } else if (max < kUnbounded) {
    out.remedy = fmt::format("use at most {}", shown(max));
  }
  return out;
}

std::string format_bytes(Bytes bytes) {
  return with_prefix(static_cast<double>(bytes), {{"B", 1.0},
                                                  {"KiB", 1024.0},
                                                  {"MiB", 1048576.0},
                                                  {"GiB", 1073741824.0},
                                                  {"TiB", 1099511627776.0},
                                                  {"PiB", 1125899906842624.0}});
}

std::string format_time(Ps time) {
  return with_prefix(static_cast<double>(time), {{"ps", 1.0}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}});
}

std::string format_rate(double bytes_per_second) {
  return with_prefix(bytes_per_second,
                     {{"B/s", 1.0}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, {"PB/s", 1e15}});
}

std::string format_energy(Fj energy) {
  return with_prefix(static_cast<double>(energy),
                     {{"fJ", 1.0}, {"pJ", 1e3}, {"nJ", 1e6}, {"uJ", 1e9}, {"mJ", 1e12}, {"J", 1e15}});
}

std::string format_quantity(double value, Unit unit) {
  constexpr double kMostInteger = 9.2e18;
  const bool fits = std::fabs(value) < kMostInteger;
  switch (unit) {
    case Unit::bytes:
      return fits ? format_bytes(static_cast<Bytes>(value)) : fmt::format("{:.6g} B", value);
    case Unit::bytes_per_second:
      return format_rate(value);
    case Unit::picoseconds:
      return fits ? format_time(static_cast<Ps>(value)) : fmt::format("{:.6g} ps", value);
    case Unit::femtojoules:
      return fits ? format_energy(static_cast<Fj>(value)) : fmt::format("{:.6g} fJ", value);
    case Unit::fj_per_byte:
      return with_prefix(value, {{"fJ/B", 1.0}, {"pJ/B", 1e3}, {"nJ/B", 1e6}});
    case Unit::hertz:
      return with_prefix(value, {{"Hz", 1.0}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}});
    case Unit::none:
    case Unit::tokens:
    case Unit::cores:
    case Unit::windows:
    case Unit::fraction:
      return fits && value == std::floor(value) ? fmt::format("{}", static_cast<std::int64_t>(value))
                                                : fmt::format("{:.6g}", value);
    default:
      return fmt::format("{:.6g} {}", value, unit_name(unit));
  }
}

}  // namespace sojourn
