// The FLAME-MoE importer on Parquet files that DuckDB itself writes; needs SOJOURN_DUCKDB to name libduckdb.so.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "trace/api.h"
#include "trace/half.h"

using namespace sojourn;

namespace {

/// Runs statements through DuckDB's C interface.
void run_sql(const char* library, const std::vector<std::string>& statements) {
  void* lib = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(lib != nullptr);
  const auto open = reinterpret_cast<int (*)(const char*, void**)>(::dlsym(lib, "duckdb_open"));
  const auto connect = reinterpret_cast<int (*)(void*, void**)>(::dlsym(lib, "duckdb_connect"));
  const auto query = reinterpret_cast<int (*)(void*, const char*, void*)>(::dlsym(lib, "duckdb_query"));
  const auto disconnect = reinterpret_cast<void (*)(void**)>(::dlsym(lib, "duckdb_disconnect"));
  const auto close = reinterpret_cast<void (*)(void**)>(::dlsym(lib, "duckdb_close"));
  void *database = nullptr, *connection = nullptr;
  REQUIRE(open(nullptr, &database) == 0);
  REQUIRE(connect(database, &connection) == 0);
  for (const std::string& s : statements) CHECK_MESSAGE(query(connection, s.c_str(), nullptr) == 0, s);
  disconnect(&connection);
  close(&database);
}

}  // namespace

TEST_CASE("FLAME-MoE Parquet is read through DuckDB") {
  const char* library = std::getenv("SOJOURN_DUCKDB");
  if (library == nullptr) {
    MESSAGE("skipped: SOJOURN_DUCKDB does not name libduckdb.so");
    return;
  }
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("sojourn 'flame' " + std::to_string(::getpid()));
  std::vector<std::string> sql;
  constexpr int kTokens = 5000;  // more than one of DuckDB's chunks of 2048
  for (int iteration : {2, 10})
    for (int layer : {1, 2}) {
      const auto folder = root / "actives" / ("iter_" + std::to_string(iteration));
      std::filesystem::create_directories(folder);
      std::string path = (folder / ("layer_0" + std::to_string(layer) + ".parquet")).string();
      for (std::size_t at = 0; (at = path.find('\'', at)) != std::string::npos; at += 2) path.insert(at, 1, '\'');
      sql.push_back("COPY (SELECT [(i % 59)::SMALLINT, (i % 59 + 1)::SMALLINT, (i % 59 + " + std::to_string(layer + 1) +
                    ")::SMALLINT] AS indices, [0.5::FLOAT, 0.25::FLOAT, 0.125::FLOAT] AS scores FROM range(" +
                    std::to_string(kTokens) + ") t(i)) TO '" + path + "' (FORMAT PARQUET)");
    }
  run_sql(library, sql);
  auto inputs = expand_inputs({root.string()});
  REQUIRE(inputs);
  Diagnostics warnings;
  auto out = import_inputs("auto", std::move(*inputs), {}, warnings);
  if (!out) FAIL(out.error().diagnostics.text());
  REQUIRE(out->trace);
  const TraceData& t = *out->trace;
  CHECK(t.meta.format == "flame-moe");
  CHECK(t.meta.layer_ids == std::vector<int>{1, 2});
  CHECK(t.meta.tokens == 2 * kTokens);
  CHECK(t.sequence_id.back() == 1);
  for (int i = 0; i < kTokens; ++i) CHECK_FALSE(t.ids[1][static_cast<std::size_t>(i) * 3 + 2] != i % 59 + 3);
  CHECK(from_half(t.weights[0][4]) == 0.25F);
  std::filesystem::remove_all(root);
}
