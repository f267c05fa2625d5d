// Fuzzes the importers of NumPy arrays.
#include "format_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sojourn::fuzz_formats({reinterpret_cast<const char*>(data), size},
                        {{"npy", "ids.npy"}, {"vllm-routed-experts", "routed.npy"}, {"npy-counts", "counts.npy"}});
  return 0;
}
