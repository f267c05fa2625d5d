// A reproduced study as text for a terminal.
#pragma once
#include <string>

#include "report/text_table.h"
#include "study/reproduce.h"

namespace sojourn {

/// Which reading supports which claim, then every number of the paper beside ours, then what was left out.
[[nodiscard]] std::string reproduce_tables(const ReproduceResult& study, const TextStyle& style = {});

/// "13.2 smaller" of a check; "-" when it was not measured.
[[nodiscard]] std::string check_value(const ReproduceCheck* check, bool with_verdict);
/// A value in its unit, as the tables print it.
[[nodiscard]] std::string check_number(double value, const std::string& unit);

/// The paper's, with the decimals it prints.
[[nodiscard]] std::string paper_number(double value, const std::string& unit);

}  // namespace sojourn
