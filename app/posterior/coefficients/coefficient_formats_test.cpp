#include "app/posterior/coefficients/coefficient_formats.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/posterior/coefficients/test_coefficients.h"

namespace fedep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

CoefficientTable without_intervals() {
  CoefficientTable table = small_table();
  for (Coefficient& row : table.rows) row.deviation.reset();
  return table;
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) out.push_back(cell);
  return out;
}

TEST(CoefficientFormats, TheTextSaysItsUnit) {
  const CoefficientTable table = small_table();
  EXPECT_THAT(
      coefficients_text(table),
      AllOf(HasSubstr("Change of the log-odds of died for one unit of the column"),
            HasSubstr("age               0.025  0.001 to 0.049       1.025  1.001 to 1.051\n"),
            HasSubstr("unit=icu vs ward   0.80    0.41 to 1.19        2.23    1.50 to 3.29\n")));
  EXPECT_THAT(
      coefficients_text(table, EffectUnit::standardised),
      AllOf(HasSubstr("log-odds of died for one standard deviation of the column"),
            HasSubstr(
                "age                0.50  0.250    0.01 to 0.99        1.65   1.01 to 2.69\n")));
}

TEST(CoefficientFormats, AnInterceptHasNoRatioButARisk) {
  const CoefficientTable table = small_table();
  const auto json = nlohmann::json::parse(coefficients_json(table))["coefficients"][2];
  EXPECT_EQ(json["name"], "intercept");
  EXPECT_TRUE(json["ratio"].is_null());
  // 1 / (1 + e)
  EXPECT_THAT(coefficients_text(table), HasSubstr("whose risk is 0.269 (0.232 to 0.309)."));
}

TEST(CoefficientFormats, AllHaveTheSameNumbers) {
  const CoefficientTable table = small_table();
  const auto json = nlohmann::json::parse(coefficients_json(table));
  std::istringstream csv(coefficients_csv(table));
  std::string line;
  std::getline(csv, line);
  const std::vector<std::string> head = split(line);
  const std::string text = coefficients_text(table), latex = coefficients_latex(table);
  const ForestFigure forest = forest_of(table);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    std::getline(csv, line);
    const std::vector<std::string> cells = split(line);
    const auto row = json["coefficients"][i];
    const Effect own = effect_of(table, table.rows[i], EffectUnit::own);
    EXPECT_EQ(row["estimate"], own.estimate);
    EXPECT_EQ(row["estimate_low"], own.interval->first);
    EXPECT_EQ(row["mean"], table.rows[i].mean);
    EXPECT_EQ(row["sd"], *table.rows[i].deviation);
    const std::vector<std::pair<std::string, std::string>> pairs{
        {"estimate", "estimate"},     {"low", "estimate_low"},    {"high", "estimate_high"},
        {"ratio", "ratio"},           {"ratio_low", "ratio_low"}, {"ratio_high", "ratio_high"},
        {"standardised", "mean"},     {"standardised_sd", "sd"},  {"standardised_low", "low"},
        {"standardised_high", "high"}};
    for (const auto& [column, key] : pairs) {
      const auto place = std::size_t(std::ranges::find(head, column) - head.begin());
      if (row[key].is_null()) {
        EXPECT_EQ(cells.at(place), "");
      } else {
        EXPECT_EQ(std::stod(cells.at(place)), row[key].get<double>()) << column;
      }
    }
    const EffectText shown = effect_text(own.estimate, own.interval, EffectScale::difference);
    EXPECT_THAT(text, HasSubstr(fmt::format("{} to {}", shown.low, shown.high)));
    EXPECT_THAT(latex, HasSubstr(fmt::format("${}$ & ${}$ to ${}$", shown.estimate, shown.low,
                                             shown.high)));
  }
  ASSERT_EQ(forest.rows.size(), 2u);
  EXPECT_EQ(forest.rows[0].estimate, 0.5);  // per standard deviation,
  EXPECT_EQ(forest.rows[1].estimate, 0.8);  // a level against its reference
}

TEST(CoefficientFormats, WhatIsWithheldStaysSoInAllOfThem) {
  CoefficientTable table = without_intervals();
  table.withheld = "precisions are set (phase.0.inference.name)";
  for (const CoefficientFormat& format : coefficient_formats()) {
    const std::string written = format.write(table);
    EXPECT_THAT(written, Not(HasSubstr("95 %"))) << format.name;
    EXPECT_THAT(written, Not(HasSubstr("95 \\%"))) << format.name;
    if (format.says_notes) {
      EXPECT_THAT(written, HasSubstr(table.withheld)) << format.name;
    }
  }
  EXPECT_THAT(coefficients_csv(table), HasSubstr(",0.025,,,"));
  EXPECT_TRUE(nlohmann::json::parse(coefficients_json(table))["coefficients"][0]["low"].is_null());
  EXPECT_FALSE(forest_of(table).rows[0].interval);
  EXPECT_THAT(forest_of(table).caption, HasSubstr(table.withheld));
}

TEST(CoefficientFormats, OutcomesHaveTheirOwnRatios) {
  CoefficientTable table = small_table();
  table.likelihood = TargetKind::count;
  table.effect = EffectKind::rate;
  EXPECT_THAT(coefficients_text(table),
              AllOf(HasSubstr("rate ratio"), HasSubstr("mean count is 0.368")));
  table.effect = EffectKind::hazard;
  EXPECT_THAT(coefficients_text(table),
              AllOf(HasSubstr("hazard ratio"), Not(HasSubstr("mean count"))));
  table.effect = EffectKind::difference;
  table.likelihood = {TargetKind::real, 2.5};
  const std::string text = coefficients_text(table);
  EXPECT_THAT(text,
              AllOf(HasSubstr("Change of died for one unit"), Not(HasSubstr("ratio")),
                    HasSubstr("a standard deviation of 2.5 around its prediction (model.noise)")));
  EXPECT_EQ(nlohmann::json::parse(coefficients_json(table))["noise"], 2.5);
  EXPECT_EQ(forest_of(table).scale, EffectScale::difference);
  EXPECT_THAT(coefficients_latex(table), Not(HasSubstr("ratio")));
}

TEST(CoefficientFormats, ASpreadIsToldAsADeviationNeverAsARatio) {
  CoefficientTable table = small_table();
  table.rows.push_back(
      {.name = "log_site_sd", .mean = std::log(0.5), .deviation = 0.2, .kind = RowKind::spread});
  EXPECT_THAT(coefficients_text(table),
              HasSubstr("Standard deviation of hospitals' intercepts: 0.50 (0.34 to 0.74)\n"));
  EXPECT_EQ(forest_of(table).rows.size(), 2u);

  for (const EffectKind effect : {EffectKind::odds, EffectKind::difference}) {
    table.effect = effect;
    EXPECT_THAT(coefficients_latex(table),
                HasSubstr(fmt::format("\\midrule\nSD of hospitals' intercepts & "
                                      "\\multicolumn{{{}}}{{l}}{{$0.50$ ($0.34$ to $0.74$)}} "
                                      "\\\\\n\\bottomrule",
                                      effect == EffectKind::odds ? 6 : 4)));
    EXPECT_THAT(coefficients_latex(table), Not(HasSubstr("log\\_site")));
    const auto json = nlohmann::json::parse(coefficients_json(table))["coefficients"][3];
    EXPECT_TRUE(json["ratio"].is_null() && json["ratio_low"].is_null());
    EXPECT_NEAR(json["spread"].get<double>(), 0.5, 1e-12);
    std::istringstream csv(coefficients_csv(table));
    std::string head, line;
    std::getline(csv, head);
    while (!line.starts_with("log_site_sd")) ASSERT_TRUE(std::getline(csv, line));
    const std::vector<std::string> names = split(head), cells = split(line);
    const auto cell = [&](const std::string& name) {
      return cells.at(std::size_t(std::ranges::find(names, name) - names.begin()));
    };
    for (const char* name : {"ratio", "ratio_low", "ratio_high"}) EXPECT_EQ(cell(name), "");
    EXPECT_NEAR(std::stod(cell("sd")), 0.5, 1e-12);
    EXPECT_NEAR(std::stod(cell("sd_low")), 0.5 * std::exp(-1.959964 * 0.2), 1e-6);
    EXPECT_NEAR(std::stod(cell("sd_high")), json["spread_high"].get<double>(), 1e-12);
  }
  EXPECT_THAT(coefficients_latex(small_table()), Not(HasSubstr("SD of")));
  EXPECT_FALSE(
      nlohmann::json::parse(coefficients_json(table))["coefficients"][0].contains("spread"));
}

TEST(CoefficientFormats, OfColumnsThatWereNotScaledAreForOneUnit) {
  CoefficientTable table = small_table();
  table.scaled = false;
  EXPECT_THAT(coefficients_text(table), Not(HasSubstr("centred")));
  EXPECT_THAT(coefficients_json(table), HasSubstr("log-odds per unit"));
}

TEST(CoefficientFormats, NamesCannotBreakThem) {
  CoefficientTable table = small_table();
  table.rows[0].name = "a,\"b\"\n<c> & 50 % of $x_1$ \\input{y} #~^";
  EXPECT_THAT(coefficients_csv(table), HasSubstr("\n\"a,\"\"b\"\"\n<c> & 50"));
  EXPECT_THAT(
      coefficients_latex(table),
      HasSubstr("\na,\\textquotedbl{}b\\textquotedbl{} \\textless{}c\\textgreater{} \\& 50 \\% of "
                "\\$x\\_1\\$ "
                "\\textbackslash{}input\\{y\\} \\#\\textasciitilde{}\\textasciicircum{} & $"));
  EXPECT_THAT(coefficients_text(table), HasSubstr("\na,\"b\"\\x0a<c>"));
}

TEST(CoefficientFormats, SharesAreToldWithWhatTheyMean) {
  CoefficientTable table = small_table();
  table.share_names = {"prior", "north", "south"};
  table.shares = {0.1, 0.3, 0.6};
  EXPECT_THAT(coefficients_text(table),
              AllOf(HasSubstr("south  60.0 %\nnorth  30.0 %\nprior  10.0 %\n"),
                    HasSubstr("not whose are better")));
  const auto json = nlohmann::json::parse(coefficients_json(table));
  EXPECT_EQ(json["shares"][2]["of"], "south");
  EXPECT_EQ(json["shares"][2]["share"], 0.6);
  for (Coefficient& row : table.rows) row.shares = {0.2, 0.2, 0.6};
  EXPECT_THAT(shares_text(table), HasSubstr("age               20.0 %  20.0 %  60.0 %\n"));
  EXPECT_THAT(coefficients_csv(table),
              HasSubstr(",share of prior,share of north,share of south\n"));
  table.share_names = {}, table.shares = {}, table.shares_note = "fed_sep keeps no factor";
  EXPECT_THAT(coefficients_text(table), HasSubstr("are not known: fed_sep keeps no factor."));
}

}  // namespace
}  // namespace fedep
