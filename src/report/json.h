// The comparison as JSON: schema "sojourn.compare/1" of the command-line contract.
#pragma once
#include <string>

#include "sojourn/results.h"

namespace sojourn {

/// Times in integer picoseconds, energies in picojoules, sizes in bytes, EDP in joule-seconds. Keys come in a fixed
/// order; `wall_s` is the only value that two equal runs may differ in. "interrupted": true is there when
/// the user stopped the comparison and only finished runs are listed.
[[nodiscard]] std::string compare_json(const CompareResult& result);

/// The text with every "wall_s" value set to 0: what determinism checks compare.
[[nodiscard]] std::string without_timings(std::string json);

}  // namespace sojourn
