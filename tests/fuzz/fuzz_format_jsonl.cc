// Fuzzes the importers of JSON lines.
#include "format_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sojourn::fuzz_formats({reinterpret_cast<const char*>(data), size},
                        {{"vllm-log", "log.jsonl"},
                         {"megatron", "rank0.jsonl"},
                         {"moe-balance", "trace.jsonl"},
                         {"route-profile", "route_profile.jsonl"},
                         {"experts4bit-sets", "olmoe/routed_sets.jsonl.gz"}});
  return 0;
}
