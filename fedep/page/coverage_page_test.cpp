#include "fedep/page/coverage_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/page/figure/coverage_figure.h"
#include "fedep/page/test_text.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using testing::Not;

CoverageReport report_of(std::size_t coefficients, double deviation = 1) {
  CoverageReport report{.recipe = "own_table.toml",
                        .data = "tabular",
                        .algorithm = "fed_ep",
                        .seed = 1,
                        .clients = 6,
                        .rows = 480,
                        .prior_precision = 4,
                        .truth_precision = 4};
  std::vector<Replicate> replicates(100);
  for (std::size_t r = 0; r < 100; ++r) {
    for (std::size_t j = 0; j < coefficients; ++j) {
      // Errors at the quantiles of a normal, as near as a logistic is; ranks of every kind once.
      const double u = (double((r * 37 + j) % 100) + 0.5) / 100;
      replicates[r].push_back({.truth = std::log(u / (1 - u)) / 1.7,
                               .deviation = deviation,
                               .rank = (r * 37 + j) % 100});
    }
  }
  for (std::size_t j = 0; j < coefficients; ++j) report.names.push_back("c" + std::to_string(j));
  report.found = interval_coverage(replicates);
  return report;
}

TEST(CoveragePage, ShowsEveryCoefficientAndBothPictures) {
  const std::string page = coverage_page(report_of(3));
  for (const char* text :
       {"own_table.toml", "6 clients, 480 rows, 3 coefficients", "c2", "N(0, 0.5²)",
        "Nothing speaks against", "What intervals hold", "Where truths fall among draws"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

TEST(CoveragePage, SaysWhatSpeaksAgainstTheIntervals) {
  CoverageReport narrow = report_of(3, 0.3);
  narrow.failed = 2;
  narrow.first_failure = "client <b>: rows";
  const std::string page = coverage_page(narrow);
  EXPECT_THAT(page, HasSubstr("too narrow"));
  EXPECT_THAT(page, HasSubstr("2 of 102 replicates"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, Not(HasSubstr("Nothing speaks")));
}

TEST(CoveragePage, TextOfDataIsText) {
  CoverageReport report = report_of(1);
  report.names[0] = "<script>alert(1)</script>";
  EXPECT_THAT(coverage_page(report), Not(HasSubstr("<script>")));
}

TEST(CoverageFigure, HasARowForEachCoefficientUpToForty) {
  const CoverageReport few = report_of(40), many = report_of(41);
  EXPECT_THAT(draw_coverage(few.found, few.names), HasSubstr(">c39<"));
  EXPECT_THAT(draw_coverage(many.found, many.names), Not(HasSubstr(">c0<")));
  EXPECT_THAT(draw_coverage(many.found, many.names), HasSubstr(">all<"));
}

}  // namespace
}  // namespace fedep
