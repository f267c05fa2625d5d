// The documents `trace info` prints.
#pragma once
#include <string>

#include "trace/stats.h"

namespace sojourn {

[[nodiscard]] std::string trace_info_document(const Trace& trace, const std::string& path);
[[nodiscard]] std::string loads_info_document(const LoadData& data, const std::string& path);
[[nodiscard]] std::string trace_info_table(const Trace& trace);
[[nodiscard]] std::string loads_info_table(const LoadData& data);

}  // namespace sojourn
