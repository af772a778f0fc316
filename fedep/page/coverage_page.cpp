#include "fedep/page/coverage_page.h"

#include <cmath>

#include <fmt/format.h>

#include "fedep/page/figure/coverage_figure.h"
#include "fedep/page/figure/svg.h"
#include "fedep/page/report/page_files.h"

namespace fedep {
namespace {

constexpr std::string_view kHead =
    R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<title>fedep coverage</title>
<link rel="icon" href="data:,">
<style>
)";

std::string cells(const CoverageNumbers& numbers) {
  std::string out;
  for (const Measured& share : numbers.covered) {
    out += fmt::format("<td>{:.1f} ± {:.1f}</td>", 100 * share.value, 100 * share.error);
  }
  return out + fmt::format("<td>{:.3f} ± {:.3f}</td>", numbers.deviation_ratio.value,
                           numbers.deviation_ratio.error);
}

std::string table_of(const CoverageReport& report) {
  std::string out =
      "<div class=\"card flush\"><table><thead><tr><th class=\"text first\">coefficient</th>";
  for (const double level : kIntervalLevels) {
    out += fmt::format("<th>{:.0f} % interval, %</th>", 100 * level);
  }
  out += "<th>sd ratio</th><th>ranks, p</th></tr></thead><tbody>\n";
  out += fmt::format("<tr><td class=\"text first\">all</td>{}<td>{:.2g}</td></tr>\n",
                     cells(report.found.all), report.found.ranks_p_value());
  for (std::size_t j = 0; j < report.names.size(); ++j) {
    const CoefficientCoverage& one = report.found.coefficients[j];
    out += fmt::format("<tr><td class=\"text first\">{}</td>{}<td>{:.2g}</td></tr>\n",
                       xml_escape(report.names[j]), cells(one), one.p_value);
  }
  return out + "</tbody></table></div>\n";
}

std::string verdict_of(const CoverageReport& report) {
  const std::vector<std::string> doubts = report.doubts();
  if (doubts.empty()) {
    return fmt::format("<p>Nothing speaks against these intervals in {} replicates.</p>\n",
                       report.found.replicates);
  }
  std::string out;
  for (const std::string& doubt : doubts) {
    out += fmt::format("<p class=\"notice\">{}.</p>\n", xml_escape(doubt));
  }
  return out;
}

}  // namespace

std::string CoverageReport::failures() const {
  if (failed == 0) return {};
  return fmt::format("{} of {} replicates ended without a posterior, the first because: {}", failed,
                     failed + found.replicates, first_failure);
}

std::vector<std::string> CoverageReport::doubts() const {
  std::vector<std::string> out = coverage_doubts(found, names);
  if (failed > 0) out.push_back(failures());
  return out;
}

std::string coverage_page(const CoverageReport& report) {
  std::string out(kHead);
  out += report_css();
  out += fmt::format(
      "</style>\n</head>\n<body>\n<main class=\"wrap\">\n<div class=\"title\">\n<h1>What intervals "
      "of "
      "{} hold</h1>\n<p class=\"facts\">{} clients, {} rows, {} coefficients of {}; {}, seed "
      "{}</p>\n</div>\n",
      xml_escape(report.recipe), report.clients, report.rows, report.names.size(),
      xml_escape(report.data), xml_escape(report.algorithm), report.seed);
  out += verdict_of(report);
  out += fmt::format(
      "<p class=\"hint\">In each of {} replicates coefficients were drawn from N({:g}, {:.3g}²), "
      "outcomes "
      "for the recipe's own rows from them, and the recipe was run as if nobody knew. Intervals "
      "that are "
      "what they say hold 50, 80 and 95 % of these truths; the sd ratio, deviations over the size "
      "of "
      "errors, is 1; and truths have every rank among draws equally often. Numbers after ± are "
      "standard "
      "errors over replicates.</p>\n",
      report.found.replicates, report.prior_mean, 1 / std::sqrt(report.truth_precision));
  out += "<section>" + draw_coverage(report.found, report.names) + "</section>\n";
  out += "<section>" + draw_ranks(report.found) + "</section>\n";
  out += "<section><h2>Coefficients</h2>\n" + table_of(report) + "</section>\n";
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace fedep
