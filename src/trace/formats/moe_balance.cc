// moe-balance JSONL: each line one batch of one layer: {layer, batch_id, origin_rows [tokens], topk_experts
// [tokens][k], topk_weights?, request_id?}. Source: the project's trace format page. Assumptions: a batch is one
// sequence; origin_rows (device rows, often made up) are not kept.
#include <fmt/format.h>

#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

struct Line {
  int layer = -1;
  std::int64_t batch = -1, origins = -1;
  std::vector<std::vector<int>> ids;
  std::vector<std::vector<float>> weights;
};

bool read_line(JsonReader& r, Line& line) {
  const bool read = r.object([&](const std::string& key) {
    if (key == "layer") return r.index(line.layer, 4095);
    if (key == "batch_id") return r.integer(line.batch);
    if (key == "origin_rows") {
      line.origins = 0;
      if (r.peek() != JsonReader::Kind::array) return r.skip();
      return r.array([&] { return ++line.origins > 0 && r.skip(); });
    }
    if (key == "topk_experts") return r.array([&] { return r.ids(line.ids.emplace_back()); });
    if (key == "topk_weights") return r.null() || r.array([&] { return r.floats(line.weights.emplace_back()); });
    return r.skip();
  });
  if (!read || !r.finish()) return false;
  if (line.layer < 0 || line.batch < 0) return r.error("a line needs layer, batch_id and topk_experts");
  if (line.origins > 0 && static_cast<std::size_t>(line.origins) != line.ids.size())
    return r.error(fmt::format("{} origin_rows for {} tokens", line.origins, line.ids.size()));
  if (!line.weights.empty() && line.weights.size() != line.ids.size())
    return r.error(fmt::format("{} rows of weights for {} tokens", line.weights.size(), line.ids.size()));
  return true;
}

Result<Imported> import_moe_balance(const std::vector<InputFile>& files, const ParamSet& params,
                                    Diagnostics& warnings) {
  TraceBuilder b("moe-balance");
  b.meta.note = "a sequence is one batch";
  for (const InputFile& f : files) {
    std::vector<std::int64_t> order;  // batches by first appearance
    std::map<std::int64_t, SequenceRows> batches;
    Failure failure;
    const bool read = each_line(f.bytes, [&](std::string_view text, int number) {
      JsonReader r(text, f.path, number);
      Line line;
      std::string why;
      bool good = read_line(r, line);
      if (good && batches.count(line.batch) == 0) order.push_back(line.batch);
      for (std::size_t i = 0; good && i < line.ids.size(); ++i)
        good = b.add(batches[line.batch], line.layer, line.ids[i],
                     line.weights.empty() ? std::span<const float>{} : line.weights[i], why) ||
               r.error(why);
      if (!good) failure = r.failure();
      return good;
    });
    if (!read) return tl::unexpected(failure);
    for (std::int64_t batch : order)
      if (auto ok = b.close(batches[batch], "", f.span(), warnings); !ok) return tl::unexpected(ok.error());
  }
  return as_trace(b.finish(params, files[0].span(), warnings));
}

int sniff(const InputFile& f) {
  return first_char(f.head()) == '{' && has_all(f.head(), {"\"topk_experts\"", "\"batch_id\""}) ? 95 : 0;
}

}  // namespace

void register_formats_moe_balance(FormatRegistry& registry) {
  registry.add({"moe-balance", "moe-balance JSONL, a line a batch and layer", common_params()},
               {sniff, import_moe_balance});
}

}  // namespace sojourn
