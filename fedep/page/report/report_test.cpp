#include "fedep/page/report/report.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "fedep/page/report/page_files.h"
#include "fedep/page/report/report_data.h"
#include "fedep/page/test_runs.h"
#include "fedep/page/test_text.h"

namespace fedep {
namespace {

// The text of the element that holds the data.
std::string data_in(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(ScriptJson, ReadsBackToTheSameAndNeverEndsItsElement) {
  const Json data{{"name", "</script><script>alert(1)</script><!--"}, {"and", "a && b -->"}};
  const std::string text = script_json(data);
  EXPECT_EQ(Json::parse(text), data);
  for (const char c : {'<', '>', '&'}) EXPECT_EQ(text.find(c), std::string::npos) << c;
}

TEST(ScriptJson, ReplacesBytesThatAreNoText) {
  EXPECT_EQ(Json::parse(script_json({{"name",
                                      "a\xff"
                                      "b"}}))["name"],
            "a\xef\xbf\xbd"
            "b");
}

TEST(ReportPage, CarriesItsDataWhateverRunsAreCalled) {
  const std::string name = "</script><img src=x onerror=alert(1)>{{data}}/*{{script}}*/";
  const RunRecord run = test_run(name, 1, [](auto) { return 0.5; });
  const std::string page = report_page(report_data(std::vector{run}, {}));
  EXPECT_EQ(count(page, "</script>"), 2u);  // of the data and of the script
  EXPECT_EQ(count(page, "<img"), 0u);
  EXPECT_EQ(Json::parse(data_in(page))["runs"][0]["name"], name);
}

TEST(ReportPage, LoadsNothing) {
  const std::string page = report_page(report_data({}, {}));
  for (const std::string_view load :
       {" src=", "@import", "url(http", "//cdn", "<iframe", "<link rel=\"stylesheet"}) {
    EXPECT_EQ(count(page, load), 0u) << load;
  }
  // The only address in it is the name of SVG.
  EXPECT_EQ(count(page, "http://"), count(page, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(count(page, "https://"), 0u);
  EXPECT_EQ(count(page, "connect-src 'none'"), 1u);
  EXPECT_EQ(count(report_page({{"live", true}}), "connect-src 'self'"), 1u);
}

TEST(ReportPage, LeavesNoMarkUnfilled) {
  const std::string page = report_page(report_data({}, {}));
  EXPECT_EQ(count(page, "{{"), 0u);
  EXPECT_NE(page.find(report_css()), std::string::npos);
  EXPECT_NE(page.find(report_js()), std::string::npos);
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
}

TEST(PageFiles, DoNotEndTheElementTheyStandIn) {
  EXPECT_EQ(count(report_css(), "</"), 0u);
  for (const std::string_view part : {report_format_js(), report_curves_js(), report_chart_js(),
                                      report_tiles_js(), report_forest_js(), report_js()}) {
    EXPECT_EQ(count(part, "</script"), 0u);
    EXPECT_EQ(count(part, "<!--"), 0u);
    EXPECT_EQ(count(part, "innerHTML"), 0u);  // names of runs are text, never markup
    EXPECT_EQ(count(part, "insertAdjacentHTML"), 0u);
    EXPECT_EQ(count(part, "eval("), 0u);
  }
}

}  // namespace
}  // namespace fedep
