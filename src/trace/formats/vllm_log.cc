// vLLM-MoE-Logger JSONL (VLLM_LOG_MOE): a meta line, then {req_id, token_idx, layer, topk_ids, topk_weights}.
// `token_idx` returning to 0 is the only mark of a new forward pass; req_id is useless. Source: vLLM-MoE-Logger.
// Dropped and reported: warm-up passes (every row the same: dummy tokens of memory profiling and graph capture), and,
// where token_idx counts on through the file, runs of rows that are the same and whose weights are all equal.
// Assumption: a pass is one sequence; the phase is inferred from the sizes of the passes.
#include <fmt/format.h>

#include <algorithm>

#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

struct Row {
  std::vector<int> ids;
  std::vector<float> weights;
  bool operator==(const Row&) const = default;
};
using Pass = std::vector<Row>;
constexpr std::size_t kDummyRun = 8;  ///< fewer equal rows in a row may be real

bool all_same(const Pass& p) {
  return std::all_of(p.begin(), p.end(), [&](const Row& r) { return r == p[0]; });
}

bool flat(const Row& r) {
  return r.weights.size() > 1 &&
         std::all_of(r.weights.begin(), r.weights.end(), [&](float w) { return w == r.weights[0]; });
}

struct Log {
  std::map<int, std::vector<Pass>> passes;  ///< by layer
  std::map<int, std::int64_t> last;
  std::size_t rows = 0;
};

bool read_line(JsonReader& r, TraceMeta& meta, Log& log) {
  std::string type = "route";
  Row row;
  std::int64_t token = -1;
  int layer = -1;
  const bool read = r.object([&](const std::string& key) {
    if (key == "type") return r.string(type);
    if (key == "model_id" && r.peek() == JsonReader::Kind::string) return r.string(meta.recorded_from);
    if (key == "num_experts") return r.index(meta.experts, 65535);
    if (key == "top_k") return r.index(meta.top_k, 1024);
    if (key == "token_idx") return r.integer(token);
    if (key == "layer") return r.index(layer, 4095);
    if (key == "topk_ids") return r.ids(row.ids);
    if (key == "topk_weights") return r.floats(row.weights);
    return r.skip();
  });
  if (!read || !r.finish()) return false;
  if (type != "route") return true;
  if (layer < 0 || token < 0 || row.ids.empty()) return r.error("a route needs layer, token_idx and topk_ids");
  ++log.rows;
  auto& passes = log.passes[layer];
  const auto last = log.last.find(layer);
  if (last == log.last.end() || token <= last->second) passes.emplace_back();
  log.last[layer] = token;
  passes.back().push_back(std::move(row));
  return true;
}

/// Which passes are warm-up: the same answer is needed of every layer.
std::vector<bool> warm_up(const Log& log, std::size_t count) {
  std::vector<bool> out(count, false);
  bool leading = true;
  for (std::size_t p = 0; p < count; ++p) {
    bool same = true;
    std::size_t n = 0;
    for (const auto& [layer, passes] : log.passes) {
      same = same && all_same(passes[p]);
      n = passes[p].size();
    }
    // A pass of one row is warm-up only when it repeats the row of the warm-up before it.
    if (same && n == 1)
      same = p > 0 && out[p - 1] && log.passes.begin()->second[p][0] == log.passes.begin()->second[p - 1][0];
    out[p] = same && (leading || n >= kDummyRun);
    leading = leading && same;
  }
  return out;
}

/// Removes runs of equal rows with flat weights from a log whose token_idx counts on; returns the rows removed.
std::size_t drop_flat_runs(Log& log) {
  const auto& first = log.passes.begin()->second[0];
  std::vector<bool> drop(first.size(), false);
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < first.size();) {
    std::size_t j = i + 1;
    while (j < first.size() && first[j] == first[i]) ++j;
    if (j - i >= kDummyRun && flat(first[i]))
      for (std::size_t t = i; t < j; ++t) {
        drop[t] = true;
        ++dropped;
      }
    i = j;
  }
  for (auto& [layer, passes] : log.passes) {
    Pass kept;
    for (std::size_t t = 0; t < passes[0].size(); ++t)
      if (!drop[t]) kept.push_back(std::move(passes[0][t]));
    passes[0] = std::move(kept);
  }
  return dropped * log.passes.size();
}

/// First pass of the tail that looks like decoding: sizes that only shrink, and never by more than half.
std::size_t decode_start(const std::vector<std::size_t>& sizes) {
  std::size_t i = sizes.size();
  while (i > 1 && sizes[i - 2] >= sizes[i - 1] && sizes[i - 2] <= 2 * sizes[i - 1]) --i;
  return sizes.size() - (i == 0 ? 0 : i - 1) >= 4 ? i - 1 : sizes.size();
}

Status import_file(const InputFile& f, TraceBuilder& b, Diagnostics& warnings) {
  Log log;
  Failure failure;
  const bool read = each_line(f.bytes, [&](std::string_view line, int number) {
    JsonReader r(line, f.path, number);
    if (read_line(r, b.meta, log)) return true;
    failure = r.failure();
    return false;
  });
  if (!read) return tl::unexpected(failure);
  if (log.passes.empty()) {
    warnings.warning(f.span(), "", "holds no route lines; left out");
    return {};
  }
  const auto& first = log.passes.begin()->second;
  for (const auto& [layer, passes] : log.passes) {
    bool agree = passes.size() == first.size();
    for (std::size_t p = 0; agree && p < passes.size(); ++p) agree = passes[p].size() == first[p].size();
    if (!agree)
      return fail(f.span(), fmt::format("layer {}", layer),
                  fmt::format("its passes differ from those of layer {}", log.passes.begin()->first),
                  "every layer must log every token of every pass: is the file cut off?");
  }
  std::size_t dropped = 0;
  const std::size_t count = first.size();
  const bool runs_on = count == 1;
  if (runs_on) {
    dropped = drop_flat_runs(log);
    warnings.warning(f.span(), "token_idx",
                     fmt::format("token_idx never returns to 0: forward passes cannot be told apart ({})", f.name));
  }
  const std::vector<bool> warm =
      runs_on ? std::vector<bool>(1, log.passes.begin()->second[0].empty()) : warm_up(log, count);
  std::vector<std::size_t> sizes;
  for (std::size_t p = 0; p < count; ++p) {
    if (warm[p])
      dropped += first[p].size() * log.passes.size();
    else
      sizes.push_back(first[p].size());
  }
  if (dropped > 0)
    warnings.warning(
        f.span(), "",
        fmt::format("{} of {} rows are warm-up (dummy tokens, routed alike) and were dropped", dropped, log.rows));
  const std::size_t decode = runs_on ? sizes.size() : decode_start(sizes);
  if (!runs_on)
    warnings.warning(
        f.span(), "phase",
        fmt::format("phases inferred from pass sizes: {} prefill and {} decode passes", decode, sizes.size() - decode));
  std::size_t kept = 0;
  for (std::size_t p = 0; p < count; ++p) {
    if (warm[p]) continue;
    SequenceRows rows;
    for (const auto& [layer, passes] : log.passes)
      for (const Row& row : passes[p]) {
        std::string why;
        if (!b.add(rows, layer, row.ids, row.weights, why))
          return fail(f.span(), fmt::format("layer {}, pass {}", layer, p), why, "");
      }
    if (!runs_on) rows.phase.assign(first[p].size(), kept >= decode ? 1 : 0);
    ++kept;
    if (auto ok = b.close(rows, "", f.span(), warnings); !ok) return tl::unexpected(ok.error());
  }
  return {};
}

Result<Imported> import_vllm_log(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  TraceBuilder b("vllm-log");
  b.meta.note = "a sequence is one forward pass (engine step); requests cannot be told apart";
  for (const InputFile& f : files)
    if (auto ok = import_file(f, b, warnings); !ok) return tl::unexpected(ok.error());
  return as_trace(b.finish(params, files[0].span(), warnings));
}

int sniff(const InputFile& f) {
  return first_char(f.head()) == '{' && has_all(f.head(), {"\"token_idx\"", "\"topk_ids\""}) ? 95 : 0;
}

}  // namespace

void register_formats_vllm_log(FormatRegistry& registry) {
  registry.add({"vllm-log", "vLLM MoE logger JSONL; warm-up rows dropped, passes reconstructed", common_params()},
               {sniff, import_vllm_log});
}

}  // namespace sojourn
