// The comparison as one HTML page that needs nothing else: scripts, data and styles are inside it.
#pragma once
#include <string>
#include <vector>

#include "sojourn/diagnostics.h"
#include "sojourn/results.h"
#include "study/reproduce_paper.h"

namespace sojourn {

/// The scripts that draw the figures, as text.
struct HtmlAssets {
  std::string vega, vega_lite, vega_embed;
};
/// Reads third_party/vega below the first of `homes` that has it. Exit code 3 when none has.
[[nodiscard]] Result<HtmlAssets> load_html_assets(const std::vector<std::string>& homes);

struct HtmlOptions {
  std::string title = "Sojourn comparison";
  const PaperNumbers* paper = nullptr;  ///< published figures to print beside ours
};

/// Texts that came from files are escaped; the page forbids itself every network access.
[[nodiscard]] std::string compare_html(const CompareResult& result, const HtmlAssets& assets,
                                       const HtmlOptions& options = {});

/// `text` for HTML content and attributes.
[[nodiscard]] std::string html_escape(std::string_view text);

}  // namespace sojourn
