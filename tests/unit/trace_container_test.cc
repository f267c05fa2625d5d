// The .npz container: what NumPy writes is read, what is written is read back, hostile files are refused by name, and a
// large trace needs little memory of its own.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/hash.h"
#include "sojourn/trace.h"
#include "trace/container.h"
#include "trace/half.h"
#include "trace/npy.h"
#include "trace/zip.h"

using namespace sojourn;

namespace {

std::string corpus(const std::string& name) {
  return std::string(SOJOURN_SOURCE_DIR) + "/tests/fuzz/corpus/fuzz_format_npz/" + name;
}

std::string temp(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("sojourn_test_" + std::to_string(::getpid()) + "_" + name))
      .string();
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TraceData small() {
  TraceData d;
  d.meta.model = "m \"quoted\" \xff";
  d.meta.layers = 2;
  d.meta.experts = 5;
  d.meta.top_k = 2;
  d.meta.tokens = 3;
  d.meta.domains = {"a", "b"};
  d.meta.sequence_domain = {1, 0};
  d.meta.warnings = {"dropped 3 rows"};
  d.meta.layer_ids = {1, 3};
  d.ids = {{0, 1, 2, 3, 4, 65535}, {4, 3, 2, 1, 0, 1}};
  d.weights = {{1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1}};
  d.sequence_id = {0, 0, 1};
  d.position = {0, 1, 0};
  d.phase = {0, 1, 1};
  return d;
}

std::string refusal(const std::string& path) {
  auto t = open_trace(path);
  REQUIRE(!t);
  CHECK(t.error().exit_code == 2);
  return t.error().diagnostics.text();
}

void write_npz(const std::string& path, const std::vector<std::pair<std::string, std::string>>& members) {
  auto file = AtomicFile::create(path);
  REQUIRE(file);
  ZipWriter zip(*file);
  for (const auto& [name, bytes] : members) {
    REQUIRE(zip.begin(name + ".npy", false));
    REQUIRE(zip.write(bytes));
    REQUIRE(zip.end());
  }
  REQUIRE(zip.finish());
  REQUIRE(file->commit());
}

template <class T>
std::string raw(const std::vector<T>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)};
}

}  // namespace

TEST_CASE("a written trace reads back the same, stored and deflated, with the same bytes every time") {
  for (Compression c : {Compression::deflate, Compression::stored}) {
    const std::string path = temp("round.npz");
    const TraceData d = small();
    auto hash = write_trace_as(d, path, c);
    REQUIRE(hash);
    const std::string first = slurp(path);
    auto again = write_trace_as(d, path, c);
    CHECK(slurp(path) == first);
    CHECK(*again == *hash);
    CHECK(sha256_hex(first) == *hash);
    auto t = open_trace(path);
    if (!t) FAIL(t.error().diagnostics.text());
    for (int l = 0; l < 2; ++l) {
      const auto i = static_cast<std::size_t>(l);
      CHECK(std::vector((*t)->ids(l).begin(), (*t)->ids(l).end()) == d.ids[i]);
      CHECK(std::vector((*t)->weights(l).begin(), (*t)->weights(l).end()) == d.weights[i]);
    }
    CHECK((*t)->ids(2).empty());
    CHECK(std::vector((*t)->position().begin(), (*t)->position().end()) == d.position);
    CHECK(std::vector((*t)->phase().begin(), (*t)->phase().end()) == d.phase);
    CHECK((*t)->meta().sha256 == *hash);
    CHECK((*t)->meta().sequence_domain == d.meta.sequence_domain);
    CHECK((*t)->meta().layer_ids == d.meta.layer_ids);
    CHECK((*t)->meta().warnings == d.meta.warnings);
    CHECK((*t)->meta().model == "m \"quoted\" \xEF\xBF\xBD");
    std::filesystem::remove(path);
  }
}

TEST_CASE("stored arrays are aligned so that they can be used in place") {
  const std::string path = temp("aligned.npz");
  REQUIRE(write_trace_as(small(), path, Compression::stored));
  const std::string bytes = slurp(path);
  auto d = read_zip_directory(bytes, path);
  REQUIRE(d);
  for (const ZipEntry& e : *d) CHECK(e.offset % 64 == 0);
  std::filesystem::remove(path);
}

TEST_CASE("archives as NumPy's savez and savez_compressed write them are read") {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    auto t = open_trace(corpus(name));
    if (!t) FAIL(t.error().diagnostics.text());
    CHECK((*t)->meta().layers == 2);
    CHECK((*t)->meta().experts == 4);
    CHECK((*t)->ids(1)[0] == 3);
    CHECK(from_half((*t)->weights(0)[0]) == 0.5F);
    CHECK((*t)->meta().domains.size() == 2);
  }
}

TEST_CASE("hostile containers are refused with the file, the array and a remedy") {
  CHECK(refusal(corpus("truncated.npz")).find("cut off") != std::string::npos);
  CHECK(refusal(corpus("petabyte.npz")).find("topk_ids: <u2 [4000, 10000000000, 100] needs 8000000000000128 bytes") !=
        std::string::npos);
  CHECK(refusal(corpus("overflow.npz")).find("overflow") != std::string::npos);
  CHECK(refusal(corpus("counts.npz")).find("meta") != std::string::npos);
  const std::string id = refusal(corpus("id_out_of_range.npz"));
  CHECK(id.find("topk_ids[0][1][1]: expert id 3 with 3 experts") != std::string::npos);
  CHECK(refusal("/nonexistent/x.npz").find("cannot open") != std::string::npos);
}

TEST_CASE("wrong dtype, order, rank and length are named") {
  const std::string path = temp("bad.npz");
  const std::string meta_json = R"({"schema": "sojourn.trace/1", "layers": 1, "experts": 4, "top_k": 1, "tokens": 2})";
  const std::string meta = npy_header("|S" + std::to_string(meta_json.size()), {}) + meta_json;
  const std::string ids = npy_header("<u2", {1, 2, 1}) + raw<std::uint16_t>({1, 2});
  const std::string two = npy_header("<i4", {2}) + raw<std::int32_t>({0, 0});
  const auto attempt = [&](const std::string& i, const std::string& s, const std::string& m) {
    write_npz(path, {{"topk_ids", i}, {"sequence_id", s}, {"position", two}, {"meta", m}});
    return refusal(path);
  };
  CHECK(attempt(npy_header("<i8", {1, 2, 1}) + raw<std::int64_t>({1, 2}), two, meta).find("must be little-endian u2") !=
        std::string::npos);
  CHECK(attempt(npy_header("<u2", {2, 1}) + raw<std::uint16_t>({1, 2}), two, meta).find("3 dimensions") !=
        std::string::npos);
  std::string fortran = ids;
  fortran.replace(fortran.find("False"), 5, "True ");
  CHECK(attempt(fortran, two, meta).find("Fortran") != std::string::npos);
  CHECK(attempt(ids, npy_header("<i4", {3}) + raw<std::int32_t>({0, 0, 0}), meta)
            .find("sequence_id: 3 entries for 2 tokens") != std::string::npos);
  CHECK(attempt(ids, npy_header("<i4", {2}) + raw<std::int32_t>({0, -1}), meta).find("sequence_id[1]: is negative") !=
        std::string::npos);
  std::string few = meta;
  few.replace(few.find("\"experts\": 4"), 12, "\"experts\": 0");
  CHECK(attempt(ids, two, few).find("meta.experts") != std::string::npos);
  std::string other = meta;
  other.replace(other.find("\"tokens\": 2"), 11, "\"tokens\": 9");
  CHECK(attempt(ids, two, other).find("says 9, topk_ids has 2") != std::string::npos);
  CHECK(attempt(ids, two, npy_header("<u2", {2}) + raw<std::uint16_t>({1, 2})).find("JSON text") != std::string::npos);
  std::string damaged = slurp(path);
  write_npz(path, {{"topk_ids", ids}, {"sequence_id", two}, {"position", two}, {"meta", meta}});
  REQUIRE(open_trace(path));
  damaged = slurp(path);
  damaged[damaged.find(raw<std::uint16_t>({1, 2}), 100)] ^= 1;
  std::ofstream(path, std::ios::binary) << damaged;
  CHECK(refusal(path).find("CRC") != std::string::npos);
  std::filesystem::remove(path);
}

TEST_CASE("loads are not a trace") {
  const std::string path = temp("loads.npz");
  LoadBuilder b("test");
  std::string why;
  REQUIRE(b.add(0, 0, 1, 5, why));
  REQUIRE(b.add(1, 2, 0, 7, why));
  auto d = b.finish({});
  REQUIRE(d);
  REQUIRE(write_loads(*d, path));
  auto back = open_loads(path);
  REQUIRE(back);
  CHECK(back->counts == d->counts);
  CHECK(back->meta.layer_ids == std::vector<int>{0, 2});
  CHECK(refusal(path).find("trace synth --fit") != std::string::npos);
  std::filesystem::remove(path);
}

TEST_CASE("a trace need not fit in memory") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  MESSAGE("skipped: sanitizers need address space of their own");
#else
  // 256 MB of ids, opened and summed by a child that may take 48 MB of anonymous memory.
  const std::string path = temp("large.npz");
  constexpr std::uint64_t kTokens = 1 << 20, kLayers = 32, kK = 4;
  for (bool compress : {false, true}) {
    {
      auto file = AtomicFile::create(path);
      REQUIRE(file);
      ZipWriter zip(*file);
      const std::vector<std::uint16_t> layer = [&] {
        std::vector<std::uint16_t> v(kTokens * kK);
        for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::uint16_t>(i % kK);
        return v;
      }();
      REQUIRE(zip.begin("topk_ids.npy", compress));
      REQUIRE(zip.write(npy_header("<u2", {kLayers, kTokens, kK})));
      for (std::uint64_t l = 0; l < kLayers; ++l) REQUIRE(zip.write(raw(layer)));
      REQUIRE(zip.end());
      for (const char* name : {"sequence_id.npy", "position.npy"}) {
        REQUIRE(zip.begin(name, compress));
        REQUIRE(zip.write(npy_header("<i4", {kTokens}) + std::string(kTokens * 4, '\0')));
        REQUIRE(zip.end());
      }
      const std::string json = R"({"schema": "sojourn.trace/1", "experts": 4})";
      REQUIRE(zip.begin("meta.npy", compress));
      REQUIRE(zip.write(npy_header("|S" + std::to_string(json.size()), {}) + json));
      REQUIRE(zip.end());
      REQUIRE(zip.finish());
      REQUIRE(file->commit());
    }
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::ifstream statm("/proc/self/status");
      std::string word;
      rlim_t data_kb = 0;
      while (statm >> word)
        if (word == "VmData:") statm >> data_kb;
      const rlim_t limit = data_kb * 1024 + (48U << 20);
      const rlimit r{limit, limit};
      ::setrlimit(RLIMIT_DATA, &r);
      auto t = open_trace(path);
      if (!t) ::_exit(1);
      std::uint64_t sum = 0;
      for (int l = 0; l < static_cast<int>(kLayers); ++l)
        for (std::uint16_t id : (*t)->ids(l)) sum += id;
      ::_exit(sum == kLayers * kTokens * 6 ? 0 : 2);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    std::filesystem::remove(path);
  }
#endif
}

TEST_CASE("float16 conversion rounds to nearest even and survives the round trip") {
  for (std::uint32_t h = 0; h < 0x7C00; ++h) CHECK_FALSE(to_half(from_half(static_cast<std::uint16_t>(h))) != h);
  CHECK(to_half(1.0F) == 0x3C00);
  CHECK(to_half(65520.0F) == 0x7C00);
  CHECK(to_half(2049.0F) == to_half(2048.0F));
  CHECK(to_half(-2.0F) == 0xC000);
}
