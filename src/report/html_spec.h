// Shared pieces of the Vega-Lite specifications; internal to src/report.
#pragma once
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sojourn/results.h"

namespace sojourn {

using Json = nlohmann::ordered_json;

/// Schema and the look every figure has.
[[nodiscard]] Json base_spec();
/// Colour by policy, with a legend at the bottom.
[[nodiscard]] Json policy_colour_encoding(const std::vector<std::string>& policies);
/// The text, with '<', '>' and '&' escaped so that no string in it can end a script element.
[[nodiscard]] std::string spec_text(const Json& spec);

/// Widest drawing, pixels.
inline constexpr int kFigureWidth = 1080;

/// Stages with what is outside the routed experts below them.
struct LatencyPart {
  const char* name;
  const char* colour;
};
inline constexpr std::array<LatencyPart, kStages + 1> kLatencyParts = {{{"outside MoE", "#c9ced6"},
                                                                        {"gate", "#8c6bb1"},
                                                                        {"dispatch", "#4393c3"},
                                                                        {"queue", "#d6604d"},
                                                                        {"memory", "#f4a582"},
                                                                        {"compute", "#1b7837"},
                                                                        {"gather", "#92c5de"},
                                                                        {"combine", "#5a4a3a"}}};

/// Small multiples, one a model: stacked bars, one a policy; rows {model, policy, part, order, value}; a row whose part
/// is
/// "__mark" is a tick on its bar.
[[nodiscard]] Json stacked_spec(const std::vector<std::string>& models, const std::vector<std::string>& policies,
                                const Json& rows, const std::string& axis, const std::vector<std::string>& names,
                                const std::vector<std::string>& colours, bool marks, bool shared_scale);

}  // namespace sojourn
