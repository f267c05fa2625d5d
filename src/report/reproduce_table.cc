// Text tables of a reproduced study; see reproduce_table.h.
#include "report/reproduce_table.h"

#include <fmt/format.h>

namespace sojourn {

std::string check_number(double value, const std::string& unit) {
  int decimals = -1;
  if (unit == "%" || unit == "points" || unit == "% of the most") decimals = 1;
  if (unit.rfind("x", 0) == 0) decimals = 3;
  if (decimals < 0) return fmt::format("{:.10g}", value);
  const std::string text = fmt::format("{:.{}f}", value, decimals);
  return text.find_first_not_of("-0.") == std::string::npos && text.front() == '-' ? text.substr(1) : text;
}

std::string paper_number(double value, const std::string& unit) {
  const std::string text = fmt::format("{:.10g}", value);
  return unit == "%" && text.find('.') == std::string::npos ? text + ".0" : text;  // "43.0", as printed
}

std::string check_value(const ReproduceCheck* check, bool with_verdict) {
  if (check == nullptr || !check->measured) return "-";
  std::string text = check_number(*check->measured, check->unit);
  if (with_verdict && !check->verdict.empty()) text += " " + check->verdict;
  return text;
}

std::string reproduce_tables(const ReproduceResult& study, const TextStyle& style) {
  using Align = TextTable::Align;
  std::string out = style.bold("Which reading supports which claim (prefill / decode; reductions in %)") + "\n";
  TextTable table;
  table.column("claim", "", Align::left);
  table.column("paper");
  for (const std::string& place : study.readings) table.column(place, "", Align::left);
  for (const ReproduceClaim& claim : study.claims) {
    std::vector<std::string> cells = {claim.text, ""};
    for (const std::string& base : claim.bases) {
      const PaperNumber* n = study.paper.find(base);
      if (n != nullptr) cells[1] += fmt::format("{}{}", cells[1].empty() ? "" : " / ", paper_number(n->value, n->unit));
    }
    for (const std::string& place : study.readings) {
      std::string cell;
      bool any = false;
      for (const std::string& base : claim.bases) {
        const ReproduceCheck* c = study.find(base, place);
        any = any || (c != nullptr && c->measured);
        cell += (cell.empty() ? "" : " / ") + check_value(c, true);
      }
      cells.push_back(any ? cell : "-");
    }
    table.row(std::move(cells));
  }
  out += table.text(style);

  out += "\n" + style.bold("The paper's numbers beside ours, default reading") + "\n";
  TextTable numbers;
  numbers.column("check", "", Align::left);
  numbers.column("paper");
  numbers.column("measured");
  numbers.column("95 % interval");
  numbers.column("no policy", "above");
  numbers.column("unit", "", Align::left);
  numbers.column("kind", "", Align::left);
  numbers.column("verdict", "", Align::left);
  numbers.column("source", "", Align::left);
  for (const ReproduceCheck& c : study.checks) {
    const bool default_reading = c.place == kDefaultPlace || c.place.empty();
    if (!default_reading || (!c.paper && !(c.must_hold && !c.holds))) continue;
    numbers.row({c.id, c.paper ? paper_number(*c.paper, c.unit) : "-", check_value(&c, false),
                 c.low ? fmt::format("{} .. {}", check_number(*c.low, c.unit), check_number(*c.high, c.unit)) : "-",
                 c.limit ? check_number(*c.limit, c.unit) : "", c.unit, c.kind, c.verdict, c.source},
                c.must_hold && !c.holds);
  }
  out += numbers.text(style);
  for (const auto& [mode, arm] : study.fixed)
    out += fmt::format("  strongest fixed-replica baseline, {}: {}\n", mode, arm);
  for (const std::string& text : study.reduced) out += "  reduced: " + printable(text) + "\n";
  for (const std::string& text : study.absent) out += "  absent: " + printable(text) + "\n";
  return out;
}

}  // namespace sojourn
