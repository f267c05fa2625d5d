// EPLB loads: CSV of numbers, one row a layer, one column an expert; several files are several steps. A header row of
// words is passed over. Source: reference/eplb/README.md.
#include <fmt/format.h>

#include "trace/csv_reader.h"
#include "trace/formats.h"

namespace sojourn {
namespace {

Result<Imported> import_eplb(const std::vector<InputFile>& files, const ParamSet&, Diagnostics& warnings) {
  LoadBuilder b("eplb-csv");
  std::int64_t step = 0;
  for (const InputFile& f : files) {
    CsvReader csv(f.bytes, f.path);
    std::vector<std::string> row;
    std::int64_t layer = 0;
    std::size_t columns = 0;
    while (csv.row(row)) {
      double v = 0;
      if (layer == 0 && columns == 0 && !csv_number(row[0], v) && row[0].find_first_of("0123456789") != 0) {
        warnings.warning(csv.here(), "", "a header row was passed over");
        columns = row.size();
        continue;
      }
      if (columns == 0) columns = row.size();
      if (row.size() != columns)
        return fail(csv.here(), "", fmt::format("{} columns, the row before has {}", row.size(), columns),
                    "one column an expert in every row");
      for (std::size_t e = 0; e < row.size(); ++e) {
        std::string why;
        if (!csv_number(row[e], v))
          return fail(csv.here(), fmt::format("column {}", e + 1),
                      fmt::format("'{}' is not a number", row[e].substr(0, 40)), "");
        if (!b.add(step, layer, static_cast<std::int64_t>(e), v, why))
          return fail(csv.here(), fmt::format("column {}", e + 1), why, "");
      }
      ++layer;
    }
    if (csv.broken()) return fail(csv.here(), "", "a quoted field never ends", "is the file cut off?");
    b.name_step(step++, f.name);
  }
  return as_loads(b.finish(files[0].span()), warnings);
}

int sniff(const InputFile& f) {
  const std::string_view line = f.head().substr(0, f.head().find('\n'));
  if (line.find(',') == std::string_view::npos) return 0;
  for (char c : line)
    if ((c < '0' || c > '9') && c != ',' && c != '.' && c != ' ' && c != '\r' && c != 'e' && c != '+' && c != '-')
      return 0;
  return 60;
}

}  // namespace

void register_formats_eplb_csv(FormatRegistry& registry) {
  registry.add({"eplb-csv", "CSV of loads, one row a layer, one column an expert; no token order", {}},
               {sniff, import_eplb, true});
}

}  // namespace sojourn
