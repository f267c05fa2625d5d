// Megatron-LM --moe-routing-trace-path JSONL, one file a rank: {step, stage, block, layer, rank, num_tokens, topk,
// top_indices[, mtp_idx]}. Assumptions: top_indices is [num_tokens][topk] (flat lists are cut by topk); (stage, block,
// layer) names a layer; tokens of one step and rank are one sequence; rows of multi-token-prediction heads (mtp_idx)
// are left out.
#include <fmt/format.h>

#include <array>
#include <set>

#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

using LayerKey = std::array<int, 3>;
struct Row {
  LayerKey layer{};
  std::int64_t step = 0, rank = 0, tokens = -1;
  int topk = 0;
  bool mtp = false;
  std::vector<std::vector<int>> ids;
  SourceSpan where;
};

bool read_row(JsonReader& r, Row& row) {
  std::vector<int> flat;
  const bool read = r.object([&](const std::string& key) {
    if (key == "step") return r.integer(row.step);
    if (key == "rank") return r.integer(row.rank);
    if (key == "stage") return r.null() || r.index(row.layer[0], 4095);
    if (key == "block") return r.null() || r.index(row.layer[1], 4095);
    if (key == "layer") return r.index(row.layer[2], 4095);
    if (key == "num_tokens") return r.integer(row.tokens);
    if (key == "topk") return r.index(row.topk, 1024);
    if (key == "mtp_idx") {
      row.mtp = r.peek() != JsonReader::Kind::null;
      return r.skip();
    }
    if (key != "top_indices") return r.skip();
    return r.array([&] {
      if (r.peek() == JsonReader::Kind::array) return r.ids(row.ids.emplace_back());
      int id = 0;
      if (!r.index(id, 65534)) return false;
      flat.push_back(id);
      return true;
    });
  });
  if (!read || !r.finish()) return false;
  if (!flat.empty()) {
    const auto k = static_cast<std::size_t>(row.topk);
    if (k == 0 || flat.size() % k != 0 || !row.ids.empty())
      return r.error("top_indices cannot be cut into rows of topk ids");
    for (std::size_t i = 0; i < flat.size(); i += k)
      row.ids.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(i),
                           flat.begin() + static_cast<std::ptrdiff_t>(i + k));
  }
  if (row.tokens >= 0 && static_cast<std::size_t>(row.tokens) != row.ids.size())
    return r.error(fmt::format("num_tokens {} but {} rows of ids", row.tokens, row.ids.size()));
  return true;
}

Result<Imported> import_megatron(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Row>> steps;  // (step, rank)
  std::set<LayerKey> keys;
  std::size_t mtp = 0;
  Failure failure;
  for (const InputFile& f : files) {
    const bool read = each_line(f.bytes, [&](std::string_view line, int number) {
      JsonReader r(line, f.path, number);
      Row row;
      if (!read_row(r, row)) {
        failure = r.failure();
        return false;
      }
      row.where = {f.path, number, 1};
      if (row.mtp) {
        ++mtp;
        return true;
      }
      keys.insert(row.layer);
      steps[{row.step, row.rank}].push_back(std::move(row));
      return true;
    });
    if (!read) return tl::unexpected(failure);
  }
  if (mtp > 0)
    warnings.warning(files[0].span(), "mtp_idx",
                     fmt::format("{} rows of multi-token-prediction heads were left out", mtp));
  // A layer's number is its own where no two stages or blocks share it, else its place in (stage, block, layer) order.
  std::set<int> own;
  for (const LayerKey& k : keys) own.insert(k[2]);
  const bool unique = own.size() == keys.size();
  if (!unique)
    warnings.warning(files[0].span(), "layer",
                     "layer numbers repeat over stages or blocks: layers are numbered in (stage, block, layer) order");
  TraceBuilder b("megatron");
  b.meta.note = "a sequence is the tokens of one step on one rank";
  for (auto& [step, list] : steps) {
    SequenceRows rows;
    for (const Row& row : list) {
      const int layer = unique ? row.layer[2] : static_cast<int>(std::distance(keys.begin(), keys.find(row.layer)));
      for (const auto& ids : row.ids) {
        std::string why;
        if (!b.add(rows, layer, ids, {}, why)) return fail(row.where, "top_indices", why, "");
      }
    }
    if (auto ok = b.close(rows, "", list[0].where, warnings); !ok) return tl::unexpected(ok.error());
  }
  return as_trace(b.finish(params, files[0].span(), warnings));
}

int sniff(const InputFile& f) {
  return first_char(f.head()) == '{' && has_all(f.head().substr(0, 4096), {"\"top_indices\"", "\"layer\""}) ? 95 : 0;
}

}  // namespace

void register_formats_megatron(FormatRegistry& registry) {
  registry.add({"megatron", "Megatron-LM MoE routing trace JSONL, one file a rank", common_params()},
               {sniff, import_megatron});
}

}  // namespace sojourn
