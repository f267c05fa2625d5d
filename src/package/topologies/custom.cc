// Chiplets without any links of their own: every link is a [[link]] table of the package file. Table routing only.
#include "package/topologies.h"

namespace sojourn {
namespace {

TopologyGraph build_custom(const ParamSet& params, const SourceSpan&, const std::string&, Diagnostics&) {
  const int count = static_cast<int>(params.integer("chiplets"));
  TopologyGraph out;
  while (out.width * out.width < count) ++out.width;  // drawn in a square
  for (int c = 0; c < count; ++c) out.positions.push_back({c % out.width, c / out.width});
  out.height = (count + out.width - 1) / out.width;
  return out;
}

}  // namespace

void register_topologies_custom(TopologyRegistry& registry) {
  const std::int64_t one = 1;
  registry.add({"custom",
                "chiplets joined by the [[link]] tables of the file and nothing else",
                {{"chiplets", Unit::none, one, 1, kMaxChiplets, {}, "compute chiplets", "ours", true}}},
               build_custom);
}

}  // namespace sojourn
