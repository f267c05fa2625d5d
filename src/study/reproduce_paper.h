// The numbers a paper printed, from systems/<name>.toml: what results are put beside. Nothing here enters a simulation.
#pragma once
#include <string>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn {

struct PaperNumber {
  std::string id;      ///< "fig5.prefill.vs-hydra"
  double value = 0;    ///< in `unit`
  std::string unit;    ///< "%" (a reduction), "B", ...
  std::string source;  ///< section, figure or table
  bool bound = false;  ///< the paper states it as a limit, not as a result
};

/// A number that `compare` prints beside a summary row.
struct PaperComparison {
  std::string mode, policy, against, number, note;
};

struct PaperNumbers {
  std::string name, title, publication, models;
  int prefill_tokens = 0, decode_tokens = 0;
  double copies = 0;
  int updates_max = 0;
  std::vector<PaperNumber> numbers;
  std::vector<PaperComparison> comparisons;
  std::string sha256;
  [[nodiscard]] const PaperNumber* find(const std::string& id) const;
};

/// `name`: a system ("hcrmap", looked up as ROOT/systems/<name>.toml) or a path with '/' or ending in ".toml". Errors:
/// unknown (with the known ones), not TOML, wrong keys, an id given twice, a comparison of an unknown number.
[[nodiscard]] Result<PaperNumbers> load_paper_numbers(const std::string& name, const std::vector<std::string>& roots);

}  // namespace sojourn
