#include "fedep/page/report/report.h"

#include <stdexcept>

#include "fedep/page/report/page_files.h"

namespace fedep {
namespace {

// `text` with the one `mark` in it replaced.
std::string filled(std::string_view text, std::string_view mark, std::string_view with) {
  const std::size_t place = text.find(mark);
  if (place == text.npos) throw std::logic_error("report.html lacks a mark");
  std::string out(text.substr(0, place));
  out += with;
  out += text.substr(place + mark.size());
  return out;
}

}  // namespace

std::string script_json(const Json& data) {
  std::string out;
  // These three stand in JSON's strings only, where they may be written as numbers.
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string report_page(const Json& data) {
  return report_page(script_json(data), data.is_object() && data.value("live", false));
}

std::string report_page(std::string_view script_json, bool live) {
  // A live page may ask the server that sent it; a file asks nobody.
  std::string page = filled(report_html(), "{{connect}}", live ? "'self'" : "'none'");
  page = filled(page, "/*{{style}}*/", report_css());
  std::string script;
  for (const std::string_view part :
       {report_format_js(), report_curves_js(), report_chart_js(), report_tiles_js(),
        report_certainty_js(), report_forest_js(), report_js()}) {
    script += part;
  }
  page = filled(page, "/*{{script}}*/", script);
  // The first such mark is the page's; what the data hold is left alone.
  return filled(page, "{{data}}", script_json);
}

}  // namespace fedep
