// Fuzzes the importers of one JSON document a file.
#include "format_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sojourn::fuzz_formats({reinterpret_cast<const char*>(data), size}, {{"gpt-oss", "mmlu/biology/a.json"},
                                                                      {"hdmoe", "experts_math_mixtral.json"},
                                                                      {"ocs", "cooking_1/routing.json"},
                                                                      {"moelens", "prompt-1.json"},
                                                                      {"core12345", "kimi-k2/set/subject/1.json"},
                                                                      {"expert-load", "expert-load.json"},
                                                                      {"prompt-profile", "profile.json"}});
  return 0;
}
