// The frame of every page: style, tables, figures with their numbers, scripts; internal to src/report.
#pragma once
#include <string>

#include "report/html.h"
#include "report/html_figures.h"

namespace sojourn {

struct Page {
  std::string out;

  /// Head and title; opens the body.
  void begin(const std::string& title);
  void cell(const std::string& text, bool left, const char* tag = "td");
  void table(const FigureTable& t);
  /// The drawing, and its numbers in a table that can be opened. Nothing for an empty figure.
  void figure(const Figure& f);
  void list(const std::vector<std::string>& texts);
  /// "Assumptions" and the manifest as a table.
  void manifest(const std::string& manifest_json);
  /// Scripts; closes the body.
  void end(const HtmlAssets& assets);
};

}  // namespace sojourn
