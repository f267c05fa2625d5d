// The flit network beside recorded simulator data: every row of a reference folder run again.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "sojourn/diagnostics.h"

namespace sojourn {

struct ValidationCase {
  std::string file, id;
  std::string quantity;  ///< plat_avg | nlat_avg | accepted | saturation | makespan | packet
  double reference = 0, measured = 0;
  [[nodiscard]] double error() const {
    if (reference == 0) return measured == 0 ? 0 : 1;
    return measured / reference - 1;
  }
};

struct ValidationSpeed {
  std::string id, load;
  double hops_per_s = 0, cycles_per_s = 0;
  double reference_hops_per_s = 0, reference_cycles_per_s = 0;
};

struct ValidationSummary {
  std::string quantity;
  std::size_t n = 0;
  double median_abs = 0, p95_abs = 0, max_abs = 0;  ///< relative errors
};

std::vector<ValidationSummary> summarize(const std::vector<ValidationCase>& cases);

struct NetworkValidation {
  std::vector<ValidationCase> cases;
  std::vector<ValidationSpeed> speed;
  [[nodiscard]] std::vector<ValidationSummary> summary() const { return summarize(cases); }
};

/// `folder` holds any of open_loop.csv, seed_runs.csv, saturation.csv, batch.csv, zero_load.csv, speed.csv and
/// traces/*.csv, and of popnet's NAME.bench with NAME.delay.txt (validate_popnet.h). Random traffic is drawn anew from
/// `seed`; rows marked saturated give their accepted rate only. The cases do not depend on the number of threads; speed
/// is measured after them, on one.
Result<NetworkValidation> validate_network(const std::string& folder, std::uint64_t seed, int threads,
                                           ProgressSink& progress);

}  // namespace sojourn
