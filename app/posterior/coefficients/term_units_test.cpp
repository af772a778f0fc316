#include "app/posterior/coefficients/term_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::HasSubstr;

Term number(const std::string& column, double divisor) {
  return {.name = column, .column = column, .divisor = divisor};
}
Term level(const std::string& column, const std::string& value, const std::string& reference) {
  return {.kind = TermKind::category,
          .name = column + "=" + value + " vs " + reference,
          .column = column,
          .level = value,
          .reference = reference,
          .divisor = 0.5};
}
Term product(const Term& a, const Term& b) {
  return {.kind = TermKind::interaction,
          .name = a.name + " * " + b.name,
          .divisor = a.divisor * b.divisor,
          .factors = {a, b}};
}

const std::vector<Term> kTerms{number("age", 15), number("a=b", 2), level("unit", "icu", "ward"),
                               level("unit", "x,y", "ward"),
                               product(number("age", 15), level("unit", "icu", "ward"))};

TEST(TermUnits, ANumberIsToldPerUnitAndALevelAgainstItsReference) {
  const TermUnits age = units_of(kTerms[0], {}, true);
  EXPECT_DOUBLE_EQ(age.own, 1 / 15.0);
  EXPECT_DOUBLE_EQ(age.figure, 1);
  EXPECT_EQ(age.figure_name, "age, per sd of 15");
  const TermUnits icu = units_of(kTerms[2], {}, true);
  EXPECT_DOUBLE_EQ(icu.own, 2);
  EXPECT_DOUBLE_EQ(icu.figure, 2);
  EXPECT_EQ(icu.figure_name, "unit=icu vs ward");
  EXPECT_EQ(units_of(number("age", 1), {}, false).figure_name, "age");
}

TEST(TermUnits, AColumnOfZerosAndOnesIsDrawnAsOneAgainstZero) {
  Term sex = number("sex", 0.4);
  sex.mean = 0.8;  // 0.8 · 0.2 = 0.4²
  EXPECT_DOUBLE_EQ(units_of(sex, {}, true).own, 2.5);
  EXPECT_DOUBLE_EQ(units_of(sex, {}, true).figure, 2.5);
  EXPECT_EQ(units_of(sex, {}, true).figure_name, "sex, 1 vs 0");
  EXPECT_DOUBLE_EQ(units_of(product(sex, number("age", 15)), {}, true).figure, 2.5);
  sex.mean = 0.7;
  EXPECT_EQ(units_of(sex, {}, true).figure_name, "sex, per sd of 0.4");
}

TEST(TermUnits, PerSaysHowManyUnitsInProductsToo) {
  const PerUnits per = parse_per(std::vector<std::string>{"age=10"}, kTerms);
  EXPECT_DOUBLE_EQ(units_of(kTerms[0], per, true).own, 10 / 15.0);
  EXPECT_DOUBLE_EQ(units_of(kTerms[0], per, true).figure, 10 / 15.0);
  EXPECT_EQ(units_of(kTerms[0], per, true).figure_name, "age, per 10");
  EXPECT_DOUBLE_EQ(units_of(kTerms[4], per, true).own, 10 / 7.5);
  EXPECT_DOUBLE_EQ(units_of(kTerms[4], {}, true).figure, 2);  // a deviation of age, and the level
  EXPECT_DOUBLE_EQ(units_of(kTerms[2], per, true).own, 2);
}

TEST(TermUnits, ColumnsMayHaveAnyName) {
  EXPECT_EQ(parse_per(std::vector<std::string>{"a=b=0.5"}, kTerms), (PerUnits{{"a=b", 0.5}}));
  const LevelPair pair = parse_contrast("unit=x,y,icu", kTerms);
  EXPECT_EQ(pair.first, "x,y");
  EXPECT_EQ(pair.second, "icu");
  EXPECT_EQ(pair.first_term, &kTerms[3]);
  EXPECT_EQ(parse_contrast("unit=ward,icu", kTerms).first_term, nullptr);
}

TEST(TermUnits, WhatDoesNotFitIsRefusedByName) {
  const auto per = [](const std::string& text) {
    return message_of<InputError>([&] { parse_per(std::vector<std::string>{text}, kTerms); });
  };
  EXPECT_THAT(per("age"), HasSubstr("COLUMN=NUMBER"));
  EXPECT_THAT(per("weight=2"), HasSubstr("but is weight"));
  EXPECT_THAT(per("unit=2"), HasSubstr("must be one that holds numbers"));
  for (const char* bad :
       {"age=", "age=0", "age=-1", "age=nan", "age=inf", "age=1e", "age=10 years"}) {
    EXPECT_THAT(per(bad), HasSubstr("positive number")) << bad;
  }
  for (const char* bad :
       {"unit", "unit=icu", "unit=icu,icu", "unit=icu,hdu", "age=1,2", "sex=f,m"}) {
    EXPECT_THROW(parse_contrast(bad, kTerms), InputError) << bad;
  }
}

}  // namespace
}  // namespace fedep
