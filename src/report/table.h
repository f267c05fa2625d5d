// The comparison as text for a terminal.
#pragma once
#include <string>

#include "report/text_table.h"
#include "sojourn/results.h"
#include "study/reproduce_paper.h"

namespace sojourn {

/// For each mode a table of model x policy, then winners with reasons, geomean reductions beside the paper's, traces
/// and assumptions. Ends with a line break.
[[nodiscard]] std::string compare_tables(const CompareResult& result, const TextStyle& style = {},
                                         const PaperNumbers* paper = nullptr);

}  // namespace sojourn
