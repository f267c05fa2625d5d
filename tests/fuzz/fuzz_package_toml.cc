// Fuzz target: any bytes as a package file. Must end in a Package or in
// findings, never in a crash, a hang or a flood.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "package/fits.h"
#include "package/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sojourn::PackageLimits limits;
  limits.chiplets = 64;  // the same code as for 1024, in less time and memory
  limits.route_entries = 1 << 18;
  sojourn::Diagnostics warnings;
  const auto package =
      sojourn::parse_package({reinterpret_cast<const char*>(data), size}, "fuzz.toml", &warnings, limits);
  if (!package) {
    // A refusal says why.
    if (!package.error().diagnostics.has_errors() || package.error().diagnostics.text().empty()) std::abort();
    return 0;
  }
  // An accepted package is whole: every pair of chiplets is joined and every
  // route is continuous.
  const int chiplets = static_cast<int>(package->chiplets.size());
  for (int a = 0; a < chiplets; ++a) {
    for (int b = 0; b < chiplets; ++b) {
      int at = package->chiplets[static_cast<std::size_t>(a)].node;
      for (const int u : package->route_chiplets(a, b)) {
        const sojourn::Link& link = package->links[static_cast<std::size_t>(u)];
        if (link.from != at) std::abort();
        at = link.to;
      }
      if (at != package->chiplets[static_cast<std::size_t>(b)].node) std::abort();
    }
  }
  (void)sojourn::check_expert_fits(*package, 1 << 20, "fuzz");
  return 0;
}
