// Fuzzes the importers of CSV.
#include "format_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sojourn::fuzz_formats({reinterpret_cast<const char*>(data), size}, {{"moe-beyond", "prompt_1_data.csv"},
                                                                      {"eplb-csv", "loads.csv"},
                                                                      {"count-csv", "counts.csv"},
                                                                      {"sglang-csv", "rank0.csv"},
                                                                      {"switch-batch", "encoder_4/moe_l1.csv"}});
  return 0;
}
