#include "fedep/data/table/tabular.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fedep/data/holdout.h"
#include "fedep/data/table/table_record.h"
#include "fedep/data/test_batches.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

DelimitedTable table_of(const std::string& text) { return parse_delimited(text, kCsv, "test.csv"); }

const TableSpec kSpec{.client_column = "ward",
                      .label_column = "died",
                      .positive = {"yes"},
                      .negative = {"no"},
                      .numbers = {"age"},
                      .categories = {"unit"}};

// Two wards of ten rows; ages 0..9 in the one, 100..109 in the other.
std::string wards() {
  std::string text = "ward,died,age,unit\n";
  for (int i = 0; i < 10; ++i) {
    text += "A," + std::string(i % 2 ? "yes" : "no") + "," + std::to_string(i) + ",ICU\n";
    text += "B," + std::string(i % 3 ? "yes" : "no") + "," + std::to_string(100 + i) + ",CCU\n";
  }
  return text;
}

std::string error_of(const std::string& text, const TableSpec& spec = kSpec) {
  return message_of<InputError>([&] { tabular_dataset(table_of(text), spec, {}); });
}

TEST(Tabular, EveryRowIsInTrainingOrTestOfItsClientOnce) {
  const auto data = tabular_dataset(table_of(wards()), kSpec, {});
  ASSERT_EQ(data->clients().size(), 2u);
  EXPECT_EQ(data->clients()[0], std::pair(std::string("A"), std::size_t(8)));
  EXPECT_EQ(data->test_size(), 4u);
  EXPECT_EQ(data->test_clients(), (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(data->info().feature_names, (std::vector<std::string>{"age", "unit=ICU vs CCU"}));
  EXPECT_EQ(data->info().target, TargetKind::binary);
  EXPECT_EQ(data->info().outputs, 1u);
  EXPECT_EQ(data->info().skipped_records, 0u);

  // Ages are distinct, so are their scaled values.
  std::vector<float> ages;
  for (std::size_t k = 0; k < 2; ++k) {
    const Batch batch = training_batch(*data, k);
    for (std::size_t i = 0; i < batch.size; ++i) ages.push_back(batch.dense[2 * i]);
  }
  Batch test;
  data->test_batch(0, 4, test);
  for (std::size_t i = 0; i < 4; ++i) ages.push_back(test.dense[2 * i]);
  std::sort(ages.begin(), ages.end());
  EXPECT_EQ(std::unique(ages.begin(), ages.end()) - ages.begin(), 20);
}

TEST(Tabular, TheScaleComesFromTrainingRowsOfAllClients) {
  const auto data = tabular_dataset(table_of(wards()), kSpec, {});
  double sum = 0, squares = 0;
  for (std::size_t k = 0; k < 2; ++k) {
    const Batch batch = training_batch(*data, k);
    for (std::size_t i = 0; i < batch.size; ++i) {
      sum += batch.dense[2 * i];
      squares += std::pow(batch.dense[2 * i], 2);
    }
  }
  EXPECT_NEAR(sum / 16, 0, 1e-6);
  EXPECT_NEAR(squares / 16, 1, 1e-6);
}

TEST(Tabular, AHeldOutRowChangesNoFeatureOfTraining) {
  const std::vector<bool> held = held_out("A", 10, 0.2);
  const auto first = std::size_t(std::find(held.begin(), held.end(), true) - held.begin());
  std::string changed = wards();
  const std::string row = "," + std::to_string(first) + ",ICU";
  changed.replace(changed.find(row), row.size(), ",5000,new unit");
  const auto before = tabular_dataset(table_of(wards()), kSpec, {});
  const auto after = tabular_dataset(table_of(changed), kSpec, {});
  EXPECT_EQ(before->info().feature_names, after->info().feature_names);
  for (std::size_t k = 0; k < 2; ++k)
    EXPECT_EQ(training_batch(*before, k), training_batch(*after, k));
}

TEST(Tabular, ARecordThatCannotBeUsedIsSkippedAndCounted) {
  for (const char* bad : {"A,,50,ICU", "A,maybe,50,ICU", ",yes,50,ICU", "A,yes,old,ICU",
                          "A,yes,nan,ICU", "A,yes,50", "?,yes,50,ICU"}) {
    const auto data = tabular_dataset(table_of(wards() + bad + "\n"), kSpec, {});
    EXPECT_EQ(data->info().skipped_records, 1u) << bad;
    EXPECT_EQ(data->clients()[0].second + data->clients()[1].second + data->test_size(), 20u);
  }
}

TEST(Tabular, TheFirstRecordThatCannotBeUsedIsNamedWithTheReason) {
  const auto first = [](const std::string& bad) {
    return tabular_dataset(table_of(wards() + bad), kSpec, {})->info().first_skipped;
  };
  EXPECT_EQ(first(""), "");
  EXPECT_EQ(first("A,yes,>90,ICU\nA,yes,,ICU\nA,maybe,1,ICU\n"),
            "line 22: age is \">90\", which is no number");
  EXPECT_EQ(first("A,maybe,1,ICU\n"), "line 22: died is maybe, which is no label");
  EXPECT_EQ(first(" ,yes,1,ICU\n"), "line 22: ward is empty, which is no client");
  EXPECT_NE(first("A,yes\n").find("line 22"), std::string::npos);
  std::string most = "ward,died,age,unit\nA,yes,1,ICU\nA,no,1,ICU\n";
  for (int i = 0; i < 3; ++i) most += "A,yes,old,ICU\n";
  EXPECT_NE(error_of(most).find("3 of 5 lack one; line 4: age is old"), std::string::npos);
}

// "Yes" among "yes" and "no" is a slip, not a no.
TEST(Tabular, AThirdLabelIsRefusedUnlessTheSpecSaysWhatItMeans) {
  TableSpec spec = kSpec;
  spec.negative = {};
  EXPECT_EQ(error_of(wards(), spec), "");
  const std::string three = wards() + "A,Yes,5,ICU\n";
  EXPECT_NE(error_of(three, spec).find("one value besides yes, but has 2: Yes, no;"),
            std::string::npos)
      << error_of(three, spec);
  spec.negative = {"*"};
  EXPECT_EQ(tabular_dataset(table_of(three), spec, {})->info().skipped_records, 0u);
  EXPECT_EQ(tabular_dataset(table_of(three), kSpec, {})->info().skipped_records, 1u);
}

// Trained in all hospitals but one, and scored there.
TEST(Tabular, AClientWithTestRowsAloneIsOnlyScored) {
  std::string text = "ward,died,age,unit,part\n";
  for (int i = 0; i < 6; ++i) {
    text += "A," + std::string(i % 2 ? "yes" : "no") + "," + std::to_string(i) + ",ICU,train\n";
    text += "B," + std::string(i % 2 ? "yes" : "no") + "," + std::to_string(i) + ",ICU,test\n";
  }
  TableSpec spec = kSpec;
  spec.test_column = "part";
  const auto data = tabular_dataset(table_of(text), spec, {});
  ASSERT_EQ(data->clients().size(), 1u);
  EXPECT_EQ(data->clients()[0], std::pair(std::string("A"), std::size_t(6)));
  EXPECT_EQ(data->test_size(), 6u);
}

TEST(Tabular, CodesThatLookLikeNumbersStayApart) {
  const DelimitedTable table = table_of("ward,died,age,unit\nA,yes,1,3\n");
  const RecordParser parser(table, kSpec);
  const auto unit = [&](const std::string& text) {
    return parser.parse({"A", "yes", "1e1", text})->features.categories[0];
  };
  for (const std::string code : {"0071", "71e0", "900000000000207008", "900000000000207009", "1E2"})
    EXPECT_EQ(unit(code), code);
  EXPECT_EQ(unit("71.0"), "71");
  EXPECT_EQ(unit("0.50"), "0.5");
  EXPECT_EQ(parser.parse({"A", "yes", "1e1", "3"})->features.numbers[0], 10);
}

TEST(Tabular, AClientThatLosesAllItsRowsIsNamedWithTheReason) {
  const auto data =
      tabular_dataset(table_of(wards() + "A,no,old,ICU\nC,no,N/A,ICU\nC,yes,N/A,ICU\n"), kSpec, {});
  EXPECT_EQ(data->clients().size(), 2u);
  EXPECT_EQ(data->info().skipped_records, 3u);
  EXPECT_EQ(data->info().first_skipped,
            "line 23: age is N/A, which is no number; so client C has none of its 2 rows left "
            "and takes no part");
}

TEST(Tabular, ClientsComeInTheOrderOfTheirFirstGoodRows) {
  const auto data = tabular_dataset(
      table_of("ward,died,age,unit\nB,no,bad,ICU\nA,no,1,ICU\nB,yes,2,ICU\nA,yes,3,ICU\n"), kSpec,
      {.test_fraction = 0});
  EXPECT_EQ(data->clients()[0].first, "A");
}

TEST(Tabular, AMissingValueIsKeptAtTheMean) {
  const auto data = tabular_dataset(table_of(wards() + "C,no,?,\n"), kSpec, {});
  ASSERT_EQ(data->clients().size(), 3u);
  EXPECT_EQ(training_batch(*data, 2).dense, (std::vector<float>{0, 0}));
}

TEST(Tabular, ValuesAreComparedAsNumbersWhereTheyAre) {
  const DelimitedTable table = table_of("ward,died,age,unit\nA,1.0, 4.50 ,3.0\n");
  TableSpec spec = kSpec;
  spec.positive = {"1"};
  spec.negative = {"0"};
  spec.missing_in = {{"unit", {"7"}}};
  const RecordParser parser(table, spec);
  const auto record = parser.parse(table.rows[0]);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->label.number, 1);
  EXPECT_EQ(record->features, (TableRow{{4.5}, {"3"}}));
  EXPECT_EQ(parser.parse({"A", "0", "1", "7.0"})->features.categories[0], "");
  EXPECT_FALSE(parser.parse({"A", "2", "1", "1"}));
}

TEST(Tabular, OtherTargetsAreClassesAndNumbers) {
  const std::string text = "ward,y,x\nA,b,1\nA,a,2\nA,c,3\nB,a,4\n";
  TableSpec spec{
      .client_column = "ward", .label_column = "y", .target = TargetKind::label, .numbers = {"x"}};
  const DataSettings all{.test_fraction = 0};
  const auto classes = tabular_dataset(table_of(text), spec, all);
  EXPECT_EQ(classes->info().output_names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(classes->info().outputs, 3u);
  EXPECT_EQ(training_batch(*classes, 0).labels, (std::vector<std::int32_t>{1, 0, 2}));

  spec.target = TargetKind::real;
  const auto reals = tabular_dataset(table_of("ward,y,x\nA,1.5,1\nA,-2,2\n"), spec, all);
  EXPECT_EQ(training_batch(*reals, 0).reals, (std::vector<float>{1.5, -2}));
  EXPECT_EQ(reals->info().outputs, 1u);
}

TEST(Tabular, AnInterceptIsAColumnOfOnes) {
  TableSpec spec = kSpec;
  spec.intercept = true;
  const auto data = tabular_dataset(table_of(wards()), spec, {});
  EXPECT_EQ(data->info().feature_names[0], "intercept");
  EXPECT_EQ(data->info().feature_count(), 3u);
  const Batch batch = training_batch(*data, 0);
  for (std::size_t i = 0; i < batch.size; ++i) EXPECT_EQ(batch.dense[3 * i], 1.f);
}

TEST(Tabular, LimitsLeaveOutClientsAndExamples) {
  const std::string text = wards() + "C,no,1,ICU\n";
  const auto data = tabular_dataset(table_of(text), kSpec, {.min_examples = 2, .max_examples = 5});
  ASSERT_EQ(data->clients().size(), 2u);
  EXPECT_EQ(data->clients()[0].second, 5u);
  EXPECT_EQ(data->test_size(), 4u);
}

TEST(Tabular, ThatNoClientHasEnoughRowsIsSaid) {
  EXPECT_EQ(
      message_of<InputError>(
          [] { tabular_dataset(table_of(wards()), kSpec, {.min_examples = 11}); }),
      "test.csv: some client must have at least 11 examples (data.min_examples), but none has");
}

TEST(Tabular, AMissingFileIsNotSaidToBeUnpacked) {
  const std::string message =
      message_of<InputError>([] { open_tabular({.path = "own.csv"}, 1, "/nowhere"); });
  EXPECT_NE(message.find("/nowhere/own.csv is missing; --data DIR"), std::string::npos) << message;
}

TEST(Tabular, ABadTableIsRefused) {
  EXPECT_NE(error_of("wards,died,age,unit\nA,yes,1,x\n").find("did you mean wards?"),
            std::string::npos);
  EXPECT_NE(error_of("ward,died,age,unit\nA,yes,1,x\nB,yes,2,x\n")
                .find("two labels in training rows, but all are yes"),
            std::string::npos);
  EXPECT_NE(error_of("ward,died,age,unit\nA,yes,1,x\nB,,2,x\nB,,2,x\n").find("2 of 3"),
            std::string::npos);
  EXPECT_NE(error_of("ward,died,age,unit\n").find("clients"), std::string::npos);
  TableSpec spec = kSpec;
  spec.numbers = {"died"};
  EXPECT_NE(error_of(wards(), spec).find("also the label"), std::string::npos);
  spec.numbers = {};
  spec.categories = {};
  EXPECT_NE(error_of(wards(), spec).find("feature columns"), std::string::npos);
}

TEST(Tabular, AValueThatMeansYesAndNobodyHasIsNamed) {
  TableSpec spec = kSpec;
  spec.negative = {};
  spec.positive = {"Yes"};
  const std::string message =
      "test.csv: data.label_positive must name values of column died, but no row has Yes; did you "
      "mean yes? it has no, yes";
  EXPECT_EQ(error_of(wards(), spec), message);
  spec.negative = {"*"};
  EXPECT_EQ(error_of(wards(), spec), message);
  spec.negative = {};
  spec.positive = {"dead"};
  EXPECT_NE(error_of(wards(), spec).find("no row has dead; it has no, yes"), std::string::npos);
}

TEST(Tabular, ARecipeThatDoesNotNameTheColumnsIsRefused) {
  const TemporaryFolder folder;
  folder.write("wards.csv", wards());
  EXPECT_THROW(open_tabular({.name = "tabular", .path = "wards.csv"}, 1, folder.path()),
               InputError);
  EXPECT_THROW(open_tabular({.name = "tabular", .path = "none.csv"}, 1, folder.path()), InputError);
}

TEST(Tabular, AColumnMayHaveACommaInItsName) {
  const TemporaryFolder folder;
  folder.write("wards.csv",
               "ward,died,age,\"weight, kg\",\"unit, floor\"\n"
               "A,yes,1,80,\"ICU, 2\"\nA,no,2,70,\"CCU, 3\"\nB,no,3,60,\"CCU, 3\"\n");
  DataSettings settings{.name = "tabular", .path = "wards.csv", .test_fraction = 0};
  settings.client_column = "ward";
  settings.label_column = "died";
  settings.label_positive = {"yes"};
  settings.features = {"weight, kg"};
  settings.categories = {"unit, floor"};
  EXPECT_EQ(open_tabular(settings, 1, folder.path())->info().feature_names,
            (std::vector<std::string>{"weight, kg", "unit, floor=ICU, 2 vs CCU, 3"}));
}

TEST(Tabular, ARecipeSaysWhatTheColumnsAreFor) {
  const DelimitedTable table = table_of("ward,died,age,unit,note\nA,yes,1,ICU,2\n");
  DataSettings settings{.name = "tabular"};
  settings.client_column = "ward";
  settings.label_column = "died";
  settings.label_positive = {"yes", "Yes"};
  settings.categories = {"unit"};
  settings.missing = {"-1"};
  const TableSpec all = table_spec(settings, table);
  EXPECT_EQ(all.numbers, (std::vector<std::string>{"age", "note"}));
  EXPECT_EQ(all.categories, (std::vector<std::string>{"unit"}));
  EXPECT_EQ(all.positive, (std::vector<std::string>{"yes", "Yes"}));
  EXPECT_EQ(all.missing, (std::vector<std::string>{"-1", ""}));
  EXPECT_EQ(all.target, TargetKind::binary);
  settings.features = {"unit", "age"};
  settings.label = LabelKind::number;
  EXPECT_EQ(table_spec(settings, table).numbers, (std::vector<std::string>{"age"}));
  EXPECT_EQ(table_spec(settings, table).target, TargetKind::real);
  settings.label = LabelKind::classes;
  EXPECT_EQ(table_spec(settings, table).target, TargetKind::label);
  settings.label_negative = {"no", "never"};
  EXPECT_EQ(table_spec(settings, table).negative, (std::vector<std::string>{"no", "never"}));
  settings.features = {"age", "unit", "age"};
  EXPECT_EQ(message_of<InputError>([&] { table_spec(settings, table); }),
            "data.features must name a column once, but has age twice");
  settings.features.clear();
  settings.client_column.clear();
  EXPECT_THROW(table_spec(settings, table), InputError);
}

TEST(Tabular, ColumnsThatAreDroppedOrNameARowAreNoFeatures) {
  const DelimitedTable table = table_of("ward,died,age,mrn,patient,note\nA,1,1,7,p,2\n");
  DataSettings settings{.name = "tabular", .client_column = "ward", .label_column = "died"};
  settings.drop = {"note"};
  settings.id_column = "mrn";
  settings.group_column = "patient";
  const TableSpec spec = table_spec(settings, table);
  EXPECT_EQ(spec.numbers, (std::vector<std::string>{"age"}));
  EXPECT_EQ(spec.id_column, "mrn");
  EXPECT_EQ(spec.group_column, "patient");
  const auto refusal = [&](const DataSettings& wrong) {
    return message_of<InputError>([&] { table_spec(wrong, table); });
  };
  DataSettings wrong = settings;
  wrong.drop = {"nota"};
  EXPECT_NE(refusal(wrong).find("note"), std::string::npos) << refusal(wrong);
  wrong.drop = {"note", "note"};
  EXPECT_EQ(refusal(wrong), "data.drop must name a column once, but has note twice");
  wrong.drop = {"mrn"};
  EXPECT_EQ(
      refusal(wrong),
      "test.csv: data.drop must name columns that nothing reads, but mrn is in data.id_column "
      "too");
  wrong = settings;
  wrong.drop = {"died"};
  EXPECT_EQ(
      refusal(wrong),
      "test.csv: data.drop must name a column of its own, but died is in data.label_column too");
  wrong = settings;
  wrong.features = {"age", "patient"};
  EXPECT_EQ(refusal(wrong),
            "test.csv: data.group_column must name a column of its own, but patient is in "
            "data.features too");
  wrong = settings;
  wrong.id_column = "patient";  // a patient has a row
  EXPECT_EQ(table_spec(wrong, table).numbers, (std::vector<std::string>{"age", "mrn"}));
}

// Twenty patients of a ward have two rows each, and three rows are nobody's.
TEST(Tabular, APatientsRowsStayTogether) {
  std::string text = "ward,died,age,unit,patient\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("A,{},{},ICU,{}\n", i % 3 ? "no" : "yes", i, i % 20);
  for (int i = 0; i < 3; ++i) text += fmt::format("A,no,{},CCU,NA\n", 40 + i);
  TableSpec spec = kSpec;
  spec.group_column = "patient";
  const auto data = tabular_dataset(table_of(text), spec, {.test_fraction = 0.25});
  EXPECT_EQ(data->test_size(), 11u);  // of 43: five patients and one of nobody's, or four and three
  const auto groups = data->groups(0);
  ASSERT_EQ(groups.size(), 32u);
  std::map<std::uint32_t, int> rows;
  for (const std::uint32_t group : groups) ++rows[group];
  int alone = 0;
  for (const auto& [group, count] : rows) alone += count == 1;
  EXPECT_LE(alone, 3) << "a patient was parted";
  EXPECT_EQ(data->clients()[0].second, 32u);
}

}  // namespace
}  // namespace fedep
