// Quantities, findings and parameter resolution.
#include "sojourn/params.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "base/quantity.h"

using namespace sojourn;

TEST_CASE("decimal quantities are exact whole base units") {
  const std::vector<std::tuple<const char*, Unit, std::int64_t>> cases{
      {"64 MiB", Unit::bytes, 64 * kMiB},
      {"8 GB", Unit::bytes, 8'000'000'000},
      {"0.5 KiB", Unit::bytes, 512},
      {"2.0 TB/s", Unit::bytes_per_second, 2'000'000'000'000},
      {"460 GB/s", Unit::bytes_per_second, 460'000'000'000},
      {"14.375 GB/s", Unit::bytes_per_second, 14'375'000'000},
      {"409.6GB/s", Unit::bytes_per_second, 409'600'000'000},
      {"400 Gbit/s", Unit::bytes_per_second, 50'000'000'000},
      {"1.25 pJ/B", Unit::fj_per_byte, 1250},
      {"31.8 pJ/B", Unit::fj_per_byte, 31800},
      {"0.5 pJ/bit", Unit::fj_per_byte, 4000},
      {"2 ns", Unit::picoseconds, 2000},
      {"1.5us", Unit::picoseconds, 1'500'000},
      {"0.4 pJ", Unit::femtojoules, 400},
      {"  7  ", Unit::none, 7},
      {"-7", Unit::none, -7},
      {"1e3", Unit::none, 1000},
      {"9223372036854775807 B", Unit::bytes, 9223372036854775807},
      {"9007199254740993 B", Unit::bytes, 9007199254740993},  // not a double
      {"1.000000000000000000000000000000 B", Unit::bytes, 1},
      {"0 PB", Unit::bytes, 0},
  };
  for (const auto& [text, unit, value] : cases) {
    CAPTURE(text);
    const auto parsed = parse_whole(text, unit);
    REQUIRE(parsed);
    CHECK(*parsed == value);
  }
}

TEST_CASE("real quantities are rounded once") {
  CHECK(*parse_quantity("1 GHz", Unit::hertz) == 1e9);
  CHECK(*parse_quantity("10 mm", Unit::millimetres) == 10);
  CHECK(*parse_quantity("150 W", Unit::watts) == 150);
  CHECK(*parse_quantity("1.5e8 m/s", Unit::metres_per_second) == 1.5e8);
  CHECK(*parse_quantity("0.8", Unit::fraction) == 0.8);
  CHECK(*parse_quantity("80%", Unit::fraction) == 0.8);
  CHECK(*parse_quantity("0.1 mW", Unit::watts) == 1e-4);
  CHECK(*parse_quantity("-0.25", Unit::none) == -0.25);
  CHECK(*parse_quantity("1e-400", Unit::none) == 0);
}

TEST_CASE("bad quantities say what is wrong and what belongs there") {
  const std::vector<std::tuple<const char*, Unit, const char*, const char*>> cases{
      {"8 GBs", Unit::bytes, "8 GBs: unknown unit", "did you mean GB?"},
      {"8 gb/s", Unit::bytes_per_second, "8 gb/s: unknown unit", "did you mean GB/s?"},
      {"64 KB", Unit::bytes, "64 KB: unknown unit", "did you mean kB?"},
      {"8 GB", Unit::bytes_per_second, "8 GB: wrong unit", "expected a bandwidth such as 256 GB/s"},
      {"8", Unit::bytes, "8: missing unit", "expected a size such as 64 MiB"},
      {"8 parsecs", Unit::millimetres, "8 parsecs: unknown unit", "expected a length such as 10 mm"},
      {"3 ns", Unit::none, "3 ns: wrong unit", "expected a number such as 4"},
      {"-1 ns", Unit::picoseconds, "-1 ns: must not be negative", "expected a time such as 2 ns"},
      {"nan s", Unit::picoseconds, "nan s: not a finite number", "expected a time such as 2 ns"},
      {"-inf", Unit::none, "-inf: not a finite number", "expected a number such as 4"},
      {"fast", Unit::hertz, "fast: not a number", "expected a frequency such as 1 GHz"},
      {"", Unit::watts, "\"\": empty", "expected a power such as 150 W"},
      {"1e400 B", Unit::bytes, "1e400 B: too large", "use a smaller value"},
      {"9223372036854775808 B", Unit::bytes, "9223372036854775808 B: too large", "use a smaller value"},
      {"0.5 B", Unit::bytes, "0.5 B: not a whole number of B", "the smallest step is 1 B"},
      {"1.5", Unit::none, "1.5: not a whole number", "write an integer such as 4"},
      {"0x10", Unit::none, "0x10: takes no unit", "expected a number such as 4"},
  };
  for (const auto& [text, unit, message, remedy] : cases) {
    CAPTURE(text);
    const auto parsed = parse_whole(text, unit);
    REQUIRE(!parsed);
    CHECK(parsed.error().message == message);
    CHECK(parsed.error().remedy == remedy);
  }
  CHECK(!parse_quantity("1e400", Unit::none));
}

TEST_CASE("any whole number of bytes survives being written and read") {
  rc::check([](std::int64_t n) {
    const std::int64_t value = n < 0 ? -(n + 1) : n;
    const auto parsed = parse_whole(std::to_string(value) + " B", Unit::bytes);
    RC_ASSERT(parsed.has_value());
    RC_ASSERT(*parsed == value);
  });
}

TEST_CASE("any text is a number or an error, never a crash") {
  rc::check([](const std::string& text) {
    for (const Unit unit : {Unit::none, Unit::bytes, Unit::picoseconds, Unit::fraction}) {
      const auto whole = parse_whole(text, unit);
      const auto real = parse_quantity(text, unit);
      if (whole) RC_ASSERT(real.has_value());
      if (!whole) RC_ASSERT(!whole.error().message.empty());
    }
  });
}

TEST_CASE("quantities are written for people") {
  CHECK(format_bytes(64 * kMiB) == "64 MiB");
  CHECK(format_bytes(1000) == "1000 B");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_time(1250000) == "1.25 us");
  CHECK(format_time(-3000) == "-3 ns");
  CHECK(format_rate(2e12) == "2 TB/s");
  CHECK(format_energy(3'200'000'000) == "3.2 uJ");
  CHECK(format_quantity(0.5, Unit::fraction) == "0.5");
  CHECK(format_quantity(16, Unit::cores) == "16");
}

TEST_CASE("a finding is one line: place, key, message, remedy") {
  const Diagnostic d{{"a.toml", 12, 8}, "memory.capacity", "8 GBs: unknown unit", "did you mean GB?"};
  CHECK(d.text() == "a.toml:12:8: memory.capacity: 8 GBs: unknown unit; did you mean GB?");
  CHECK(Diagnostic{{}, "", "wrong", ""}.text() == "wrong");
  CHECK(Diagnostic{{"a", 3, 0}, "", "wrong", "", Severity::warning}.text() == "a:3: warning: wrong");
}

TEST_CASE("did-you-mean finds slips and nothing far-fetched") {
  const std::vector<std::string> words{"mesh", "torus", "tree", "custom"};
  CHECK(closest("mehs", words) == "mesh");
  CHECK(closest("Torus", words) == "torus");
  CHECK(closest("tre", words) == "tree");
  CHECK(closest("banana", words).empty());
  CHECK(closest("", words).empty());
  CHECK(closest("x", words).empty());
  CHECK(closest(std::string(100000, 'm'), words).empty());
}

namespace {
std::vector<Param> sample() {
  return {{"alpha", Unit::none, 0.5, 0, 1, {}, "a weight"},
          {"window", Unit::windows, std::int64_t{8}, 1, 100, {}, "a count"},
          {"budget", Unit::bytes, std::int64_t{kMiB}, 1, 1e12, {}, "a size"},
          {"eager", Unit::none, true, 0, 1, {}, "a flag"},
          {"mode", Unit::none, std::string("fast"), 0, 0, {"fast", "exact"}, "a choice"}};
}
}  // namespace

TEST_CASE("resolve fills in defaults and reads every type") {
  const auto defaults = resolve(sample(), {}, {}, "p");
  REQUIRE(defaults);
  CHECK(defaults->number("alpha") == 0.5);
  CHECK(defaults->integer("window") == 8);
  CHECK(defaults->number("window") == 8);
  CHECK(defaults->flag("eager"));
  CHECK(defaults->word("mode") == "fast");
  const auto given =
      resolve(sample(), {{"alpha", "0.9"}, {"window", "3"}, {"budget", "2 GiB"}, {"eager", "false"}, {"mode", "exact"}},
              {}, "p");
  REQUIRE(given);
  CHECK(given->number("alpha") == 0.9);
  CHECK(given->integer("budget") == 2 * kGiB);
  CHECK(!given->flag("eager"));
  CHECK(given->word("mode") == "exact");
}

TEST_CASE("resolve reports every wrong parameter in one pass") {
  const auto bad =
      resolve(sample(),
              {{"alhpa", "1"}, {"alpha", "2"}, {"window", "1.5"}, {"budget", "3"}, {"eager", "yes"}, {"mode", "fats"}},
              {"<command line>", 0, 0}, "p");
  REQUIRE(!bad);
  const std::string text = bad.error().diagnostics.text();
  CAPTURE(text);
  CHECK(bad.error().diagnostics.items().size() == 6);
  CHECK(text.find("<command line>: p.alhpa: unknown parameter; did you mean alpha?") != std::string::npos);
  CHECK(text.find("p.alpha: 2: more than the most allowed, 1; use a value from 0 to 1") != std::string::npos);
  CHECK(text.find("p.window: 1.5: not a whole number") != std::string::npos);
  CHECK(text.find("p.budget: 3: missing unit") != std::string::npos);
  CHECK(text.find("p.eager: yes: not a flag; write true or false") != std::string::npos);
  CHECK(text.find("p.mode: unknown choice 'fats'; did you mean fast? choices: fast, exact") != std::string::npos);
}

TEST_CASE("a required parameter must be given") {
  std::vector<Param> params = sample();
  params[1].required = true;
  const auto bad = resolve(params, {}, {}, "p");
  REQUIRE(!bad);
  CHECK(bad.error().diagnostics.text().find("p.window: missing") != std::string::npos);
  CHECK(resolve(params, {{"window", "2"}}, {}, "p"));
}
