// A reproduced study as JSON: schema "sojourn.reproduce/1" of the command-line contract.
#pragma once
#include <string>

#include "study/reproduce.h"

namespace sojourn {

/// Nothing in it depends on the time, the machine, the threads, or on whether the study was interrupted and resumed.
[[nodiscard]] std::string reproduce_json(const ReproduceResult& study);

}  // namespace sojourn
