// Plain CSV `layer,expert,count`; several files are several steps.
#include "trace/count_csv.h"

namespace sojourn {

void register_formats_count_csv(FormatRegistry& registry) {
  static const CountColumns kColumns{"layer", "expert", "count"};
  registry.add({"count-csv", "CSV layer,expert,count; no token order", {}},
               {[](const InputFile& f) { return has_columns(f, kColumns) ? 90 : 0; },
                [](const std::vector<InputFile>& files, const ParamSet&, Diagnostics& warnings) {
                  return import_count_csv(files, kColumns, false, "count-csv", warnings);
                },
                true});
}

}  // namespace sojourn
