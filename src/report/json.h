// The comparison as JSON: schema "sojourn.compare/1" of the command-line contract.
#pragma once
#include <string>

#include "sojourn/results.h"

namespace sojourn {

struct CompareJsonOptions {
  bool interrupted = false;  ///< adds "interrupted": true; only finished runs are listed
};

/// Times in integer picoseconds, energies in picojoules, sizes in bytes, EDP in joule-seconds. Keys come in a fixed
/// order; `wall_s` is the only value that two equal runs may differ in.
[[nodiscard]] std::string compare_json(const CompareResult& result, const CompareJsonOptions& options = {});

/// The text with every "wall_s" value set to 0: what determinism checks compare.
[[nodiscard]] std::string without_timings(std::string json);

}  // namespace sojourn
