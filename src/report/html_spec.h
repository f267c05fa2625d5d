// Shared pieces of the Vega-Lite specifications; internal to src/report.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sojourn {

using Json = nlohmann::ordered_json;

/// Schema and the look every figure has.
[[nodiscard]] Json base_spec();
/// Colour by policy, with a legend at the bottom.
[[nodiscard]] Json policy_colour_encoding(const std::vector<std::string>& policies);
/// The text, with '<', '>' and '&' escaped so that no string in it can end a script element.
[[nodiscard]] std::string spec_text(const Json& spec);

}  // namespace sojourn
