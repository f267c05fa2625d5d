// The popnet model beside recorded popnet runs: NAME.bench and NAME.delay.txt in a folder.
//
//   error of a packet = measured delay / recorded delay - 1; makespan = last completion
//
// Assumption: XY mesh, as large as the largest coordinate; 3 VCs, buffers of 12 flits, flit size 4, seed 1, unless
// settings.csv says otherwise (columns name, k, vcs, in_buffer, out_buffer, flit_size, seed, routing; any of them).
// Source: README of reference/popnet.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "study/validate_network.h"

namespace sojourn {

/// A job for each pair of files, to be run later; problems of the files go into `problems`.
[[nodiscard]] std::vector<std::function<std::vector<ValidationCase>()>> plan_popnet(const std::string& folder,
                                                                                    Diagnostics& problems);

}  // namespace sojourn
