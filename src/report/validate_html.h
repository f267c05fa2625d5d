// What `sojourn validate network` found, as tables, JSON and one page.
#pragma once
#include <string>
#include <vector>

#include "report/html.h"
#include "report/text_table.h"
#include "study/network_models.h"
#include "study/validate_network.h"

namespace sojourn {

class JsonWriter;

/// When to use which network model, with the errors measured here. Empty without rows.
[[nodiscard]] std::string models_table(const NetworkModels& models, TextStyle style);

/// Keys models[] (cases) and model_summary[] (rows) of an open JSON object.
void write_models(JsonWriter& w, const NetworkModels& models);

/// Latency-load curves and error histograms of `reference`, errors of the models; either may be without cases.
[[nodiscard]] std::string validate_html(const NetworkValidation& reference, const NetworkModels& models,
                                        const HtmlAssets& assets);

}  // namespace sojourn
