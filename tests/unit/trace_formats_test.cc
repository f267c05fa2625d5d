// Every importer on a small made file (the fuzz corpora), and the mistakes people make.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "trace/csv_reader.h"
#include "trace/formats.h"
#include "trace/half.h"
#include "trace/json_reader.h"
#include "trace/json_text.h"
#include "trace/pickle.h"

using namespace sojourn;

namespace {

std::string file(const std::string& name) {
  std::ifstream in(std::string(SOJOURN_SOURCE_DIR) + "/tests/fuzz/corpus/fuzz_format_" + name, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

Imported import(const std::string& format, const std::string& bytes, const std::string& path, Diagnostics& w) {
  auto out = import_inputs(format, {memory_input(bytes, path)}, {}, w);
  if (!out) FAIL(out.error().diagnostics.text());
  return std::move(*out);
}

/// Imports with `auto`, which must find `format`.
Imported found(const std::string& format, const std::string& bytes, const std::string& path) {
  Diagnostics w;
  Imported out = import("auto", bytes, path, w);
  CHECK((out.trace ? out.trace->meta.format : out.loads->meta.format) == format);
  return out;
}

std::string refusal(const std::string& format, const std::string& bytes, const std::string& path = "x/y.json",
                    const std::vector<std::pair<std::string, std::string>>& params = {}) {
  Diagnostics w;
  auto out = import_inputs(format, {memory_input(bytes, path)}, params, w);
  REQUIRE(!out);
  return out.error().diagnostics.text();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

using Ids = std::vector<std::uint16_t>;

}  // namespace

TEST_CASE("per-token formats give ids, positions, phases and domains") {
  {
    const auto t = *found("gpt-oss", file("json/gpt_oss.json"), "mmlu_test/biology/a.json").trace;
    CHECK(t.ids[1] == Ids{5, 6, 6, 7, 7, 0});
    CHECK(t.position == std::vector<std::int32_t>{4, 5, 6});
    CHECK(t.phase == std::vector<std::uint8_t>{1, 1, 1});
    CHECK(t.meta.domains == std::vector<std::string>{"biology"});
    CHECK(t.meta.experts == 32);
  }
  {
    const auto t = *found("hdmoe", file("json/hdmoe.json"), "a/experts_math_mixtral.json").trace;
    CHECK(t.ids[1] == Ids{3, 1, 2, 0});
    CHECK(t.meta.domains == std::vector<std::string>{"math"});
    CHECK(t.phase.empty());
  }
  {
    const auto t = *found("moe-beyond", file("csv/beyond.csv"), "a/prompt_1_data.csv").trace;
    CHECK(t.ids[0] == Ids{1, 2, 3, 4});
    CHECK(t.meta.layer_ids == std::vector<int>{1, 2});
  }
  {  // weights lowest first are sorted, and the ids with them
    const auto t = *found("ocs", file("json/ocs.json"), "run/cooking_1/routing.json").trace;
    CHECK(t.ids[0] == Ids{2, 1, 5, 2});
    CHECK(from_half(t.weights[0][0]) == doctest::Approx(0.3).epsilon(0.001));
    CHECK(t.phase == std::vector<std::uint8_t>{0, 1});
    CHECK(t.meta.domains == std::vector<std::string>{"cooking"});
  }
  {
    const auto t = *found("moelens", file("json/moelens.json"), "a/prompt.json").trace;
    CHECK(t.ids[0] == Ids{3});
    CHECK(t.meta.layer_ids == std::vector<int>{1});
  }
  {
    const auto a = *found("core12345", file("json/core_a.json"), "kimi-k2/mmlu/law/1.json").trace;
    const auto b = *found("core12345", file("json/core_b.json"), "kimi-k2/mmlu/law/1.json").trace;
    CHECK(a.ids == b.ids);
    CHECK(a.phase == std::vector<std::uint8_t>{0, 0, 1});
    CHECK(a.meta.experts == 384);
    CHECK(has(a.meta.note, "at the top"));
    CHECK(has(b.meta.note, "selected_experts"));
  }
  {
    const auto t = *found("megatron", file("jsonl/megatron.jsonl"), "a/rank0.jsonl").trace;
    CHECK(t.meta.layers == 2);  // the multi-token-prediction head's layer 2 is left out
    CHECK(t.sequence_id == std::vector<std::int32_t>{0, 0, 1, 1});
  }
  {
    const auto t = *found("moe-balance", file("jsonl/moe_balance.jsonl"), "a/t.jsonl").trace;
    CHECK(t.meta.tokens == 4);
    CHECK(t.meta.layers == 2);
    CHECK(t.weights.size() == 2);
  }
  {
    const auto t = *found("npy", file("npy/ids.npy"), "a/ids.npy").trace;
    CHECK(t.ids[1] == Ids{3, 2, 1, 2, 0, 3});
    const auto f = *found("npy", file("npy/fortran.npy"), "a/f.npy").trace;
    CHECK(f.ids[0] == Ids{0, 6, 2, 8, 4, 10});
    const auto v = *found("vllm-routed-experts", file("npy/routed.npy"), "a/r.npy").trace;
    CHECK(v.ids[0] == Ids{0, 1, 4, 5, 8, 9});
    CHECK(found("npy", file("npz/deflated.npz"), "a/c.npz").trace->meta.domains.size() == 2);
  }
}

TEST_CASE("vLLM logs lose their warm-up rows and say so") {
  Diagnostics w;
  const auto t = *import("auto", file("jsonl/vllm.jsonl"), "a/log.jsonl", w).trace;
  CHECK(t.meta.tokens == 6);
  CHECK(t.sequence_id == std::vector<std::int32_t>{0, 0, 0, 1, 1, 1});
  CHECK(has(w.text(), "10 of 16 rows are warm-up"));
  std::string runs_on = R"({"type": "meta", "num_experts": 8})";
  for (int i = 0; i < 20; ++i)
    runs_on += "\n{\"token_idx\": " + std::to_string(i) + ", \"layer\": 0, \"topk_ids\": " +
               (i < 12 ? "[7, 6], \"topk_weights\": [0.5, 0.5]}"
                       : "[1, " + std::to_string(i % 3 + 2) + "], \"topk_weights\": [0.6, 0.2]}");
  Diagnostics w2;
  CHECK(import("vllm-log", runs_on, "a/log.jsonl", w2).trace->meta.tokens == 8);
  CHECK(has(w2.text(), "12 of 20 rows are warm-up"));
  CHECK(has(w2.text(), "cannot be told apart"));
}

TEST_CASE("counts-only formats give loads") {
  const auto total = [](const Imported& i) { return i.loads->total(); };
  using M = std::vector<std::vector<double>>;
  CHECK(total(found("eplb-csv", file("csv/eplb.csv"), "l.csv")) == M{{90, 132, 40}, {20, 107, 104}});
  CHECK(total(found("count-csv", file("csv/count.csv"), "l.csv")) == M{{5, 3}, {2, 0}});
  CHECK(total(found("sglang-csv", file("csv/sglang.csv"), "l.csv")) == M{{5, 0}, {0, 3}});
  CHECK(total(found("switch-batch", file("csv/switch.csv"), "e/moe_l3.csv")) == M{{5, 5, 5, 5}});
  CHECK(total(found("expert-load", file("json/expert_load.json"), "l.json")) == M{{6, 8}, {10, 12}});
  CHECK(total(found("route-profile", file("jsonl/profile.jsonl"), "l.jsonl")) == M{{0, 0, 5, 0}});
  CHECK(total(found("experts4bit-sets", file("jsonl/sets.jsonl"), "l.jsonl")) == M{{6, 0, 2}, {0, 8, 0}});
  CHECK(total(found("experts4bit-sets", file("jsonl/sets.jsonl.gz"), "routed_sets.jsonl.gz")) ==
        M{{6, 0, 2}, {0, 8, 0}});
  CHECK(total(found("olmoe-pickle", file("pickle/counter4.pkl"), "a/b/c4.pkl")) == M{{5, 3}, {0, 4}});
  CHECK(total(found("olmoe-pickle", file("pickle/pairs.pkl"), "a/b/c4.pkl")) == M{{5, 3}, {0, 8}});
  CHECK(total(found("torch-counts", file("pickle/tensor.pt"), "c.pt")) == M{{1, 2, 3, 4}, {5, 6, 7, 8}});
  CHECK(total(found("torch-counts", file("pickle/logical.pt"), "c.pt")) == M{{6, 8, 10, 12}});
  CHECK(total(found("npy-counts", file("npy/counts.npy"), "c.npy")) == M{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(!found("prompt-profile", file("json/profile.json"), "p.json").loads->traffic);
}

TEST_CASE("mistakes are told with file, line, column, key and remedy") {
  CHECK(
      has(refusal("hdmoe", "{\"0\": [[0, 1],\n [2]]}"), "x/y.json:2:5: 0[1]: 1 experts where the other tokens have 2"));
  CHECK(has(refusal("hdmoe", R"({"0": [[0, 1]], "1": []})"), "layer 1: 0 tokens where layer 0 has 1"));
  CHECK(has(refusal("hdmoe", R"({"0": []})"), "no routed tokens found"));
  CHECK(has(refusal("hdmoe", R"({"0": [[0, 1], [1, 2]], "1": [[0, 1]]})"), "layer 1: 1 tokens where layer 0 has 2"));
  CHECK(has(refusal("hdmoe", R"({"0": [[0, 70000]]})"), "expert id 70000 is out of range"));
  CHECK(has(refusal("hdmoe", R"({"0": [[0, 9]]})", "a/experts_math_mixtral.json"), "expert id 9 with 8 experts"));
  CHECK(has(refusal("hdmoe", R"({"0": [[0, 1])"), "cut off"));
  CHECK(has(refusal("moe-beyond", "Layer ID,Batch Number,Token,Activated Expert IDs\n1,0,\"a,\"[1]\"\n"), "y.json:2"));
  CHECK(has(refusal("eplb-csv", "1,2\n3\n", "l.csv"), "l.csv:2:1: 1 columns, the row before has 2"));
  CHECK(has(refusal("eplb-csv", "1,2\n3,-4\n", "l.csv"), "column 2"));
  CHECK(has(refusal("hdmo", "{}"), "did you mean hdmoe"));
  CHECK(has(refusal("auto", "hello"), "not a known trace format"));
  CHECK(has(refusal("npy", file("npy/counts.npy"), "a.npy"), "npy-counts"));
  CHECK(has(refusal("olmoe-pickle", file("pickle/refused.pkl"), "a.pkl"), "which is not admitted"));
  CHECK(has(refusal("torch-counts", file("pickle/short.pt"), "a.pt"), "needs element 15"));
  CHECK(
      has(refusal("gpt-oss", file("json/gpt_oss.json"), "a/b.json", {{"experts", "4"}}), "expert id 7 with 4 experts"));
  CHECK(has(refusal("hdmoe", R"({"0": [[0, 1]]})", "a.json", {{"expert", "4"}}), "experts"));
  CHECK(has(refusal("flame-moe", "PAR1", "layer_01.parquet"), "npm pack @duckdb/node-bindings-linux-x64"));
}

TEST_CASE("one expert twice is a warning, an inferred expert count too") {
  Diagnostics w;
  CHECK(import("hdmoe", R"({"0": [[1, 1]]})", "a.json", w).trace->meta.experts == 2);
  CHECK(has(w.text(), "1 rows name one expert twice"));
  CHECK(has(w.text(), "largest id + 1 = 2"));
}

TEST_CASE("files sort with numbers as numbers") {
  CHECK(natural_less("prompt_99.csv", "prompt_160.csv"));
  CHECK(!natural_less("prompt_160.csv", "prompt_99.csv"));
  CHECK(natural_less("a1b2", "a1b10"));
  CHECK(natural_less("a01", "a1") != natural_less("a1", "a01"));
  CHECK(!natural_less("a", "a"));
}

TEST_CASE("JSON reader: strings, depth, position") {
  JsonReader r(R"(["A\u00e9\ud83d\ude00\n", 1.5e3, NaN, {"a": [true, null]}])", "f");
  std::string s;
  double d = 0, nan = 0;
  int n = 0;
  CHECK(r.array([&] {
    switch (n++) {
      case 0:
        return r.string(s);
      case 1:
        return r.number(d);
      case 2:
        return r.number(nan);
      default:
        return r.skip();
    }
  }));
  CHECK(r.finish());
  CHECK(s == "A\xC3\xA9\xF0\x9F\x98\x80\n");
  CHECK(d == 1500);
  CHECK(nan != nan);
  const std::string deep(100000, '[');
  JsonReader bad(deep, "f");
  CHECK(!bad.skip());
  CHECK(has(bad.failure().diagnostics.text(), "nested more than 64 deep"));
  CHECK(json_quote("a\"\n\xff\xC3\xA9") == "\"a\\\"\\u000a\xEF\xBF\xBD\xC3\xA9\"");
  CHECK(json_number(2) == "2.0");
}

TEST_CASE("CSV reader: quotes, commas and newlines in fields") {
  CsvReader r("a,\"b,\"\"c\"\"\nd\",e\r\n\nf,,\n", "f");
  std::vector<std::string> row;
  REQUIRE(r.row(row));
  CHECK(row == std::vector<std::string>{"a", "b,\"c\"\nd", "e"});
  REQUIRE(r.row(row));
  CHECK(row == std::vector<std::string>{"f", "", ""});
  CHECK(r.here().line == 4);
  CHECK(!r.row(row));
  CsvReader open_quote("a,\"b\n", "f");
  CHECK(!open_quote.row(row));
  CHECK(open_quote.broken());
}
