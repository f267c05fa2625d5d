// Style, scripts and building blocks of the pages.
#include "report/html_page.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "report/analysis.h"
#include "report/text_table.h"

namespace sojourn {
namespace {

constexpr const char* kStyle = R"css(
:root{color-scheme:light}
body{margin:0 auto;padding:24px 32px;max-width:1136px;background:#fff;color:#1a1a1a;
 font:14px/1.45 system-ui,"DejaVu Sans",sans-serif}
h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:36px 0 8px;border-bottom:1px solid #d5d5d5;padding-bottom:4px}
h3{font-size:15px;margin:20px 0 6px}p{margin:6px 0}.sub,.caption{color:#4a4a4a}.caption{font-size:13px;max-width:900px}
.warn{background:#fff3cd;border:1px solid #e0c36a;padding:8px 12px}
table{border-collapse:collapse;font-size:13px;margin:8px 0;font-variant-numeric:tabular-nums}
th,td{padding:3px 10px;text-align:right;border-bottom:1px solid #ececec;vertical-align:top}
th{border-bottom:2px solid #b9b9b9;font-weight:600}.l{text-align:left}tr.best td{font-weight:600;background:#f1f7ee}
.scroll{overflow-x:auto}.wrap{max-width:640px;overflow-wrap:anywhere;text-align:left}
.chip{display:inline-block;width:10px;height:10px;margin-right:6px;border-radius:2px}
figure{margin:18px 0;break-inside:avoid}figcaption{font-weight:600;margin-bottom:4px}
details{margin:4px 0}summary{cursor:pointer;color:#0b4f8a}
.vega-bind{margin:0 0 6px}.vega-embed{max-width:100%}
nav a{margin-right:14px;color:#0b4f8a}
@media print{body{padding:0;max-width:none;font-size:11px}nav,summary{display:none}.vega-embed summary{display:none}
 figure,tr{break-inside:avoid}.vega-embed svg{max-width:100%;height:auto}table{font-size:10px}}
)css";

constexpr const char* kScript = R"js(
(function(){"use strict";
 document.querySelectorAll('script[type="application/json"][data-figure]').forEach(function(s){
  var box=document.getElementById(s.dataset.figure);
  vegaEmbed(box,JSON.parse(s.textContent),{renderer:"svg",bind:document.getElementById(s.dataset.figure+"-menu"),actions:{export:true,source:false,compiled:false,editor:false}})
   .catch(function(e){box.textContent="This figure could not be drawn ("+e.message+"); its numbers are below.";});});
 var opened=[];
 addEventListener("beforeprint",function(){document.querySelectorAll("details.numbers:not([open])").forEach(function(d){
  d.open=true;opened.push(d);});});
 addEventListener("afterprint",function(){opened.forEach(function(d){d.open=false;});opened=[];});
})();
)js";

std::string without_source_map(std::string script) {
  const size_t at = script.rfind("//# sourceMappingURL=");
  if (at != std::string::npos) script.resize(at);
  return script;
}

}  // namespace

void Page::begin(const std::string& title) {
  out +=
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' "
      "'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n";
  out += fmt::format("<title>{}</title><style>{}</style></head><body>\n", html_escape(title), kStyle);
  out += fmt::format("<h1>{}</h1>\n", html_escape(title));
}

void Page::cell(const std::string& text, bool left, const char* tag) {
  out += fmt::format("<{}{}>{}</{}>", tag, left ? " class=\"l\"" : "", html_escape(text), tag);
}

void Page::table(const FigureTable& t) {
  out += "<div class=\"scroll\"><table><thead><tr>";
  for (size_t c = 0; c < t.headers.size(); ++c) cell(t.headers[c], t.words(c), "th");
  out += "</tr></thead><tbody>\n";
  for (const auto& row : t.rows) {
    out += "<tr>";
    for (size_t c = 0; c < row.size(); ++c) cell(row[c], t.words(c));
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
}

void Page::figure(const Figure& f) {
  if (f.spec.empty()) return;
  const std::string id = "fig-" + html_escape(f.id);
  out += fmt::format("<figure id=\"{}-block\"><figcaption>{}</figcaption><p class=\"caption\">{}</p>\n", id,
                     html_escape(f.title), html_escape(f.caption));
  out += fmt::format("<div id=\"{}-menu\"></div>", id);
  out += fmt::format("<div id=\"{}\" role=\"img\" aria-label=\"{}\"></div>\n", id, html_escape(f.title));
  out += fmt::format("<script type=\"application/json\" data-figure=\"{}\">{}</script>\n", id, f.spec);
  out += "<details class=\"numbers\"><summary>Numbers</summary>\n";
  table(f.table);
  out += "</details></figure>\n";
}

void Page::list(const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  out += "<ul>\n";
  for (const std::string& text : texts) out += "<li>" + html_escape(text) + "</li>\n";
  out += "</ul>\n";
}

void Page::manifest(const std::string& manifest_json) {
  out += "<h2 id=\"assumptions\">Assumptions and parameters</h2>\n";
  list(assumptions(manifest_json));
  const std::vector<ManifestLine> lines = manifest_lines(manifest_json);
  if (lines.empty()) return;
  out += "<details class=\"numbers\"><summary>Manifest</summary><table><tbody>\n";
  for (const ManifestLine& line : lines)
    if (!line.name.starts_with("assumptions"))
      out += fmt::format("<tr><td class=\"l\">{}</td><td class=\"wrap\">{}</td></tr>\n", html_escape(line.name),
                         html_escape(line.value));
  out += "</tbody></table></details>\n";
}

void Page::end(const HtmlAssets& assets) {
  for (const std::string* script : {&assets.vega, &assets.vega_lite, &assets.vega_embed})
    out += "<script>" + without_source_map(*script) + "</script>\n";
  out += fmt::format("<script>{}</script>\n</body></html>\n", kScript);
}

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Result<HtmlAssets> load_html_assets(const std::vector<std::string>& homes) {
  const auto read = [](const std::string& path, std::string& into) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return false;
    std::ostringstream text;
    text << in.rdbuf();
    into = text.str();
    return in.good() && !into.empty();
  };
  for (const std::string& home : homes) {
    HtmlAssets a;
    const std::string dir = home + "/third_party/vega/";
    if (read(dir + "vega.min.js", a.vega) && read(dir + "vega-lite.min.js", a.vega_lite) &&
        read(dir + "vega-embed.min.js", a.vega_embed))
      return a;
  }
  return fail({}, "--report", "the scripts of the figures (third_party/vega/*.min.js) are not there",
              "set SOJOURN_HOME to a checkout of the project", 3);
}

}  // namespace sojourn
