// The TOML reader: typed getters, positions, unknown keys, guards.
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "config/reader.h"

using namespace sojourn;

namespace {
ConfigFile parsed(const std::string& text) {
  auto file = ConfigFile::parse_text(text, "f.toml");
  if (!file) FAIL(file.error().diagnostics.text());
  return *file;
}
std::string refusal(const std::string& text) {
  const auto file = ConfigFile::parse_text(text, "f.toml");
  return file ? "accepted" : file.error().diagnostics.text();
}
bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("typed getters read what is there and default what is not") {
  const ConfigFile file = parsed(
      "name = \"x\"\nn = 3\nr = 0.5\non = true\nsize = \"64 MiB\"\nkind = \"b\"\nlist = [1, 2]\nlone = 7\n"
      "words = [\"a\", \"b\"]\nlists = [[0, 1], [2]]\n[sub]\nk = 1\n[[row]]\nk = 2\n[[row]]\nk = 3\n");
  Diagnostics problems;
  TableReader root = file.root(problems);
  CHECK(root.text("name") == "x");
  CHECK(root.text("other", "d") == "d");
  CHECK(root.integer("n", {1, 9}) == 3);
  CHECK(root.integer("m", 5, {1, 9}) == 5);
  CHECK(root.number("r", {}) == 0.5);
  CHECK(root.number("n", {}) == 3.0);
  CHECK(root.flag("on"));
  CHECK(!root.flag("off", false));
  CHECK(root.whole("size", Unit::bytes, {}) == 64 << 20);
  CHECK(root.quantity("lat", Unit::picoseconds, 7, {}) == 7);
  CHECK(root.choice("kind", {"a", "b"}) == "b");
  CHECK(root.integers("list", {}) == std::vector<std::int64_t>{1, 2});
  CHECK(root.integers("lone", {}) == std::vector<std::int64_t>{7});
  CHECK(root.numbers("list", {}) == std::vector<double>{1, 2});
  CHECK(root.texts("words") == std::vector<std::string>{"a", "b"});
  CHECK(root.integer_lists("lists", {}) == std::vector<std::vector<std::int64_t>>{{0, 1}, {2}});
  auto sub = root.sub("sub");
  REQUIRE(sub);
  CHECK(sub->integer("k", {}) == 1);
  sub->finish();
  auto rows = root.tables("row");
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].integer("k", {}) == 3);
  CHECK(rows[1].dotted("k") == "row[1].k");
  rows[0].integer("k", {});
  for (auto& row : rows) row.finish();
  root.finish();
  CHECK(problems.text() == "");
  CHECK(root.keys().front() == "name");
  CHECK(root.keys().back() == "row");
}

TEST_CASE("findings carry file, line, column, dotted key and remedy") {
  const ConfigFile file = parsed("name = 3\ncapp = 'x'\nn = 64\n\n[sub]\nlat = 12\nkind = 'mehs'\n");
  Diagnostics problems;
  TableReader root = file.root(problems);
  root.text("name");
  root.text("cap");
  root.integer("n", {1, 32});
  auto sub = root.sub("sub");
  sub->whole("lat", Unit::picoseconds, {});
  sub->choice("kind", {"mesh", "torus"});
  sub->finish();
  root.finish();
  const std::string text = in_file_order(problems).text();
  CHECK(text ==
        "f.toml:1:1: cap: missing; add it: a string in quotes\n"
        "f.toml:1:8: name: an integer where a string in quotes belongs; write a string in quotes\n"
        "f.toml:2:1: capp: unknown key; did you mean cap?\n"
        "f.toml:3:5: n: 64: more than the most allowed, 32; use a value from 1 to 32\n"
        "f.toml:6:7: sub.lat: missing unit; expected a time such as 2 ns, in quotes\n"
        "f.toml:7:8: sub.kind: unknown choice 'mehs'; did you mean mesh? choices: mesh, torus\n");
}

TEST_CASE("an unknown key with no near name lists the known ones") {
  const ConfigFile file = parsed("colour = 1\nwidth = 2\n");
  Diagnostics problems;
  TableReader root = file.root(problems);
  root.integer("width", {});
  root.integer("height", 1, {});
  root.finish();
  CHECK(problems.text() == "f.toml:1:1: colour: unknown key; known keys here: height, width\n");
}

TEST_CASE("wrong shapes are findings: a value for a table, a table for a list, words among numbers") {
  const ConfigFile file = parsed("sub = 3\nrow = 4\nlist = [1, 'two']\nlists = [1]\nxx = nan\n");
  Diagnostics problems;
  TableReader root = file.root(problems);
  CHECK(!root.sub("sub"));
  CHECK(root.tables("row").empty());
  CHECK(root.integers("list", {}).size() == 1);
  root.integer_lists("lists", {});
  root.number("xx", {});
  CHECK(problems.items().size() == 5);
  const std::string text = problems.text();
  CHECK(says(text, "f.toml:1:7: sub: an integer where a table [sub] belongs"));
  CHECK(says(text, "f.toml:3:12: list: a string where an integer without quotes belongs"));
  CHECK(says(text, "f.toml:5:6: xx: not a finite number"));
}

TEST_CASE("files that are not TOML are refused with a place and a remedy") {
  CHECK(says(refusal("a = 1\na = 2\n"), "f.toml:2:5: parsing key-value pair: cannot redefine existing integer 'a'"));
  CHECK(says(refusal("a = 1\na = 2\n"), "given only once"));
  CHECK(says(refusal("capacity = 64 MiB\n"), "f.toml:1:15"));
  CHECK(says(refusal("capacity = 64 MiB\n"), "need quotes"));
  CHECK(says(refusal("kind = mesh\n"), "need quotes"));
  CHECK(says(refusal("[m]\nc = 1\n[m]\nd = 2\n"), "f.toml:3:1"));
  CHECK(says(refusal("k = '\xff'\n"), "f.toml:1:6: not UTF-8"));
  CHECK(says(refusal("x = \"abc"), "f.toml:1:"));
  CHECK(says(refusal("[@]\n"), "f.toml:1:2"));
  CHECK(says(refusal("a = 1\nl\u00e4nge = 3\n"), "f.toml:2:2: a non-ASCII character outside quotes"));
  CHECK(refusal("\xEF\xBB\xBF\"l\u00e4nge\" = '\u00b5' # \u00b5\nb = \"\"\"\u00e9\"\"\"\"\"\nc = 1\n") == "accepted");
  CHECK(says(refusal("x = 99999999999999999999\n"), "f.toml:1:"));
}

TEST_CASE("deep nesting and absurd sizes are refused, not suffered") {
  std::string dotted = "a";
  for (int i = 0; i < 100000; ++i) dotted += ".a";
  CHECK(says(refusal(dotted + " = 1\n"), "nested too deeply"));
  CHECK(says(refusal("[" + dotted + "]\n"), "nested too deeply"));
  CHECK(says(refusal("a = " + std::string(100000, '[')), "nested too deeply"));
  CHECK(says(refusal("a = " + std::string(40, '[') + std::string(40, ']')), "flatten"));
  CHECK(says(refusal(std::string(ConfigFile::kMaxBytes + 1, '#')), "larger than 4 MiB"));
  CHECK(refusal("a = \"" + dotted + "\"\nb = 1 # " + dotted + "\nc = \"\"\"\n" + dotted + "\n\"\"\"\n") == "accepted");
  CHECK(refusal("") == "accepted");
}

TEST_CASE("files are read from disk, and missing ones are findings") {
  const std::string path = "config_test.tmp.toml";
  std::ofstream(path) << "n = 1\n";
  const auto file = ConfigFile::parse_file(path);
  REQUIRE(file);
  CHECK(file->text() == "n = 1\n");
  CHECK(file->name() == path);
  std::remove(path.c_str());
  const auto missing = ConfigFile::parse_file(path);
  REQUIRE(!missing);
  CHECK(missing.error().exit_code == 2);
  CHECK(missing.error().diagnostics.text() == path + ": cannot be opened; check the path and its permissions\n");
  CHECK(!ConfigFile::parse_file("."));
}

TEST_CASE("one declared parameter is read by its record") {
  const ConfigFile file = parsed("size = \"2 KiB\"\nratio = 0.25\nmode = \"exact\"\n");
  Diagnostics problems;
  TableReader root = file.root(problems);
  const std::vector<Param> records{{"size", Unit::bytes, std::int64_t{1}, 1, 1e9, {}, "a size"},
                                   {"ratio", Unit::fraction, 0.5, 0, 1, {}, "a share"},
                                   {"mode", Unit::none, std::string("fast"), 0, 0, {"fast", "exact"}, "a choice"},
                                   {"eager", Unit::none, true, 0, 1, {}, "a flag"}};
  const ParamSet set = root.params(records);
  CHECK(set.integer("size") == 2048);
  CHECK(set.number("ratio") == 0.25);
  CHECK(set.word("mode") == "exact");
  CHECK(set.flag("eager"));
  root.finish();
  CHECK(problems.empty());
}
