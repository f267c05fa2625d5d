// A training run as table, JSON and one self-contained page.
#pragma once
#include <string>

#include "report/html.h"
#include "report/text_table.h"
#include "study/train.h"

namespace sojourn {

[[nodiscard]] std::string train_table(const TrainResult& result, TextStyle style);
[[nodiscard]] std::string train_json(const TrainResult& result);
[[nodiscard]] std::string train_html(const TrainResult& result, const HtmlAssets& assets);

}  // namespace sojourn
