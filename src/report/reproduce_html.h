// A reproduced study as one HTML page that needs nothing else.
#pragma once
#include <string>

#include "report/html.h"
#include "study/reproduce.h"

namespace sojourn {

/// First which reading supports which claim, then every figure and table of section 7 beside the paper's numbers.
[[nodiscard]] std::string reproduce_html(const ReproduceResult& study, const HtmlAssets& assets);

}  // namespace sojourn
