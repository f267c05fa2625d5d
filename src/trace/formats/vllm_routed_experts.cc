// vLLM --enable-return-routed-experts: a NumPy array [tokens, layers, k], one file a request.
#include "trace/ids_array.h"

namespace sojourn {
namespace {

Result<Imported> import_routed(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  return import_ids(files, params, warnings, "vllm-routed-experts", true);
}

int sniff(const InputFile& f) {
  const auto s = ids_shape(f);
  return s.empty() ? 0 : s[0] > s[1] ? 75 : 10;
}

}  // namespace

void register_formats_vllm_routed_experts(FormatRegistry& registry) {
  auto params = common_params();
  params.push_back(
      {.name = "array", .default_value = std::string(), .text = "array of a .npz; empty = the likely one"});
  registry.add(
      {"vllm-routed-experts", "vLLM returned routed experts, NumPy [tokens, layers, k], one file a request", params},
      {sniff, import_routed});
}

}  // namespace sojourn
