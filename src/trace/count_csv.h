// CSV tables of (layer, expert, count) under given column names: shared by the plain and the SGLang format.
#pragma once
#include <array>

#include "trace/formats.h"

namespace sojourn {

struct CountColumns {
  std::string layer, expert, count;
};
/// `sum_files`: files are ranks of one run and add up; else each file is a step.
[[nodiscard]] Result<Imported> import_count_csv(const std::vector<InputFile>& files, const CountColumns& columns,
                                                bool sum_files, const std::string& format, Diagnostics& warnings);
[[nodiscard]] bool has_columns(const InputFile& f, const CountColumns& columns);

}  // namespace sojourn
