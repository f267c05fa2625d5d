// Fuzzes the the safe pickle reader and the PyTorch importer.
#include "format_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sojourn::fuzz_formats({reinterpret_cast<const char*>(data), size},
                        {{"olmoe-pickle", "olmoe/expert_counts/c4.pkl"}, {"torch-counts", "counts.pt"}});
  return 0;
}
