// Assembly of per-token traces from rows.
#include "trace/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "trace/half.h"

namespace sojourn {
namespace {

// Published configurations (HuggingFace config.json of each model).
constexpr KnownModel kModels[] = {
    {"gpt-oss-20b", 32, 4},      {"gpt-oss-120b", 128, 4},     {"mixtral-8x7b", 8, 2},    {"mixtral-8x22b", 8, 2},
    {"deepseek-v2-lite", 64, 6}, {"deepseek-moe-16b", 64, 6},  {"deepseek-v3", 256, 8},   {"deepseek-r1", 256, 8},
    {"deepseek-v2", 160, 6},     {"qwen1.5-moe-a2.7b", 60, 4}, {"qwen3-30b-a3b", 128, 8}, {"qwen3-235b-a22b", 128, 8},
    {"olmoe-1b-7b", 64, 8},      {"llama-4-maverick", 128, 1}, {"kimi-k2", 384, 8},       {"dbrx", 16, 4},
};

}  // namespace

const KnownModel* known_model(const std::string& id) {
  std::string lower = id;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const KnownModel& m : kModels)
    if (lower.find(m.name) != std::string::npos) return &m;
  return nullptr;
}

std::vector<Param> common_params() {
  return {
      {.name = "experts",
       .default_value = std::int64_t{0},
       .min = 0,
       .max = 65535,
       .text = "routed experts a layer; 0 = from the file, else the known model, else the largest id + 1"},
      {.name = "model",
       .default_value = std::string(),
       .text = "model the routes were recorded from, where the file does not say"},
      {.name = "domain",
       .default_value = std::string(),
       .text = "domain of every sequence; empty = as the format tells it"},
  };
}

bool TraceBuilder::add(SequenceRows& rows, int layer, std::span<const int> ids, std::span<const float> weights,
                       std::string& why) {
  if (ids.empty()) {
    why = "a token without experts";
    return false;
  }
  if (k_ == 0) k_ = static_cast<int>(ids.size());
  if (static_cast<int>(ids.size()) != k_) {
    why = fmt::format("{} experts where the other tokens have {}", ids.size(), k_);
    return false;
  }
  if (!weights.empty() && weights.size() != ids.size()) {
    why = fmt::format("{} weights for {} experts", weights.size(), ids.size());
    return false;
  }
  if (layer < 0 || layer > 4095) {
    why = fmt::format("layer {} is out of range (0 to 4095)", layer);
    return false;
  }
  auto& out = rows.ids[layer];
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < -1 || ids[i] > 65534) {
      why = fmt::format("expert id {} is out of range (0 to 65534, -1 = padding)", ids[i]);
      return false;
    }
    padded_ += ids[i] < 0;
    largest_ = std::max(largest_, ids[i]);
    out.push_back(static_cast<std::uint16_t>(ids[i] < 0 ? 65535 : ids[i]));
  }
  std::uint16_t sorted[1024];
  if (ids.size() <= 1024) {
    std::copy(out.end() - k_, out.end(), sorted);
    std::sort(sorted, sorted + k_);
    for (int i = 1; i < k_; ++i)
      if (sorted[i] == sorted[i - 1] && sorted[i] != 65535) {
        ++duplicates_;
        break;
      }
  }
  if (!weights.empty()) {
    auto& w = rows.weights[layer];
    w.insert(w.end(), weights.begin(), weights.end());
  }
  return true;
}

Result<bool> TraceBuilder::close(SequenceRows& rows, const std::string& domain, const SourceSpan& where,
                                 Diagnostics& warnings) {
  SequenceRows taken = std::move(rows);
  rows = {};
  if (taken.ids.empty() || k_ == 0) {
    warnings.warning(where, "", "holds no routed tokens; left out");
    return false;
  }
  const auto k = static_cast<std::size_t>(k_);
  const std::size_t n = taken.ids.begin()->second.size() / k;
  std::vector<int> layers;
  for (const auto& [layer, ids] : taken.ids) {
    if (ids.size() / k != n)
      return fail(where, fmt::format("layer {}", layer),
                  fmt::format("{} tokens where layer {} has {}", ids.size() / k, taken.ids.begin()->first, n),
                  "every layer must log every token: is the file cut off?");
    layers.push_back(layer);
  }
  if (layers_.empty()) {
    layers_ = layers;
    data_.ids.resize(layers.size());
    weights_.resize(layers.size());
  } else if (layers != layers_) {
    return fail(where, "",
                fmt::format("layers {} differ from the layers {} of the sequences before", fmt::join(layers, " "),
                            fmt::join(layers_, " ")),
                "import files of one model and one set of layers together");
  }
  if (data_.sequence_id.size() + n > 2'000'000'000)
    return fail(where, "", "more than 2 thousand million tokens", "import fewer files at a time");
  std::size_t l = 0;
  for (auto& [layer, ids] : taken.ids) {
    data_.ids[l].insert(data_.ids[l].end(), ids.begin(), ids.end());
    const auto w = taken.weights.find(layer);
    if (w == taken.weights.end() || w->second.size() != ids.size()) all_weights_ = false;
    if (all_weights_) weights_[l].insert(weights_[l].end(), w->second.begin(), w->second.end());
    ++l;
  }
  const auto sequence = static_cast<std::int32_t>(meta.sequence_domain.size());
  data_.sequence_id.insert(data_.sequence_id.end(), n, sequence);
  for (std::size_t i = 0; i < n; ++i)
    data_.position.push_back(taken.position.size() == n ? taken.position[i] : static_cast<std::int32_t>(i));
  if (taken.phase.size() != n)
    all_phases_ = false;
  else
    data_.phase.insert(data_.phase.end(), taken.phase.begin(), taken.phase.end());
  const auto d = std::find(meta.domains.begin(), meta.domains.end(), domain);
  meta.sequence_domain.push_back(static_cast<int>(d - meta.domains.begin()));
  if (d == meta.domains.end()) meta.domains.push_back(domain);
  return true;
}

Result<TraceData> TraceBuilder::finish(const ParamSet& params, const SourceSpan& where, Diagnostics& warnings) {
  if (data_.sequence_id.empty())
    return fail(where, "", "no routed tokens found", "is this the right format? `sojourn describe formats` lists them");
  if (params.has("model") && !params.word("model").empty()) meta.recorded_from = params.word("model");
  const KnownModel* known = known_model(meta.recorded_from);
  const int given = params.has("experts") ? static_cast<int>(params.integer("experts")) : 0;
  int experts = given != 0 ? given : meta.experts;
  if (experts == 0 && known != nullptr) experts = known->experts;
  if (experts == 0) {
    experts = largest_ + 1;
    warnings.warning(where, "experts",
                     fmt::format("the number of experts is not in the file; taken as the largest id + 1 = {}", experts),
                     "pass --set experts=N");
  }
  if (largest_ >= experts)
    return fail(where, "experts", fmt::format("expert id {} with {} experts", largest_, experts),
                "ids are zero-based: check experts, or whether shared experts are counted");
  if (k_ > experts)
    return fail(where, "top_k", fmt::format("{} experts a token of only {}", k_, experts),
                "check the number of experts");
  if (experts < 1) return fail(where, "experts", "no expert is ever chosen (all ids are padding)", "check the file");
  if (meta.top_k != 0 && meta.top_k != k_)
    warnings.warning(where, "top_k", fmt::format("the file declares top-{} and logs {} ids a token", meta.top_k, k_));
  if (duplicates_ > 0) warnings.warning(where, "", fmt::format("{} rows name one expert twice", duplicates_));
  if (padded_ > 0) warnings.warning(where, "", fmt::format("{} ids are padding (-1), kept as 65535", padded_));
  const bool any_weights = std::any_of(weights_.begin(), weights_.end(), [](const auto& w) { return !w.empty(); });
  if (any_weights && !all_weights_)
    warnings.warning(where, "weights", "some tokens have no weights; all weights are left out");
  if (any_weights && all_weights_) {
    const auto k = static_cast<std::size_t>(k_);
    std::vector<std::size_t> order(k);
    std::vector<std::uint16_t> ids(k);
    for (std::size_t l = 0; l < data_.ids.size(); ++l) {
      auto& out = data_.weights.emplace_back(weights_[l].size());
      for (std::size_t at = 0; at < weights_[l].size(); at += k) {
        std::iota(order.begin(), order.end(), 0);
        const float* w = weights_[l].data() + at;
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return w[a] > w[b]; });
        for (std::size_t i = 0; i < k; ++i) ids[i] = data_.ids[l][at + order[i]];
        for (std::size_t i = 0; i < k; ++i) {
          data_.ids[l][at + i] = ids[i];
          out[at + i] = to_half(w[order[i]]);
        }
      }
    }
  }
  if (!all_phases_) data_.phase.clear();
  if (params.has("domain") && !params.word("domain").empty()) {
    meta.domains = {params.word("domain")};
    std::fill(meta.sequence_domain.begin(), meta.sequence_domain.end(), 0);
  }
  if (meta.domains.size() == 1 && meta.domains[0].empty()) {
    meta.domains.clear();
    meta.sequence_domain.clear();
  }
  if (meta.model.empty() && known != nullptr) meta.model = known->name;
  meta.layers = static_cast<int>(layers_.size());
  meta.experts = experts;
  meta.top_k = k_;
  meta.tokens = static_cast<std::int64_t>(data_.sequence_id.size());
  meta.layer_ids = layers_;
  for (const Diagnostic& d : warnings.items()) meta.warnings.push_back(d.message);
  data_.meta = std::move(meta);
  return std::move(data_);
}

}  // namespace sojourn
