// Model shapes: arithmetic against hand counts and published parameter totals, presets, what a user gets wrong, and
// the import of Hugging Face configurations.
#include "sojourn/model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "moe/model_import.h"
#include "moe/model_load.h"

using namespace sojourn;

namespace {

const std::vector<std::string>& dirs() {
  static const std::vector<std::string> d = {SOJOURN_SOURCE_DIR "/models"};
  return d;
}

ModelShape preset(const std::string& name) {
  auto m = load_model(name, dirs());
  INFO(name);
  if (!m) FAIL(m.error().diagnostics.text());
  return *m;
}

const char* const kSmall = R"(layers = 4
hidden = 64
vocab = 1000
experts = 8
top_k = 2
moe_ff = 32

[attention]
kind = "gqa"
heads = 8
kv_heads = 2
)";

/// kSmall with one line (found by its start) replaced; an empty replacement removes it.
std::string with(const std::string& start, const std::string& line) {
  std::string text = kSmall;
  const auto at = text.find("\n" + start) == std::string::npos ? 0 : text.find("\n" + start) + 1;
  return text.replace(at, text.find('\n', at) + 1 - at, line.empty() ? "" : line + "\n");
}

std::string errors_of(const std::string& toml) {
  auto m = parse_model(toml, "m.toml");
  REQUIRE_FALSE(m.has_value());
  CHECK(m.error().exit_code == 2);
  return m.error().diagnostics.text();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

#define CHECK_SAYS(text, part)     \
  do {                             \
    const std::string t_ = (text); \
    INFO(t_);                      \
    CHECK(has(t_, part));          \
  } while (0)

ModelShape shape_only(ModelShape m) {
  m.name = m.text = m.source = m.file = m.source_sha256 = "";
  m.unverified.clear();
  m.published_total = m.published_active = 0;
  return m;
}

}  // namespace

TEST_CASE("an expert has matrices x d x f weights, and as many MACs a token") {
  auto m = parse_model(kSmall, "small.toml");
  REQUIRE(m.has_value());
  CHECK(m->name == "small");
  CHECK(m->expert_params() == 3 * 64 * 32);
  CHECK(m->expert_bytes() == 3 * 64 * 32);
  CHECK(m->expert_macs_per_token() == 3 * 64 * 32);
  CHECK(m->activation_bytes_per_token() == 64 * 2);
  CHECK(m->routed_bytes() == 4LL * 8 * 3 * 64 * 32);
  CHECK(m->head_bytes() == 64'000);
  // attention: q and o 64x64 each, k and v 64x16 each; gate 64x8
  CHECK(m->attention_params(0) == 2 * 64 * 64 + 2 * 64 * 16);
  CHECK(m->block_weight_bytes(0) == 2 * 64 * 64 + 2 * 64 * 16 + 64 * 8);
  CHECK(m->kv_bytes_per_token(0) == 2 * 2 * 8 * 2);
  CHECK(m->total_params() == 2 * 64'000 + 4 * (2 * 64 * 64 + 2 * 64 * 16 + 64 * 8 + 8 * 3 * 64 * 32));
  CHECK(m->active_params() == m->total_params() - 4LL * 6 * 3 * 64 * 32);
  m->weight_bytes = 2;
  m->matrices = 2;
  CHECK(m->expert_bytes() == 2 * 2 * 64 * 32);
}

TEST_CASE("expert footprints are those of the HCRMap notes") {
  struct Row {
    const char* name;
    double mega_params, layer_gb, routed_gb;
  };
  // millions of parameters an expert; BF16 GB of a layer and of all routed experts
  const Row rows[] = {{"dbrx", 198.2, 6.34, 254},
                      {"deepseek-v2-lite", 8.65, 1.11, 28.8},
                      {"deepseek-v2", 23.6, 7.55, 445},
                      {"deepseek-v3", 44.0, 22.5, 1308},
                      {"deepseek-moe-16b", 8.65, 1.11, 29.9},
                      {"mixtral-8x7b", 176, 2.82, 90},
                      {"mixtral-8x22b", 302, 4.83, 271},
                      {"qwen1.5-moe", 8.65, 1.04, 24.9},
                      {"qwen3.5-35b-a3b", 3.15, 1.61, 64},
                      {"qwen3.5-397b-a17b", 12.6, 12.9, 773},
                      {"glm-5.2", 37.7, 19.3, 1450}};
  for (const Row& r : rows) {
    ModelShape m = preset(r.name);
    INFO(m.name);
    CHECK(m.expert_params() / 1e6 == doctest::Approx(r.mega_params).epsilon(0.003));
    m.weight_bytes = 2;
    CHECK(m.expert_bytes() * m.experts / 1e9 == doctest::Approx(r.layer_gb).epsilon(0.005));
    CHECK(std::abs(m.routed_bytes() / 1e9 - r.routed_gb) < std::max(0.006 * r.routed_gb, 0.5));  // printed in whole GB
  }
}

TEST_CASE("parameter totals are the published ones") {
  int checked = 0;
  for (const std::string& name : model_names(dirs())) {
    const ModelShape m = preset(name);
    if (m.published_total == 0) continue;
    INFO(name << ": total " << m.total_params() / 1e9 << " active " << m.active_params() / 1e9);
    CHECK(std::abs(m.total_params() / 1e9 / m.published_total - 1) < 0.0125);
    // Some authors leave the embedding, or it and the head, out of the active count, and some print one digit.
    double best = 1e9;
    const double active = m.active_params() / 1e9, table = 1e-9 * m.vocab * m.hidden;
    for (const double a : {active, active - table, active - 2 * table})
      best = std::min(best, std::abs(a - m.published_active));
    // "about 3B" of Qwen3-Next is the one looser figure.
    CHECK(best <= std::max(0.022 * m.published_active, name == "qwen3-next-80b-a3b" ? 0.3 : 0.06));
    ++checked;
  }
  CHECK(checked >= 25);
}

TEST_CASE("experts sit in the blocks the model puts them in") {
  const ModelShape v3 = preset("deepseek-v3");
  CHECK_FALSE(v3.is_moe(2));
  CHECK(v3.is_moe(3));
  CHECK(v3.is_moe(60));
  CHECK_FALSE(v3.is_moe(61));
  CHECK(v3.moe_layers() == 58);
  const ModelShape l4 = preset("llama-4-maverick");
  CHECK_FALSE(l4.is_moe(0));
  CHECK(l4.is_moe(1));
  CHECK(l4.is_moe(47));
  CHECK(l4.moe_layers() == 24);
  CHECK(preset("llama-2-7b").moe_layers() == 0);
  for (const std::string& name : model_names(dirs())) {
    const ModelShape m = preset(name);
    int n = 0;
    for (int b = 0; b < m.layers; ++b) n += m.is_moe(b);
    CHECK(n == m.moe_layers());
  }
}

TEST_CASE("hybrid models alternate as their configurations say") {
  const ModelShape q = preset("qwen3.5-35b-a3b");
  int full = 0;
  for (int b = 0; b < q.layers; ++b) full += q.attention_of(b).kind == AttentionKind::gqa;
  CHECK(full == 10);
  CHECK(q.attention_of(0).kind == AttentionKind::linear);
  CHECK(q.attention_of(3).kind == AttentionKind::gqa);
  const ModelShape g = preset("glm-5.2");
  std::vector<int> indexed;
  for (int b = 0; b < g.layers; ++b)
    if (g.attention_of(b).index_heads > 0) indexed.push_back(b);
  CHECK(indexed.size() == 21);
  CHECK(std::vector<int>(indexed.begin(), indexed.begin() + 5) == std::vector<int>{0, 1, 2, 6, 10});
  CHECK(indexed.back() == 74);
  const ModelShape o = preset("gpt-oss-120b");
  CHECK(o.attention_of(0).window == 128);
  CHECK(o.attention_of(1).window == 0);
}

TEST_CASE("KV caches have the sizes the notes derive") {
  const auto kv = [](const std::string& name, double bytes) {
    ModelShape m = preset(name);
    m.kv_bytes = bytes;
    Bytes sum = 0;
    for (int b = 0; b < m.layers; ++b) sum += m.kv_bytes_per_token(b);
    return sum;
  };
  CHECK(kv("qwen3.5-35b-a3b", 1) == 10'240);
  CHECK(kv("qwen3.5-397b-a17b", 1) == 15'360);
  CHECK(kv("glm-5.2", 1) == 78 * (512 + 64) + 21 * 128);
  CHECK(kv("llama-2-7b", 2) == 2 * 2 * 4096 * 32);
  // A linear block keeps a state instead: 32 heads of 128x128, and three taps of (2 x 16 + 32) x 128.
  const ModelShape q = preset("qwen3.5-35b-a3b");
  CHECK(q.kv_bytes_per_token(0) == 0);
  CHECK(q.state_bytes(0) == 2 * (32 * 128 * 128 + 3 * 64 * 128));
  CHECK(q.state_bytes(3) == 0);
}

TEST_CASE("a causal prompt attends to (T+1)/2 tokens on average") {
  const ModelShape m = preset("llama-2-7b");
  const Macs pair = 2LL * 32 * 128;  // QK^T and AV of all heads
  const auto core = [&](int tokens, int context) {
    return block_work(m, 0, Mode::prefill, tokens, context).attention_macs - m.attention_params(0) * tokens;
  };
  CHECK(core(2048, 0) == pair * 2048 * 2049 / 2);
  CHECK(core(2048, 1024) == core(2048, 0));                        // the same prompt, its mean rounded
  CHECK(core(2048, 256) == pair * 2048 * 256);                     // four prompts of 511
  CHECK(core(512, 1024) == pair * (512LL * 768 + 512 * 513 / 2));  // the last chunk of a longer prompt
  CHECK(core(1, 0) == pair);
}

TEST_CASE("a sliding window cuts what a token attends to") {
  const ModelShape m = preset("gpt-oss-120b");
  const Macs pair = 2LL * 64 * 64;
  const auto core = [&](int block, Mode mode, int tokens, int context) {
    return block_work(m, block, mode, tokens, context).attention_macs - m.attention_params(block) * tokens;
  };
  CHECK(core(0, Mode::decode, 10, 4096) == pair * 10 * 128);
  CHECK(core(1, Mode::decode, 10, 4096) == pair * 10 * 4096);
  CHECK(core(0, Mode::decode, 10, 100) == pair * 10 * 100);
  CHECK(core(0, Mode::prefill, 1000, 0) == pair * (128 * 129 / 2 + 872 * 128));
  CHECK(block_work(m, 0, Mode::decode, 10, 4096).kv_read_bytes == 10 * 128 * m.kv_bytes_per_token(0));
  CHECK(block_work(m, 1, Mode::decode, 10, 4096).kv_read_bytes == 10LL * 4096 * m.kv_bytes_per_token(1));
}

TEST_CASE("MLA expands the latent in prefill and is absorbed in decode") {
  const ModelShape m = preset("deepseek-v3");
  const std::int64_t params = 7168LL * 1536 + 1536LL * 128 * 192 + 7168 * 576 + 512LL * 128 * 256 + 128LL * 128 * 7168;
  CHECK(m.attention_params(0) == params);
  CHECK(block_work(m, 0, Mode::prefill, 64, 0).attention_macs == 64 * params + 64LL * 65 / 2 * 128 * (192 + 128));
  CHECK(block_work(m, 0, Mode::decode, 64, 1000).attention_macs == 64 * params + 64'000LL * 128 * (2 * 512 + 64));
  CHECK(block_work(m, 0, Mode::decode, 64, 1000).kv_read_bytes == 64'000LL * 576 * 2);
  CHECK(block_work(m, 0, Mode::decode, 64, 1000).kv_write_bytes == 64LL * 576 * 2);
  const ModelShape lite = preset("deepseek-v2-lite");  // no query rank
  CHECK(lite.attention_params(0) == 2048LL * 16 * 192 + 2048 * 576 + 512LL * 16 * 256 + 16LL * 128 * 2048);
  // A chunk behind 1000 tokens expands their latents again.
  const auto late = block_work(m, 0, Mode::prefill, 64, 1032).attention_macs;
  CHECK(late == 64 * params + (64'000LL + 64 * 65 / 2) * 128 * 320 + 1000LL * 512 * 128 * 256);
}

TEST_CASE("a sparse indexer scores the whole context and attends to its choice") {
  const ModelShape m = preset("glm-5.2");
  const Macs pair = 64LL * (2 * 512 + 64);
  const auto core = [&](int block, int context) {
    return block_work(m, block, Mode::decode, 1, context).attention_macs - m.attention_params(block);
  };
  CHECK(core(0, 30'000) == 2048 * pair + 30'000LL * 32 * 129);
  CHECK(core(3, 30'000) == 2048 * pair);  // reuses the choice of block 2
  CHECK(core(3, 1'000) == 1'000 * pair);
  CHECK(m.attention_params(0) - m.attention_params(3) == 2048LL * 32 * 128 + 6144 * 128 + 6144 * 32);
  CHECK(block_work(m, 0, Mode::decode, 1, 30'000).kv_read_bytes == 2 * (2048LL * 576 + 30'000LL * 128));
}

TEST_CASE("linear attention costs the same at any context") {
  const ModelShape m = preset("qwen3.5-35b-a3b");
  const auto a = block_work(m, 0, Mode::decode, 8, 100), b = block_work(m, 0, Mode::decode, 8, 100'000);
  CHECK(a.attention_macs == b.attention_macs);
  CHECK(a.attention_macs == 8 * (m.attention_params(0) + 4LL * 32 * 128 * 128));
  CHECK(a.kv_read_bytes == 8 * m.state_bytes(0));
  CHECK(a.kv_write_bytes == a.kv_read_bytes);
  CHECK(block_work(m, 0, Mode::prefill, 2048, 0).kv_write_bytes == m.state_bytes(0));
  // d (2 kh n + 2 vh n + 2 vh) + conv (2 kh n + vh n) + vh n d
  CHECK(m.attention_params(0) == 2048LL * (2 * 2048 + 2 * 4096 + 64) + 4 * 8192 + 4096LL * 2048);
  // output gate: the query projection is twice as wide
  CHECK(m.attention_params(3) == 2048LL * (2 * 4096 + 2 * 512) + 4096LL * 2048);
}

TEST_CASE("dense, shared, gate and head work follow from widths") {
  const ModelShape m = preset("deepseek-v3");
  const auto dense = block_work(m, 0, Mode::decode, 10, 1), moe = block_work(m, 3, Mode::decode, 10, 1);
  CHECK(dense.dense_macs == 10LL * 3 * 7168 * 18432);
  CHECK(dense.shared_macs == 0);
  CHECK(dense.gate_macs == 0);
  CHECK(moe.dense_macs == 0);
  CHECK(moe.shared_macs == 10LL * 3 * 7168 * 2048);
  CHECK(moe.gate_macs == 10LL * 7168 * 256);
  CHECK(moe.weight_bytes == m.attention_params(3) + 3LL * 7168 * 2048 + 7168 * 256);
  CHECK(head_work(m, 7).dense_macs == 7LL * 7168 * 129280);
  CHECK(head_work(m, 0).weight_bytes == 0);
  CHECK(block_work(m, 3, Mode::decode, 0, 1).weight_bytes == 0);
}

TEST_CASE("work of an absurd window saturates instead of overflowing") {
  const ModelShape m = preset("gpt3-175b");
  const auto w = block_work(m, 0, Mode::decode, 2'000'000'000, 2'000'000'000);
  CHECK(w.attention_macs == std::numeric_limits<Macs>::max());
  CHECK(w.kv_read_bytes == std::numeric_limits<Bytes>::max());
}

// ---- loading ----

TEST_CASE("every preset loads, names its source, and says what is unverified") {
  CHECK(model_names(dirs()).size() >= 29);
  for (const std::string& name : model_names(dirs())) {
    const ModelShape m = preset(name);
    INFO(name);
    CHECK(m.name == name);
    CHECK_FALSE(m.source.empty());
    CHECK_FALSE(m.text.empty());
    CHECK(m.source_sha256.size() == 64);
    if (has(m.source, "memory")) CHECK_FALSE(m.unverified.empty());
    auto again = parse_model(model_to_toml(m), m.file);
    if (!again) FAIL(again.error().diagnostics.text());
    again->source_sha256 = m.source_sha256;
    CHECK(*again == m);
  }
}

TEST_CASE("table2 is the paper's eight models in its order, and sets may be mixed with names") {
  auto l = load_model_list("table2", dirs());
  REQUIRE(l.has_value());
  std::vector<std::string> names;
  for (const ModelShape& m : *l) names.push_back(m.name);
  CHECK(names == table2_models());
  CHECK(names.front() == "dbrx");
  CHECK(names.back() == "qwen1.5-moe");
  auto mixed = load_model_list(" glm-5.2 , table2,dbrx", dirs());
  REQUIRE(mixed.has_value());
  CHECK(mixed->size() == 9);
  CHECK(mixed->front().name == "glm-5.2");
  auto moe = load_model_list("all-moe", dirs()), dense = load_model_list("all-dense", dirs()),
       all = load_model_list("all", dirs());
  REQUIRE((moe && dense && all));
  CHECK(moe->size() + dense->size() == all->size());
  for (const ModelShape& m : *moe) CHECK(m.experts > 0);
  CHECK(load_model_list("all-moe,llama-2-7b", dirs())->size() == moe->size() + 1);
}

TEST_CASE("a user adds a model with one file in a search directory") {
  namespace fs = std::filesystem;
  const fs::path dir = fs::temp_directory_path() / ("sojourn-model-test-" + std::to_string(std::rand()));
  fs::create_directories(dir);
  std::ofstream(dir / "mine.toml") << kSmall;
  std::ofstream(dir / "dbrx.toml") << kSmall;
  const std::vector<std::string> both = {dir.string(), dirs()[0]};
  auto mine = load_model("mine", both);
  REQUIRE(mine.has_value());
  CHECK(mine->experts == 8);
  CHECK(load_model((dir / "mine.toml").string(), {}).has_value());
  CHECK(load_model("dbrx", both)->experts == 8);  // the first directory wins
  auto clash = load_model_list("dbrx," + dirs()[0] + "/dbrx.toml", both);
  REQUIRE_FALSE(clash.has_value());
  CHECK_SAYS(clash.error().diagnostics.text(), "two different models are called 'dbrx'");
  fs::remove_all(dir);
}

TEST_CASE("an unknown preset is answered with the nearest name") {
  auto m = load_model("Mixtral-8x7", dirs());
  REQUIRE_FALSE(m.has_value());
  CHECK_SAYS(m.error().diagnostics.text(), "unknown model 'Mixtral-8x7'");
  CHECK_SAYS(m.error().diagnostics.text(), "did you mean mixtral-8x7b?");
  auto l = load_model_list("tabel2,dbrxx", dirs(), {"<command line>"}, "--models");
  REQUIRE_FALSE(l.has_value());
  CHECK(l.error().diagnostics.items().size() == 2);  // both, in one pass
  CHECK_SAYS(l.error().diagnostics.text(), "did you mean table2?");
  CHECK_SAYS(l.error().diagnostics.text(), "--models");
  CHECK_FALSE(load_model_list("", dirs()).has_value());
  CHECK_FALSE(load_model_list("dbrx,,dbrx", dirs()).has_value());
  CHECK_FALSE(load_model("dbrx", {"/nonexistent"}).has_value());
  CHECK_FALSE(load_model("/nonexistent/x.toml", dirs()).has_value());
}

TEST_CASE("a wrong preset is answered with line, key and reason") {
  CHECK_SAYS(errors_of(with("hidden", "hiden = 64")), "m.toml:2:");
  CHECK_SAYS(errors_of(with("hidden", "hiden = 64")), "did you mean hidden?");
  CHECK_SAYS(errors_of(with("vocab", "")), "vocab");
  CHECK_SAYS(errors_of(with("top_k", "top_k = 9")), "9 is not between 1 and experts = 8");
  CHECK_SAYS(errors_of(with("top_k", "")), "top_k");
  CHECK_SAYS(errors_of(with("layers", "layers = 0")), "m.toml:1:");
  CHECK_SAYS(errors_of(with("layers", "layers = -4")), "layers");
  CHECK_SAYS(errors_of(with("hidden", "hidden = 99999999999")), "hidden");
  CHECK_SAYS(errors_of(with("hidden", "hidden = \"64\"")), "hidden");
  CHECK_SAYS(errors_of(with("hidden", "hidden = 65")), "not a multiple of heads = 8");
  CHECK_SAYS(errors_of(with("kv_heads", "kv_heads = 3")), "not a multiple of kv_heads = 3");
  CHECK_SAYS(errors_of(with("kv_heads", "")), "attention.kv_heads");
  CHECK_SAYS(errors_of(with("kind", "kind = \"mha\"")), "use kind = \"gqa\"");
  CHECK_SAYS(errors_of(with("kind", "kind = \"gpa\"")), "did you mean");
  CHECK_SAYS(errors_of(with("kind", "kind = \"mla\"")), "kind = \"mla\" has no kv_heads");
  CHECK_SAYS(errors_of(with("kind", "kind = \"mla\"")), "attention.kv_lora");
  CHECK_SAYS(errors_of(with("moe_ff", "moe_ff = 32\ndense_first = 4\ndense_ff = 64")), "leaves no block");
  CHECK_SAYS(errors_of(with("moe_ff", "moe_ff = 32\ndense_first = 1")), "needs dense_ff");
  CHECK_SAYS(errors_of(with("moe_ff", "moe_ff = 32\ndense_ff = 64")), "every block has experts");
  CHECK_SAYS(errors_of(with("moe_ff", "moe_ff = 32\nmoe_every = 5\ndense_ff = 8")), "no block of layers = 4");
  CHECK_SAYS(errors_of(with("moe_ff", "moe_ff = 32\nshared_experts = 1")), "add shared_ff");
  CHECK_SAYS(errors_of(with("moe_ff", "moe_ff = 32\nexpert_groups = 3\ngroup_top = 1")), "not a multiple of 3");
  CHECK_SAYS(errors_of(with("moe_ff", "moe_ff = 32\nexpert_groups = 8\ngroup_top = 1")), "cannot give top_k = 2");
  CHECK_SAYS(errors_of(with("moe_ff", "moe_ff = 32\nalt_every = 2")), "no [attention_alt] table");
  CHECK_SAYS(errors_of(with("moe_ff", "moe_ff = 32\nmatrices = 4")), "matrices");
  CHECK_SAYS(errors_of(with("moe_ff", "moe_ff = 32\nweight_bytes = nan")), "weight_bytes");
  CHECK_SAYS(errors_of(with("moe_ff", "moe_ff = 32\nunverified = [\"vocabulary\"]")), "'vocabulary' is not a key");
  CHECK_SAYS(errors_of(with("experts", "")), "the model has no experts");
  CHECK_SAYS(errors_of("layers = ["), "m.toml:1:");
}

TEST_CASE("all errors of a preset come in one pass, in file order") {
  auto m = parse_model(with("top_k", "top_k = 99\nwidth = 3\nvocab_size = 1"), "m.toml");
  REQUIRE_FALSE(m.has_value());
  const auto& items = m.error().diagnostics.items();
  CHECK(items.size() == 3);
  CHECK(std::is_sorted(items.begin(), items.end(), [](auto& a, auto& b) { return a.where.line < b.where.line; }));
}

TEST_CASE("a product of allowed values that no model has is refused") {
  CHECK_SAYS(errors_of("layers = 10000\nhidden = 1048576\nvocab = 1000\nexperts = 65535\ntop_k = 1\nmoe_ff = 16777216\n"
                       "[attention]\nkind = \"mha\"\nheads = 1024\n"),
             "parameters");
}

TEST_CASE("the record lists every key of a preset") {
  const auto params = model_params();
  const auto find = [&](const std::string& n) {
    return std::find_if(params.begin(), params.end(), [&](const Param& p) { return p.name == n; });
  };
  REQUIRE(find("hidden") != params.end());
  CHECK(find("hidden")->required);
  REQUIRE(find("attention.kv_lora") != params.end());
  CHECK(find("weight_bytes") != params.end());
  for (const Param& p : params) CHECK_FALSE(p.text.empty());
  const auto values = model_values(preset("glm-5.2"));
  const auto value = [&](const std::string& n) {
    return std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == n; })->second;
  };
  CHECK(std::get<std::int64_t>(value("hidden")) == 6144);
  CHECK(std::get<std::int64_t>(value("attention_alt.index_heads")) == 32);
  CHECK(std::get<std::string>(value("attention.kind")) == "mla");
}

// ---- import ----

TEST_CASE("published configurations import to exactly our presets") {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SOJOURN_SOURCE_DIR "/tests/fuzz/corpus/fuzz_hf_config")) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".json") continue;
    INFO(name);
    auto text = model_import_hf(entry.path().string());
    if (!text) FAIL(text.error().diagnostics.text());
    auto m = parse_model(*text, "imported.toml");
    REQUIRE(m.has_value());
    CHECK(shape_only(*m) == shape_only(preset(name)));
    ++count;
  }
  CHECK(count >= 24);
}

TEST_CASE("an import hints at the checkpoint's weight format") {
  const std::string dir = SOJOURN_SOURCE_DIR "/tests/fuzz/corpus/fuzz_hf_config/";
  CHECK_SAYS(*model_import_hf(dir + "deepseek-v3.json"), "fp8: weight_bytes = 1");
  CHECK_SAYS(*model_import_hf(dir + "gpt-oss-120b.json"), "mxfp4: weight_bytes = 0.53125");
  CHECK_SAYS(*model_import_hf(dir + "mixtral-8x7b.json"), "bfloat16: weight_bytes = 2");
}

TEST_CASE("a configuration that cannot be imported is answered with its place and key") {
  const auto say = [](const std::string& json) {
    auto t = model_import_hf_text(json, "config.json");
    REQUIRE_FALSE(t.has_value());
    return t.error().diagnostics.text();
  };
  CHECK_SAYS(say("{\n  \"model_type\": \"llama\",\n  oops\n}"), "config.json:3:3");
  CHECK_SAYS(say(""), "not JSON");
  CHECK_SAYS(say("[1]"), "expected an object, found array");
  CHECK_SAYS(say("{}"), "model_type: missing");
  CHECK_SAYS(say("{\"model_type\": \"mixtrall\"}"), "did you mean mixtral?");
  CHECK_SAYS(say("{\"model_type\": \"mamba\"}"), "unknown model_type 'mamba'");
  CHECK_SAYS(say("{\"model_type\": \"mamba\"}"), "num_hidden_layers");
  const std::string missing = say("{\"model_type\": \"mixtral\", \"hidden_size\": 64}");
  for (const char* key :
       {"num_hidden_layers", "vocab_size", "num_attention_heads", "num_local_experts", "intermediate_size"})
    CHECK_SAYS(missing, key);
  const std::string base = R"({"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 10,
 "num_attention_heads": 4, "num_local_experts": 8, "intermediate_size": 16,
 "num_experts_per_tok": )";
  CHECK(model_import_hf_text(base + "2}", "c").has_value());
  CHECK_SAYS(say(base + "9}"), "top_k");
  CHECK_SAYS(say(base + "2.5}"), "config.json:3:2: num_experts_per_tok: expected a whole number, found 2.5");
  CHECK_SAYS(say(base + "\"two\"}"), "found string");
  CHECK_SAYS(say(base + "1e30}"), "is not between");
  CHECK_SAYS(say(std::string(100, '[')), "nested deeper");
  CHECK_SAYS(say(std::string(5'000'000, ' ')), "bytes");
  CHECK_SAYS(say(R"({"model_type": "dbrx", "d_model": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 9})"),
             "ffn_config");
  CHECK_SAYS(say(R"({"model_type": "qwen3_moe", "num_hidden_layers": 6, "hidden_size": 64, "vocab_size": 10,
    "num_attention_heads": 4, "num_experts": 8, "moe_intermediate_size": 16, "num_experts_per_tok": 2,
    "mlp_only_layers": [2, 3], "intermediate_size": 8})"),
             "no pattern a preset can state");
  CHECK_FALSE(model_import_hf("/nonexistent/config.json").has_value());
}
