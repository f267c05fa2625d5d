// FLAME-MoE-Traces: Parquet, actives/iter_N/layer_NN.parquet with `scores` list<float16>[6] (descending) and `indices`
// list<int16>[6]; 64 routed experts, top-6, shared experts not logged. Read through DuckDB's C interface, loaded at run
// time (there is no Parquet package to link): SOJOURN_DUCKDB names libduckdb.so. Assumption: an iteration is one
// sequence.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "trace/csv_reader.h"
#include "trace/formats.h"

namespace sojourn {
namespace {

// The parts of DuckDB's stable C interface used here (documented at duckdb.org/docs/api/c).
using Handle = void*;
struct DuckResult {
  std::uint64_t columns, rows, changed;
  void* column_data;
  char* message;
  void* internal;
};

class Duck {
 public:
  Duck() = default;
  Duck(const Duck&) = delete;
  Duck& operator=(const Duck&) = delete;
  ~Duck() {
    if (connection_ != nullptr) disconnect_(&connection_);
    if (database_ != nullptr) close_(&database_);
    // The library stays loaded: it leaves threads behind.
  }

  Status start(const SourceSpan& where) {
    const char* env = std::getenv("SOJOURN_DUCKDB");
    const std::string path = env != nullptr ? env : "libduckdb.so";
    void* lib = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (lib == nullptr) {
      const char* why = ::dlerror();
      return fail(where, "SOJOURN_DUCKDB",
                  fmt::format("Parquet needs libduckdb.so: {}", why != nullptr ? why : "cannot load it"),
                  "get it with `npm pack @duckdb/node-bindings-linux-x64`, unpack it, and set SOJOURN_DUCKDB to the "
                  "libduckdb.so inside",
                  3);
    }
    const auto symbol = [&](const char* name, auto& f) {
      f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(::dlsym(lib, name));
      return f != nullptr;
    };
    if (!symbol("duckdb_open", open_) || !symbol("duckdb_connect", connect_) || !symbol("duckdb_close", close_) ||
        !symbol("duckdb_disconnect", disconnect_) || !symbol("duckdb_query", query_) ||
        !symbol("duckdb_destroy_result", destroy_) || !symbol("duckdb_result_error", error_) ||
        !symbol("duckdb_fetch_chunk", fetch_) || !symbol("duckdb_data_chunk_get_size", size_) ||
        !symbol("duckdb_data_chunk_get_vector", vector_) || !symbol("duckdb_vector_get_data", data_) ||
        !symbol("duckdb_destroy_data_chunk", destroy_chunk_))
      return fail(where, "SOJOURN_DUCKDB", path + " is not DuckDB 0.9 or later",
                  "use the libduckdb.so of @duckdb/node-bindings-linux-x64", 3);
    if (open_(nullptr, &database_) != 0 || connect_(database_, &connection_) != 0)
      return fail(where, "", "DuckDB cannot start", "", 3);
    return {};
  }

  /// Runs a query whose columns are INTEGER then FLOAT; calls row(i, f).
  template <class F>
  Status rows(const std::string& sql, const SourceSpan& where, F&& row) {
    DuckResult result{};
    if (query_(connection_, sql.c_str(), &result) != 0) {
      const char* why = error_(&result);
      std::string text = why != nullptr ? why : "the query failed";
      destroy_(&result);
      return fail(where, "", "DuckDB: " + text.substr(0, 300),
                  "is it a FLAME-MoE Parquet file with `indices` and `scores`?");
    }
    Status status;
    while (Handle chunk = fetch_(result)) {
      const std::uint64_t n = size_(chunk);
      const auto* ints = static_cast<const std::int32_t*>(data_(vector_(chunk, 0)));
      const auto* floats = static_cast<const float*>(data_(vector_(chunk, 1)));
      for (std::uint64_t i = 0; i < n && status; ++i) status = row(ints[i], floats[i]);
      destroy_chunk_(&chunk);
      if (n == 0 || !status) break;
    }
    destroy_(&result);
    return status;
  }

 private:
  Handle database_ = nullptr, connection_ = nullptr;
  int (*open_)(const char*, Handle*) = nullptr;
  int (*connect_)(Handle, Handle*) = nullptr;
  void (*close_)(Handle*) = nullptr;
  void (*disconnect_)(Handle*) = nullptr;
  int (*query_)(Handle, const char*, DuckResult*) = nullptr;
  void (*destroy_)(DuckResult*) = nullptr;
  const char* (*error_)(DuckResult*) = nullptr;
  Handle (*fetch_)(DuckResult) = nullptr;
  std::uint64_t (*size_)(Handle) = nullptr;
  Handle (*vector_)(Handle, std::uint64_t) = nullptr;
  void* (*data_)(Handle) = nullptr;
  void (*destroy_chunk_)(Handle*) = nullptr;
};

std::string sql_quote(const std::string& s) {
  std::string out = "'";
  for (char c : s) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

/// "layer_07.parquet" -> 7.
bool layer_of(const std::string& name, int& layer) {
  return name.rfind("layer_", 0) == 0 && name.size() > 14 &&
         csv_number(std::string_view(name).substr(6, name.size() - 14), layer);
}

Result<Imported> import_flame(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  Duck duck;
  if (auto ok = duck.start(files[0].span()); !ok) return tl::unexpected(ok.error());
  std::map<std::string, std::vector<const InputFile*>> iterations;  // by folder, in natural order below
  std::vector<std::string> order;
  for (const InputFile& f : files) {
    int layer = 0;
    if (!layer_of(f.name, layer)) {
      warnings.warning(f.span(), "", f.name + ": not layer_NN.parquet; passed over");
      continue;
    }
    const std::string folder = std::filesystem::path(f.path).parent_path().string();
    if (iterations.count(folder) == 0) order.push_back(folder);
    iterations[folder].push_back(&f);
  }
  TraceBuilder b("flame-moe");
  b.meta.experts = 64;
  b.meta.recorded_from = "FLAME-MoE";
  b.meta.note = "a sequence is one iteration's batch; shared experts are not logged";
  for (const std::string& folder : order) {
    SequenceRows rows;
    for (const InputFile* f : iterations[folder]) {
      int layer = 0;
      (void)layer_of(f->name, layer);
      const std::string from = " FROM read_parquet(" + sql_quote(f->path) + ")";
      std::int32_t k = 0;
      auto ok = duck.rows(
          "SELECT (CASE WHEN min(len(indices)) = max(len(indices)) AND min(len(scores)) = max(len(indices)) THEN "
          "max(len(indices)) ELSE -1 END)::INTEGER, 0::FLOAT" +
              from,
          f->span(), [&](std::int32_t n, float) -> Status {
            k = n;
            return {};
          });
      if (!ok) return tl::unexpected(ok.error());
      if (k < 1 || k > 1024)
        return fail(f->span(), "indices", "rows differ in the number of experts, or there are none",
                    "every token must have the same number of experts");
      std::vector<int> ids;
      std::vector<float> weights;
      ok = duck.rows("SELECT coalesce(unnest(indices), -2)::INTEGER, coalesce(unnest(scores), 0)::FLOAT" + from,
                     f->span(), [&](std::int32_t id, float w) -> Status {
                       ids.push_back(id);
                       weights.push_back(w);
                       if (ids.size() < static_cast<std::size_t>(k)) return {};
                       std::string why;
                       if (!b.add(rows, layer, ids, weights, why)) return fail(f->span(), "indices", why, "");
                       ids.clear();
                       weights.clear();
                       return {};
                     });
      if (!ok) return tl::unexpected(ok.error());
    }
    if (auto ok = b.close(rows, "", iterations[folder][0]->span(), warnings); !ok) return tl::unexpected(ok.error());
  }
  return as_trace(b.finish(params, files[0].span(), warnings));
}

int sniff(const InputFile& f) {
  int layer = 0;
  if (f.bytes.substr(0, 4) != "PAR1") return 0;
  return layer_of(f.name, layer) ? 90 : 20;
}

}  // namespace

void register_formats_flame_moe(FormatRegistry& registry) {
  registry.add({"flame-moe", "FLAME-MoE Parquet, actives/iter_N/layer_NN.parquet; needs libduckdb.so (SOJOURN_DUCKDB)",
                common_params()},
               {sniff, import_flame});
}

}  // namespace sojourn
