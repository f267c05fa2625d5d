// The DRAM channel model beside recorded simulator data: every row of a reference folder run again.
#pragma once
#include <string>
#include <vector>

#include "study/validate_network.h"

namespace sojourn {

/// How many rows of one quantity of one system keep its tolerance.
struct MemoryTolerance {
  std::string system, quantity;
  std::string tolerance;  ///< in words
  int rows = 0, held = 0;
};

struct MemorySpeed {
  std::string id;
  double requests = 0, requests_per_s = 0, reference_requests_per_s = 0;
};

struct MemoryValidation {
  std::vector<ValidationCase> cases;
  std::vector<MemoryTolerance> tolerances;
  std::vector<MemorySpeed> speed;
};

/// `folder` holds systems.csv and measurements.csv, and may hold sim_speed.csv. The cases do not depend on the number
/// of threads; speed is measured after them, on one.
Result<MemoryValidation> validate_memory(const std::string& folder, int threads, ProgressSink& progress);

}  // namespace sojourn
