#include "fedep/data/table/chosen_terms.h"

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/table/tabular.h"
#include "fedep/data/table/term.h"
#include "fedep/data/test_batches.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const DataSettings kSettings{.name = "tabular",
                             .test_fraction = 0,
                             .client_column = "ward",
                             .label_column = "died",
                             .categories = {"unit"}};

// Of `wards` clients; some ages and units are missing.
DelimitedTable table_of(int wards) {
  std::string text = "ward,died,age,sodium,unit\n";
  for (int i = 0; i < 90; ++i) {
    text += fmt::format("w{},{},{},{},{}\n", i % wards, i % 2,
                        i % 11 == 0 ? "" : fmt::format("{}", 20 + i * i % 50), 130 + i * i % 17,
                        i % 13 == 0  ? "NA"
                        : i % 5 == 0 ? "CCU"
                        : i % 7 == 0 ? "ER"
                                     : "ICU");
  }
  return parse_delimited(text, kCsv, "wards.csv");
}

std::unique_ptr<Dataset> open(const DataSettings& settings, int wards = 3) {
  const DelimitedTable table = table_of(wards);
  return tabular_dataset(table, table_spec(settings, table), settings);
}

DataSettings with_interactions(std::vector<std::string> interactions) {
  DataSettings settings = kSettings;
  settings.interactions = std::move(interactions);
  return settings;
}

DataSettings with_indicators(std::vector<std::string> columns) {
  DataSettings settings = kSettings;
  settings.missing_indicators = std::move(columns);
  return settings;
}

DataSettings with_reference(std::vector<std::string> references) {
  DataSettings settings = kSettings;
  settings.reference = std::move(references);
  return settings;
}

std::string refusal(const DataSettings& settings) {
  return message_of<InputError>([&] { open(settings); });
}

// A feature of all training rows.
std::vector<double> feature(const Dataset& data, const std::string& name) {
  const std::vector<std::string>& names = data.info().feature_names;
  const auto at = std::size_t(std::find(names.begin(), names.end(), name) - names.begin());
  EXPECT_LT(at, names.size()) << name;
  std::vector<double> out;
  for (std::size_t c = 0; c < data.clients().size(); ++c) {
    const Batch batch = training_batch(data, c);
    for (std::size_t i = 0; i < batch.size; ++i) {
      out.push_back(double(batch.dense[i * names.size() + at]));
    }
  }
  return out;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

TEST(Interactions, AreProductsOfFeaturesCentredAgain) {
  const auto data = open(with_interactions({"age*sodium"}));
  const auto age = feature(*data, "age"), sodium = feature(*data, "sodium");
  const auto product = feature(*data, "age * sodium");
  const Term term = terms_of(*data->info().table).back();
  EXPECT_EQ(term.kind, TermKind::interaction);
  EXPECT_NEAR(mean(product), 0, 1e-6);
  EXPECT_GT(std::fabs(term.mean), 1e-3);  // else there was nothing to centre
  EXPECT_DOUBLE_EQ(term.divisor, term.factors[0].divisor * term.factors[1].divisor);
  int missing = 0;
  for (std::size_t i = 0; i < age.size(); ++i) {
    const bool is_missing = age[i] == 0;  // no age is at the mean itself
    missing += is_missing;
    EXPECT_NEAR(product[i], is_missing ? 0 : age[i] * sodium[i] - term.mean, 1e-5);
  }
  EXPECT_EQ(missing, 9);
}

TEST(Interactions, OfACategoryHaveAProductForEachLevel) {
  const auto data = open(with_interactions({"age * unit"}));
  EXPECT_THAT(data->info().feature_names,
              ElementsAre("age", "sodium", "unit=CCU vs ICU", "unit=ER vs ICU",
                          "age * unit=CCU vs ICU", "age * unit=ER vs ICU"));
  const Term term = terms_of(*data->info().table).back();
  EXPECT_EQ(term.factors[1].level, "ER");
  const auto age = feature(*data, "age"), er = feature(*data, "unit=ER vs ICU");
  const auto product = feature(*data, "age * unit=ER vs ICU");
  for (std::size_t i = 0; i < age.size(); ++i) {
    const bool is_missing = age[i] == 0 || er[i] == 0;
    EXPECT_NEAR(product[i], is_missing ? 0 : age[i] * er[i] - term.mean, 1e-5);
  }
}

TEST(Interactions, OfTwoCategoriesHaveAProductForEachPairOfLevels) {
  DataSettings settings = with_interactions({"unit*sodium"});
  settings.categories = {"unit", "sodium"};
  const auto data = open(settings);
  std::size_t products = 0, sodium_levels = 0;
  for (const Term& term : terms_of(*data->info().table)) {
    products += term.kind == TermKind::interaction;
    sodium_levels += term.column == "sodium";
  }
  EXPECT_GT(sodium_levels, 2u);
  EXPECT_EQ(products, 2 * sodium_levels);
}

TEST(Interactions, DoNotDependOnWhoHasWhichRows) {
  const DataSettings settings = with_interactions({"age*sodium", "sodium*unit", "age*age"});
  EXPECT_TRUE(prepare_alike(*open(settings, 1)->info().table, *open(settings, 7)->info().table));
}

TEST(Interactions, OfColumnsAsTheyCameAreNotCentred) {
  DataSettings settings = with_interactions({"age*sodium"});
  settings.scale = ColumnScaling::none;
  const auto data = open(settings);
  const auto age = feature(*data, "age"), sodium = feature(*data, "sodium");
  const auto product = feature(*data, "age * sodium");
  for (std::size_t i = 0; i < age.size(); ++i) EXPECT_NEAR(product[i], age[i] * sodium[i], 1e-2);
}

TEST(Interactions, AreRefusedByName) {
  EXPECT_THAT(refusal(with_interactions({"age*sodum"})),
              HasSubstr("sodum is no feature column; did you mean sodium?"));
  EXPECT_THAT(refusal(with_interactions({"ward*age"})), HasSubstr("ward is no feature column"));
  EXPECT_THAT(refusal(with_interactions({"age"})), HasSubstr("there is no *"));
  EXPECT_THAT(refusal(with_interactions({"unit*unit"})), HasSubstr("square of a category"));
  EXPECT_THAT(refusal(with_interactions({"age*sodium", "sodium*age"})), HasSubstr("twice"));
}

TEST(MissingIndicators, AreOneWhereAValueIsMissingCentredAndScaled) {
  const auto data = open(with_indicators({"age", "unit"}));
  const auto age = feature(*data, "age"), missing = feature(*data, "age missing");
  EXPECT_NEAR(mean(missing), 0, 1e-6);
  double squares = 0;
  const std::vector<Term> terms = terms_of(*data->info().table);
  const Term& term = terms[4];
  EXPECT_EQ(term.name, "age missing");
  EXPECT_EQ(term.kind, TermKind::missing);
  EXPECT_EQ(terms[5].name, "unit missing");
  EXPECT_DOUBLE_EQ(term.mean, 0.1);
  for (std::size_t i = 0; i < age.size(); ++i) {
    squares += missing[i] * missing[i];
    EXPECT_NEAR(missing[i] * term.divisor + term.mean, age[i] == 0 ? 1 : 0, 1e-6);
  }
  EXPECT_NEAR(squares / double(age.size()), 1, 1e-6);
}

TEST(MissingIndicators, OfAllAreOfThoseThatMissSomething) {
  const auto data = open(with_indicators({"*"}));
  EXPECT_THAT(data->info().table->spec.missing_indicators, ElementsAre("age", "unit"));
  EXPECT_TRUE(constant_columns(*data->info().table).names.empty());
  // Who names a column gets its indicator, which then teaches nothing.
  EXPECT_THAT(constant_columns(*open(with_indicators({"sodium"}))->info().table).names,
              ElementsAre("sodium missing"));
}

TEST(MissingIndicators, AreRefusedByName) {
  EXPECT_THAT(refusal(with_indicators({"agee"})),
              HasSubstr("agee is no feature column; did you mean age?"));
  EXPECT_THAT(refusal(with_indicators({"age", "age"})), HasSubstr("twice"));
  EXPECT_THAT(refusal(with_indicators({"*", "age"})), HasSubstr("alone"));
}

TEST(References, AreWhatOthersAreComparedWith) {
  const auto data = open(with_reference({"unit=ER"}));
  EXPECT_THAT(data->info().feature_names,
              ElementsAre("age", "sodium", "unit=CCU vs ER", "unit=ICU vs ER"));
  // A level's own column is what it was.
  EXPECT_EQ(feature(*data, "unit=CCU vs ER"), feature(*open(kSettings), "unit=CCU vs ICU"));
}

TEST(References, AreComparedAsValuesAre) {
  DataSettings settings = with_reference({"sodium = 131.0"});
  settings.categories = {"unit", "sodium"};
  EXPECT_EQ(open(settings)->info().table->scale.categories[1].baseline, "131");
}

TEST(References, AreRefusedByName) {
  EXPECT_THAT(refusal(with_reference({"unit=ICUU"})),
              HasSubstr("ICUU is none; did you mean ICU?; there are CCU, ER, ICU"));
  EXPECT_THAT(refusal(with_reference({"unti=ICU"})),
              HasSubstr("unti is no category; did you mean unit?"));
  EXPECT_THAT(refusal(with_reference({"age=30"})), HasSubstr("age is no category"));
  EXPECT_THAT(refusal(with_reference({"unit"})), HasSubstr("there is no ="));
  EXPECT_THAT(refusal(with_reference({"unit="})), HasSubstr("is none"));
  EXPECT_THAT(refusal(with_reference({"unit=ER", "unit=ICU"})), HasSubstr("has one already"));
}

// What a run keeps makes the features that training saw.
TEST(Terms, OfRowsThatComeLaterAreThoseOfTraining) {
  DataSettings settings = with_interactions({"age*sodium", "age*unit", "sodium*sodium"});
  settings.missing_indicators = {"*"};
  settings.reference = {"unit=CCU"};
  for (const ColumnScaling scale :
       {ColumnScaling::pooled, ColumnScaling::none, ColumnScaling::robust}) {
    settings.scale = scale;
    const auto data = open(settings, 1);
    const TableFeatures& features = *data->info().table;
    const TableFeatures kept = parse_table_features(to_json(features), "features.json");
    EXPECT_EQ(kept, features);
    EXPECT_TRUE(prepare_alike(kept, features));
    const Batch later = encode_table(table_of(1), kept).batch;
    EXPECT_EQ(later.dense, training_batch(*data, 0).dense);
  }
}

TEST(Terms, OfAKeptFileMustFitItsColumns) {
  DataSettings settings = with_interactions({"age*unit"});
  settings.missing_indicators = {"age"};
  TableFeatures features = *open(settings)->info().table;
  const auto refused = [](const TableFeatures& other) {
    return message_of<InputError>([&] { parse_table_features(to_json(other), "features.json"); });
  };
  TableFeatures few = features, strange = features, unscaled = features;
  few.scale.products[0].pop_back();
  EXPECT_THAT(refused(few), HasSubstr("features.json"));
  strange.spec.missing_indicators[0] = "weight";
  EXPECT_THAT(refused(strange), HasSubstr("features.json"));
  unscaled.scale.missing.clear();
  EXPECT_THAT(refused(unscaled), HasSubstr("features.json"));
}

}  // namespace
}  // namespace fedep
