#include "app/posterior/coefficients/coefficient_table.h"

#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/posterior/coefficients/coefficient_formats.h"
#include "app/posterior/coefficients/test_coefficients.h"
#include "app/test_run.h"
#include "app/trust.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Three units, and what becomes of a patient: three classes. Ages are multiplied.
std::string unit_table(double age_times) {
  std::string text = "ward,died,fate,age,unit\n";
  Stream stream({.seed = 12});
  constexpr const char* kUnits[] = {"icu", "hdu", "ward", "ward"};
  constexpr const char* kFates[] = {"home", "moved", "dead"};
  for (int i = 0; i < 360; ++i) {
    const double age = std::round(20 + 70 * stream.uniform());
    const std::size_t unit = std::size_t(4 * stream.uniform());
    const bool died = stream.uniform() < 1 / (1 + std::exp(-(age - 60) / 15 - (unit == 0)));
    const auto fate = died ? 2 : std::size_t(2 * stream.uniform());
    text += fmt::format("{},{},{},{},{}\n", "ABC"[i % 3], int(died), kFates[fate], age * age_times,
                        kUnits[unit]);
  }
  return text;
}

class UnitRun {
 public:
  explicit UnitRun(const std::string& phase = kFullFedEp,
                   const std::string& data = "label_column = \"died\"\n", double age_times = 1) {
    folder_.write("units.csv", unit_table(age_times));
    const std::string recipe = R"(
seed = 3
[data]
name = "tabular"
path = "units.csv"
client_column = "ward"
features = "age, unit"
categories = "unit"
)" + data + R"(
[client]
epochs = 5
batch = 20
optimizer = { name = "sgd", lr = 0.1 }
[server]
clients_per_round = 3
prior = { mean = 0.0, precision = 1.0 }
optimizer = { name = "sgd", lr = 0.99 }  # windows of four rounds: six are not judged
[[phase]]
rounds = 6
)" + phase;
    run_recipe(parse_recipe(recipe), {.out = path(), .data = folder_.path(), .threads = 1});
  }

  std::filesystem::path path() const { return folder_.path() / "run"; }
  CoefficientTable read(const CoefficientOptions& options = {}) const {
    return read_coefficients(path(), "", options);
  }

 private:
  TemporaryFolder folder_;
};

const Coefficient& row_of(const CoefficientTable& table, const std::string& name) {
  for (const Coefficient& row : table.rows) {
    if (row.name == name) return row;
  }
  throw InputError("no row " + name);
}

Effect own(const CoefficientTable& table, const std::string& name) {
  return effect_of(table, row_of(table, name), EffectUnit::own);
}

TEST(Coefficients, AColumnInOtherUnitsHasTheSameEffectForTheSameChange) {
  const UnitRun years, months(kFullFedEp, "label_column = \"died\"\n", 12);
  const CoefficientTable a = years.read(), b = months.read();
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (std::size_t i = 0; i < a.rows.size(); ++i) {  // the standardised table stays as it is
    EXPECT_NEAR(a.rows[i].mean, b.rows[i].mean, 1e-5);
    EXPECT_NEAR(*a.rows[i].deviation, *b.rows[i].deviation, 1e-5);
  }
  EXPECT_NEAR(own(a, "age").estimate, 12 * own(b, "age").estimate, 1e-5);
  const CoefficientTable by_year = months.read({.per = {"age=12"}});
  EXPECT_NEAR(own(a, "age").estimate, own(by_year, "age").estimate, 1e-5);
  EXPECT_NEAR(own(a, "age").interval->first, own(by_year, "age").interval->first, 1e-5);
  EXPECT_EQ(own(b, "unit=icu vs ward").estimate, own(by_year, "unit=icu vs ward").estimate);
}

TEST(Coefficients, InOwnUnitsAreNearWhatTheTableWasMadeOf) {
  const UnitRun run;
  const CoefficientTable table = run.read();
  EXPECT_NEAR(own(table, "age").estimate, 1 / 15.0, 0.02);
  EXPECT_NEAR(own(table, "unit=icu vs ward").estimate, 1, 0.7);
  EXPECT_LT(own(table, "unit=icu vs ward").interval->first, 1);
  EXPECT_GT(own(table, "unit=icu vs ward").interval->second, 1);
  EXPECT_EQ(table.outcome, "died");
}

TEST(Coefficients, OneLevelAgainstAnotherIsTheOppositeOfTheOtherAgainstIt) {
  const UnitRun run;
  const CoefficientTable table =
      run.read({.contrasts = {"unit=icu,hdu", "unit=hdu,icu", "unit=icu,ward"}});
  const Effect there = own(table, "unit=icu vs hdu"), back = own(table, "unit=hdu vs icu");
  EXPECT_NEAR(there.estimate, -back.estimate, 1e-12);
  EXPECT_NEAR(there.interval->first, -back.interval->second, 1e-12);
  EXPECT_NEAR(there.estimate,
              own(table, "unit=icu vs ward").estimate - own(table, "unit=hdu vs ward").estimate,
              1e-12);
  // Both are compared with one reference, which their difference is free of.
  const auto width = [&](const std::string& name) {
    const Effect effect = own(table, name);
    return effect.interval->second - effect.interval->first;
  };
  EXPECT_LT(width("unit=icu vs hdu"),
            0.95 * std::hypot(width("unit=icu vs ward"), width("unit=hdu vs ward")));
  // Against the reference a contrast is the row that is there already.
  EXPECT_EQ(table.rows.back().kind, RowKind::contrast);
  EXPECT_NEAR(effect_of(table, table.rows.back(), EffectUnit::own).estimate,
              own(table, "unit=icu vs ward").estimate, 1e-12);
}

TEST(Coefficients, AContrastOfTwoLevelsNeedsTheirCovariance) {
  const UnitRun run(kFedEp);
  EXPECT_THAT(message_of<InputError>([&] { run.read({.contrasts = {"unit=icu,hdu"}}); }),
              HasSubstr("need a full covariance matrix"));
  EXPECT_NO_THROW(run.read({.contrasts = {"unit=icu,ward"}}));
  const UnitRun estimate(kFedAvg);  // has no intervals to be wrong
  EXPECT_FALSE(estimate.read({.contrasts = {"unit=icu,hdu"}}).rows.back().deviation);
}

TEST(Coefficients, IntervalsNestByLevel) {
  const UnitRun run;
  double before = 0;
  for (const double level : {0.5, 0.8, 0.9, 0.95, 0.99}) {
    const Effect effect = own(run.read({.level = level}), "age");
    EXPECT_GT(effect.interval->second - effect.interval->first, before);
    before = effect.interval->second - effect.interval->first;
  }
  for (const double level : {0.0, 1.0, 95.0}) EXPECT_THROW(run.read({.level = level}), InputError);
}

TEST(Coefficients, OfSeveralClassesAreAgainstOneOfThem) {
  const UnitRun run(
      "algorithm = \"fed_ep\"\nfactors = \"flat\"\n[phase.inference]\nname = \"laplace\"\nfamily = "
      "\"full\"\n",
      "label_column = \"fate\"\nlabel = \"classes\"\n");
  const CoefficientTable first = run.read();
  EXPECT_EQ(first.reference, "dead");
  ASSERT_EQ(first.rows.size(), 8u);
  EXPECT_EQ(first.rows[0].of_class, "home");
  EXPECT_EQ(first.rows[4].of_class, "moved");
  const CoefficientTable other = run.read({.reference = "home"});
  // dead against home is the opposite of home against dead, and moved against home their difference.
  EXPECT_NEAR(other.rows[0].mean, -first.rows[0].mean, 1e-12);
  EXPECT_NEAR(*other.rows[0].deviation, *first.rows[0].deviation, 1e-12);
  EXPECT_NEAR(other.rows[4].mean, first.rows[4].mean - first.rows[0].mean, 1e-9);
  EXPECT_NEAR(std::accumulate(first.shares.begin(), first.shares.end(), 0.0), 1, 1e-9);
  for (std::size_t k = 0; k < first.shares.size(); ++k)
    EXPECT_NEAR(first.shares[k], other.shares[k], 1e-9);
  EXPECT_THAT(coefficients_text(first), HasSubstr("\nhome against dead\n"));
  EXPECT_THROW(run.read({.reference = "hom"}), InputError);
  EXPECT_EQ(forest_of(first).rows[0].group, "home against dead");
}

TEST(Coefficients, HaveTheNamesThatTheRunWroteDown) {
  const TestRun run;
  const CoefficientTable table = read_coefficients(run.path(), "/nowhere");
  std::vector<std::string> names;
  for (const Coefficient& row : table.rows) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"age", "sodium", "unit=CCU vs ICU", "intercept"}));
  EXPECT_GT(table.rows[0].mean, 0.5);
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("the run was not judged: it has 6")));
  EXPECT_EQ(table.outcome, "died = yes");
  EXPECT_THROW(read_coefficients(run.path(), "", {.reference = "yes"}), InputError);
}

TEST(Coefficients, OfColumnsThatDoNotVaryAreNotMadeUp) {
  const TemporaryFolder folder;
  const auto run = constant_run(folder);
  const CoefficientTable table = read_coefficients(run, "/nowhere");
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(table.rows[2].name, "unit=CCU vs ICU");
  EXPECT_EQ(table.rows[3].name, "intercept");
  EXPECT_THAT(coefficients_text(table), HasSubstr("have no coefficient: year, \"weight, kg\".\n"));
}

TEST(Coefficients, SayWhatIsWrongWithTheRun) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  recipe.client.optimizer.lr = 1e24;
  recipe.client.weight_decay = 1e24;
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const CoefficientTable table = read_coefficients(folder.path() / "run", "");
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_THAT(coefficients_text(table),
              HasSubstr("Note: the run is not to be trusted: clients' answers were refused in 6 of "
                        "6 rounds"));
}

TEST(Coefficients, OfARunThatIsNotToBeTrustedHaveNoIntervals) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  recipe.server.optimizer.lr = 1.5;  // windows of two rounds
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const CoefficientTable table = read_coefficients(folder.path() / "run", "");
  EXPECT_EQ(table.verdict.trust, Trust::none);
  EXPECT_FALSE(table.rows[0].deviation);
  EXPECT_TRUE(table.shares.empty());
  EXPECT_THAT(coefficients_text(table), HasSubstr("There are no intervals: the run is not to be"));
  EXPECT_EQ(exit_code_of(table.verdict), 3);
}

TEST(Coefficients, DataWithoutNamedColumnsAreRefused) {
  const TemporaryFolder folder;
  const Recipe recipe = parse_recipe(
      "[data]\nname = \"synthetic\"\n[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 1\n");
  run_recipe(recipe, {.out = folder.path() / "run", .data = "", .threads = 1, .resume = false});
  EXPECT_THAT(message_of<InputError>([&] { read_coefficients(folder.path() / "run", ""); }),
              HasSubstr("data must be a table"));
}

}  // namespace
}  // namespace fedep
