#include "app/posterior/predict_inputs.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/posterior/predict_file.h"
#include "app/test_run.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StrEq;

const char* const kNew = "age,sodium,unit\n25,140,ICU\n85,140,ICU\n60,,CCU\n900,140,ICU\n";

PredictInputs read(const TestRun& run, const std::string& text, const std::string& id = "") {
  return read_inputs(read_posterior(run.path()), run.write("new.csv", text), "", id);
}

// Whatever stands between them, good rows have the numbers that they have alone.
TEST(PredictInputs, BadRowsAreLeftOutByNameAndChangeNoOther) {
  const TestRun run;
  const PredictedRows alone = predict_file(
      run.path(), run.write("good.csv", "id,age,sodium,unit\na,25,140,ICU\nc,85,140,ICU\n"), "", 50,
      {.id_column = "id"});
  const PredictedRows mixed = predict_file(
      run.path(),
      run.write("mixed.csv",
                "id,age,sodium,unit\nx,old,140,ICU\na,25,140,ICU\nid,age,sodium,unit\nb,3\n"
                "c,85,140,ICU\nd,1e300,140,ICU\n"),
      "", 50, {.id_column = "id"});
  EXPECT_EQ(mixed.values, alone.values);
  EXPECT_EQ(mixed.low, alone.low);
  EXPECT_EQ(mixed.high, alone.high);
  EXPECT_EQ(mixed.mutual_information, alone.mutual_information);
  EXPECT_EQ(mixed.outliers.scores, alone.outliers.scores);
  EXPECT_EQ(mixed.ids, alone.ids);
  EXPECT_EQ(alone.numbers, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(mixed.numbers, (std::vector<std::size_t>{2, 5}));
  EXPECT_EQ(mixed.left_out_count, 4u);
  EXPECT_EQ(mixed.left_out, (std::vector<LeftOutRow>{
                                {1, 2, "x", "age is old, which is no number"},
                                {3, 4, "id", "age is age, which is no number"},
                                {4, 5, "", "it has not the header's 4 fields, or stray quotes"},
                                {6, 7, "d", "age is 1e300, which cannot be scaled"}}));
  EXPECT_THAT(mixed.notes.at(0),
              HasSubstr("mixed.csv:2: row 1 (x) is left out: age is old, which is no number"));
  EXPECT_THAT(mixed.notes.at(4), StrEq("4 of 6 rows are left out"));
}

// Training reads hospital and outcome, predictions do not.
TEST(PredictInputs, AHospitalOrOutcomeThatIsNotThereChangesNothing) {
  const TestRun run;
  const PredictInputs with =
      read(run, "ward,died,age,sodium,unit\n,,25,140,ICU\nA,perhaps,85,140,ICU\n");
  EXPECT_EQ(with.left_out_count, 0u);
  EXPECT_EQ(with.batches, read(run, "age,sodium,unit\n25,140,ICU\n85,140,ICU\n").batches);
}

TEST(PredictInputs, ManyBadRowsAreCounted) {
  const TestRun run;
  std::string text = "age,sodium,unit\n25,140,ICU\n";
  for (int i = 0; i < 25; ++i) text += "old,140,ICU\n";
  const PredictInputs in = read(run, text);
  EXPECT_EQ(in.left_out.size(), 25u);
  ASSERT_EQ(in.notes.size(), 11u);
  EXPECT_EQ(in.notes.back(), "25 of 26 rows are left out; --left-out FILE names all");
}

TEST(PredictInputs, IdsThatDoNotSayWhichRowIsMeantAreSaid) {
  const TestRun run;
  const PredictInputs in = read(
      run, "age,sodium,unit,id\n25,140,ICU,a\n26,140,ICU,\n27,140,ICU,a\n28,140,ICU,a\n", "id");
  EXPECT_EQ(in.ids, (std::vector<std::string>{"a", "", "a", "a"}));
  EXPECT_THAT(in.notes.at(0),
              HasSubstr("2 of 4 rows have an id that an earlier row has, first a in "
                        "rows 1 and 3"));
  EXPECT_THAT(in.notes.at(1), HasSubstr("1 of 4 rows have no id, first row 2"));
  EXPECT_TRUE(read(run, kNew).ids.empty());
  EXPECT_THAT(message_of<InputError>([&] { read(run, kNew, "patient"); }),
              HasSubstr("column patient"));
}

TEST(PredictInputs, TheRecipesIdsAreReadWhereTheyAre) {
  const TestRun run;
  SavedPosterior saved = read_posterior(run.path());
  saved.recipe.data.id_column = "bed";
  const auto with = run.write("with.csv", "bed,age,sodium,unit\n7,25,140,ICU\n");
  EXPECT_EQ(read_inputs(saved, with, "", "").ids, (std::vector<std::string>{"7"}));
  const PredictInputs without = read_inputs(saved, run.write("without.csv", kNew), "", "");
  EXPECT_TRUE(without.ids.empty());
  EXPECT_THAT(without.notes.at(0), HasSubstr("there is no column bed (data.id_column)"));
}

TEST(PredictInputs, AColumnThatDidNotVaryIsNotReadAndOtherValuesAreTold) {
  const TemporaryFolder folder;
  const auto run = constant_run(folder);
  const auto predict = [&](const std::string& years) {
    std::string text = "age,sodium,unit,year,\"weight, kg\"\n";
    for (const char year : years) text += fmt::format("55,140,ICU,{},\n", year);
    return predict_file(run, folder.write("new.csv", text), "", 10);
  };
  const PredictedRows same = predict("555"), other = predict("597");
  EXPECT_EQ(same.values, other.values);
  EXPECT_FALSE(same.outlier(1));
  EXPECT_THAT(other.notes.at(0), HasSubstr("new.csv:3: 2 of 3 rows have another value"));
  EXPECT_FALSE(other.outlier(0));
  EXPECT_TRUE(other.outlier(1));
  EXPECT_TRUE(other.outlier(2));
}

TEST(PredictInputs, WhatIsWrongWithAFileIsNamed) {
  const TestRun run;
  const auto refusal = [&](const std::string& text) {
    return message_of<InputError>(
        [&] { predict_file(run.path(), run.write("bad.csv", text), "", 10); });
  };
  EXPECT_THAT(refusal("age,unit\n25,ICU\n"), HasSubstr("column sodium"));
  EXPECT_THAT(
      refusal("age,sodium,unit\nold,140,ICU\n1e300,1,ICU\n"),
      HasSubstr(
          "bad.csv:2: expected a good row, but all 2 are bad: age is old, which is no number"));
  EXPECT_THAT(refusal(""), HasSubstr("the file is empty"));
  EXPECT_THAT(refusal("age,sodium,unit\n"), HasSubstr("only a header"));
  EXPECT_THAT(message_of<InputError>([&] { predict_file(run.path(), "/nowhere.csv", "", 10); }),
              StrEq("predict: /nowhere.csv is missing"));
  const PredictedRows odd =
      predict_file(run.path(), run.write("odd.csv", "age,sodium,unit\n25,140,Ward 9\n"), "", 10);
  EXPECT_THAT(odd.notes.at(0), HasSubstr("odd.csv:2: 1 of 1 rows have a category"));
  run.folder().write("run/features.json", "{}");
  EXPECT_THAT(refusal(kNew), HasSubstr("features.json"));
}

}  // namespace
}  // namespace fedep
