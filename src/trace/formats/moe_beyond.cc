// MoE-Beyond CSV: `Layer ID,Batch Number,Token,Activated Expert IDs`, rows by layer and then by token; token pieces may
// hold commas, quotes and newlines. Source: the MoE-Beyond paper's repository. Assumptions: one file is one prompt,
// prefill only; the id order in a row carries no rank.
#include <fmt/format.h>

#include "trace/csv_reader.h"
#include "trace/formats.h"
#include "trace/json_reader.h"

namespace sojourn {
namespace {

constexpr const char* kHeader[] = {"Layer ID", "Batch Number", "Token", "Activated Expert IDs"};

Result<Imported> import_moe_beyond(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  TraceBuilder b("moe-beyond");
  b.meta.recorded_from = "DeepSeek-V2-Lite";
  b.meta.note =
      "prefill only; prompts begin with boilerplate, so their first tokens route alike; expert order carries no rank";
  for (const InputFile& f : files) {
    CsvReader csv(f.bytes, f.path);
    std::vector<std::string> row;
    if (!csv.row(row) || row.size() != 4 || !std::equal(row.begin(), row.end(), kHeader))
      return fail({f.path, 1, 1}, "header", "expected the columns Layer ID,Batch Number,Token,Activated Expert IDs",
                  "is this a MoE-Beyond file?");
    SequenceRows rows;
    std::vector<int> ids;
    while (csv.row(row)) {
      int layer = 0, batch = 0;
      if (row.size() != 4)
        return fail(csv.here(), "", fmt::format("{} fields, expected 4", row.size()),
                    "fields with commas must be quoted");
      if (!csv_number(row[0], layer))
        return fail(csv.here(), "Layer ID", fmt::format("'{}' is not a layer number", row[0].substr(0, 40)), "");
      if (!csv_number(row[1], batch))
        return fail(csv.here(), "Batch Number", fmt::format("'{}' is not a number", row[1].substr(0, 40)), "");
      if (batch != 0)
        return fail(csv.here(), "Batch Number", fmt::format("batch {}: only the prefill pass (0) is known", batch),
                    "export one prompt a file");
      JsonReader r(row[3], f.path, csv.here().line);
      std::string why;
      if (!r.ids(ids) || !r.finish())
        return fail(csv.here(), "Activated Expert IDs", "not a list of expert ids", "e.g. \"[8, 26, 56]\"");
      if (!b.add(rows, layer, ids, {}, why)) return fail(csv.here(), "Activated Expert IDs", why, "");
    }
    if (csv.broken()) return fail(csv.here(), "", "a quoted field never ends", "is the file cut off?");
    const std::size_t tokens =
        rows.ids.empty() ? 0 : rows.ids.begin()->second.size() / static_cast<std::size_t>(std::max(1, b.top_k()));
    rows.phase.assign(tokens, 0);
    if (auto ok = b.close(rows, "", f.span(), warnings); !ok) return tl::unexpected(ok.error());
  }
  return as_trace(b.finish(params, files[0].span(), warnings));
}

int sniff(const InputFile& f) {
  return f.head().substr(0, 60).find("Layer ID,Batch Number,Token") != std::string_view::npos ? 98 : 0;
}

}  // namespace

void register_formats_moe_beyond(FormatRegistry& registry) {
  registry.add({"moe-beyond", "MoE-Beyond CSV of DeepSeek-V2-Lite, one file a prompt (prefill)", common_params()},
               {sniff, import_moe_beyond});
}

}  // namespace sojourn
