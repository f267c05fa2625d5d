// SGLang's older expert distribution CSV `layer_id,expert_id,count`, one file a rank: ranks add up.
#include "trace/count_csv.h"

namespace sojourn {

void register_formats_sglang_csv(FormatRegistry& registry) {
  static const CountColumns kColumns{"layer_id", "expert_id", "count"};
  registry.add({"sglang-csv", "SGLang expert distribution CSV, one file a rank (added up); no token order", {}},
               {[](const InputFile& f) { return has_columns(f, kColumns) ? 95 : 0; },
                [](const std::vector<InputFile>& files, const ParamSet&, Diagnostics& warnings) {
                  return import_count_csv(files, kColumns, true, "sglang-csv", warnings);
                },
                true});
}

}  // namespace sojourn
