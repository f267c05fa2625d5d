// The figures of the page as Vega-Lite specifications with their data inside.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "sojourn/results.h"

namespace sojourn {

/// Numbers of a figure for people who cannot see it and for print.
struct FigureTable {
  std::vector<std::string> headers;
  std::vector<std::vector<std::string>> rows;
  size_t text_columns = 1;  ///< leading columns that are words, not numbers
  bool last_is_text = false;
  [[nodiscard]] bool words(size_t column) const {
    return column < text_columns || (last_is_text && column + 1 == headers.size());
  }
};

struct Figure {
  std::string id, title, caption;
  std::string spec;  ///< Vega-Lite JSON, safe inside a script element
  FigureTable table;
};

/// One colour a policy, the same in every figure.
[[nodiscard]] std::map<std::string, std::string> policy_colours(const std::vector<std::string>& policies);

[[nodiscard]] Figure normalized_latency_figure(const CompareResult& result, const std::string& mode);
[[nodiscard]] Figure stage_figure(const CompareResult& result, const std::string& mode);
[[nodiscard]] Figure energy_figure(const CompareResult& result, const std::string& mode);
[[nodiscard]] Figure edp_figure(const CompareResult& result, const std::string& mode);
[[nodiscard]] Figure pressure_figure(const CompareResult& result);
[[nodiscard]] Figure link_figure(const CompareResult& result);

}  // namespace sojourn
