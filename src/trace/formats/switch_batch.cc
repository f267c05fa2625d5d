// moe-inference batch CSVs, moe_l<layer>.csv: iteration, latency (ms), bytes sent, bytes received, `tokens per expert`
// (a JSON list in a quoted field). Source: sacs-epfl/moe-inference. A step is an iteration. Caution: padding positions
// are counted.
#include <fmt/format.h>

#include <set>

#include "trace/csv_reader.h"
#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

struct Cell {
  std::int64_t iteration;
  int layer;
  std::vector<float> counts;
  SourceSpan where;
};

bool layer_of(const std::string& name, int& layer) {
  const auto at = name.rfind("_l"), dot = name.rfind('.');
  return at != std::string::npos && dot != std::string::npos && dot > at + 2 &&
         csv_number(std::string_view(name).substr(at + 2, dot - at - 2), layer);
}

Result<Imported> import_switch(const std::vector<InputFile>& files, const ParamSet&, Diagnostics& warnings) {
  std::vector<Cell> cells;
  std::set<std::int64_t> iterations;
  std::size_t experts = 0;
  for (const InputFile& f : files) {
    int layer = 0;
    if (!layer_of(f.name, layer))
      return fail(f.span(), "", "the layer is in the file name, which must be like moe_l3.csv", "rename the file");
    CsvReader csv(f.bytes, f.path);
    std::vector<std::string> row;
    std::size_t at = 0;
    if (!csv.row(row)) return fail({f.path, 1, 1}, "", "the file is empty", "");
    while (at < row.size() && row[at] != "tokens per expert") ++at;
    if (at == row.size() || row[0] != "iteration")
      return fail({f.path, 1, 1}, "header", "expected the columns iteration and tokens per expert", "");
    const std::size_t width = row.size();
    while (csv.row(row)) {
      Cell c{0, layer, {}, csv.here()};
      if (row.size() != width)
        return fail(csv.here(), "", fmt::format("{} fields, the header has {}", row.size(), width), "");
      if (!csv_number(row[0], c.iteration)) return fail(csv.here(), "iteration", "not a number", "");
      JsonReader r(row[at], f.path, csv.here().line);
      if (!r.floats(c.counts) || !r.finish() || c.counts.empty())
        return fail(csv.here(), "tokens per expert", "not a list of numbers", "");
      if (experts == 0) experts = c.counts.size();
      if (c.counts.size() != experts)
        return fail(csv.here(), "tokens per expert",
                    fmt::format("{} experts where the rows before have {}", c.counts.size(), experts),
                    "import one folder (one model) at a time");
      iterations.insert(c.iteration);
      cells.push_back(std::move(c));
    }
    if (csv.broken()) return fail(csv.here(), "", "a quoted field never ends", "is the file cut off?");
  }
  LoadBuilder b("switch-batch");
  b.meta.top_k = 1;
  b.meta.recorded_from = fmt::format("google/switch-base-{}", experts);
  b.meta.note = "a step is a batch; padding positions are routed and counted too";
  for (const Cell& c : cells) {
    const auto step = static_cast<std::int64_t>(std::distance(iterations.begin(), iterations.find(c.iteration)));
    b.name_step(step, fmt::format("iteration {}", c.iteration));
    for (std::size_t e = 0; e < c.counts.size(); ++e) {
      std::string why;
      if (!b.add(step, c.layer, static_cast<std::int64_t>(e), static_cast<double>(c.counts[e]), why))
        return fail(c.where, "tokens per expert", why, "");
    }
  }
  warnings.warning(files[0].span(), "",
                   "padding positions are counted as tokens: the hottest expert is probably less hot in real traffic");
  return as_loads(b.finish(files[0].span()), warnings);
}

int sniff(const InputFile& f) { return has_all(f.head().substr(0, 400), {"iteration,", "tokens per expert"}) ? 95 : 0; }

}  // namespace

void register_formats_switch_batch(FormatRegistry& registry) {
  registry.add({"switch-batch", "moe-inference CSVs, one file a layer, one row a batch; no token order", {}},
               {sniff, import_switch, true});
}

}  // namespace sojourn
