// Which tiers can hold one expert, and what to say when none can.
#include "package/fits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"

namespace sojourn {
namespace {

/// The largest usable size of a bank set of the tier; -1 when the package has no such tier.
Bytes largest_set(const Package& package, Tier tier) {
  Bytes largest = -1;
  for (const BankSet& set : package.bank_sets)
    if (set.tier == tier) largest = std::max(largest, set.usable);
  return largest;
}

}  // namespace

bool tier_holds(const Package& package, Tier tier, Bytes expert_bytes) {
  return largest_set(package, tier) >= std::max<Bytes>(expert_bytes, 0);
}

std::array<bool, kTiers> tiers_that_hold(const Package& package, Bytes expert_bytes) {
  std::array<bool, kTiers> out{};
  for (int t = 0; t < kTiers; ++t)
    out[static_cast<std::size_t>(t)] = tier_holds(package, static_cast<Tier>(t), expert_bytes);
  return out;
}

Diagnostics check_expert_fits(const Package& package, Bytes expert_bytes, const std::string& model) {
  Diagnostics out;
  const SourceSpan where{package.name, 0, 0};
  if (expert_bytes <= 0) {
    out.error(where, "", fmt::format("an expert of {} has no weights", model), "check hidden, moe_ff and weight_bytes");
    return out;
  }
  for (int t = 0; t < kTiers; ++t) {
    const Tier tier = static_cast<Tier>(t);
    const Bytes largest = largest_set(package, tier);
    if (largest < 0 || largest >= expert_bytes) continue;
    out.warning(where, fmt::format("memory.{}", tier_name(tier)),
                fmt::format("an expert of {} ({}) does not fit in a bank set ({} usable); the tier holds no expert",
                            model, format_bytes(expert_bytes), format_bytes(largest)));
  }
  for (int c = 0; c < package.compute_count; ++c) {
    bool held = false;
    for (int t = 0; t < kTiers; ++t)
      for (const int set : package.visible(static_cast<Tier>(t), c))
        held = held || package.bank_sets[static_cast<std::size_t>(set)].usable >= expert_bytes;
    if (held) continue;
    out.error(where, "memory",
              fmt::format("no tier that {} sees can hold one expert of {} ({})",
                          package.chiplets[static_cast<std::size_t>(c)].name, model, format_bytes(expert_bytes)),
              "enlarge the banks, lower the reservations, or use fewer bytes a weight");
    break;  // one is enough: the others differ only in name
  }
  return out;
}

}  // namespace sojourn
