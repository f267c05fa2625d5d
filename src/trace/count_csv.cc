// Reading (layer, expert, count) tables.
#include "trace/count_csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/csv_reader.h"

namespace sojourn {

bool has_columns(const InputFile& f, const CountColumns& columns) {
  CsvReader csv(f.head().substr(0, f.head().find('\n') + 1), f.path);
  std::vector<std::string> row;
  if (!csv.row(row)) return false;
  for (const std::string* c : {&columns.layer, &columns.expert, &columns.count})
    if (std::find(row.begin(), row.end(), *c) == row.end()) return false;
  return true;
}

Result<Imported> import_count_csv(const std::vector<InputFile>& files, const CountColumns& columns, bool sum_files,
                                  const std::string& format, Diagnostics& warnings) {
  LoadBuilder b(format);
  std::int64_t step = 0;
  const std::array<std::string, 3> names{columns.layer, columns.expert, columns.count};
  for (const InputFile& f : files) {
    CsvReader csv(f.bytes, f.path);
    std::vector<std::string> row;
    std::array<std::size_t, 3> at{};
    csv.row(row);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto it = std::find(row.begin(), row.end(), names[i]);
      if (it == row.end())
        return fail({f.path, 1, 1}, names[i], "the header has no such column",
                    fmt::format("expected {},{},{}", names[0], names[1], names[2]));
      at[i] = static_cast<std::size_t>(it - row.begin());
    }
    const std::size_t width = row.size();
    while (csv.row(row)) {
      if (row.size() != width)
        return fail(csv.here(), "", fmt::format("{} fields, the header has {}", row.size(), width), "");
      std::int64_t layer = 0, expert = 0;
      double count = 0;
      std::string why;
      if (!csv_number(row[at[0]], layer))
        return fail(csv.here(), names[0], fmt::format("'{}' is not an integer", row[at[0]].substr(0, 40)), "");
      if (!csv_number(row[at[1]], expert))
        return fail(csv.here(), names[1], fmt::format("'{}' is not an integer", row[at[1]].substr(0, 40)), "");
      if (!csv_number(row[at[2]], count))
        return fail(csv.here(), names[2], fmt::format("'{}' is not a number", row[at[2]].substr(0, 40)), "");
      if (!b.add(step, layer, expert, count, why)) return fail(csv.here(), "", why, "");
    }
    if (csv.broken()) return fail(csv.here(), "", "a quoted field never ends", "is the file cut off?");
    if (!sum_files) b.name_step(step++, f.name);
  }
  return as_loads(b.finish(files[0].span()), warnings);
}

}  // namespace sojourn
