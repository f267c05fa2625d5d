// Which memory tiers can hold one expert of a model at all: tiers that cannot are masked for placement.
#pragma once
#include <array>
#include <string>

#include "sojourn/diagnostics.h"
#include "sojourn/package.h"
#include "sojourn/units.h"

namespace sojourn {

/// An expert is striped over the banks of a set, so a set can hold it when its usable bytes (capacity minus
/// reservations, HCRMap (1)) are at least `expert_bytes`.
[[nodiscard]] bool tier_holds(const Package& package, Tier tier, Bytes expert_bytes);
[[nodiscard]] std::array<bool, kTiers> tiers_that_hold(const Package& package, Bytes expert_bytes);

/// A warning for every tier of the package that is masked for this expert, and an error when none is left for some
/// compute chiplet. `model` names the model in the messages. expert_bytes <= 0 is an error.
[[nodiscard]] Diagnostics check_expert_fits(const Package& package, Bytes expert_bytes, const std::string& model);

}  // namespace sojourn
