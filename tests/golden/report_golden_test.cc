// The text report of a made-up comparison, letter by letter. SOJOURN_UPDATE_GOLDEN=1 rewrites the expected files.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "report/table.h"
#include "report_sample.h"

using namespace sojourn;

namespace {
void check_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(SOJOURN_SOURCE_DIR) + "/tests/golden/" + name;
  if (std::getenv("SOJOURN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ostringstream expected;
  expected << std::ifstream(path).rdbuf();
  CHECK(expected.str() == text);
}
}  // namespace

TEST_CASE("the terminal report of a comparison is as pinned") {
  const auto paper = load_paper_numbers("hcrmap", {SOJOURN_SOURCE_DIR});
  REQUIRE(paper);
  check_golden("compare_tables.txt", compare_tables(testing::sample_comparison(), {}, &*paper));
}

TEST_CASE("a single finished run needs no winner, no summary and no manifest") {
  CompareResult one = testing::sample_comparison({"dbrx"});
  one.runs.resize(1);
  one.summary.clear();
  one.manifest_json.clear();
  one.interrupted = true;
  check_golden("compare_tables_one.txt", compare_tables(one));
}
