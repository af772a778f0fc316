// The page's own files, as cmake/embed.cmake compiles them in.
#pragma once

#include <string_view>

namespace fedep {

std::string_view report_html();
std::string_view report_css();
// The script, in this order.
std::string_view report_format_js();
std::string_view report_curves_js();
std::string_view report_chart_js();
std::string_view report_tiles_js();
std::string_view report_certainty_js();
std::string_view report_forest_js();
std::string_view report_js();

}  // namespace fedep
