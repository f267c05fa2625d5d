// Writing traces and loads in other tools' formats.
#pragma once
#include <string>
#include <vector>

#include "sojourn/params.h"
#include "sojourn/trace.h"
#include "trace/file.h"
#include "trace/loads.h"

namespace sojourn {

/// Names: eplb-csv, expert-load, npy, npy-counts, moe-balance. Those of loads take traces too (summed).
[[nodiscard]] std::vector<PluginInfo> export_formats();
[[nodiscard]] Status export_to(const Trace& trace, const std::string& format, const std::string& out);
[[nodiscard]] Status export_to(const LoadData& loads, const std::string& format, const std::string& out);

}  // namespace sojourn
