// A table with a prior and an algorithm: what a run of the full family is from its recipe to what every
// command tells of it.

#include <cmath>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/posterior/coefficients_command.h"
#include "app/posterior/evaluate_command.h"
#include "app/posterior/export_command.h"
#include "app/posterior/predict_file.h"
#include "app/posterior/saved_posterior.h"
#include "app/test_run.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/message/error.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/log/history.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(FullFamily, IsWhatATableHasWhoseRecipeSaysNothingElse) {
  const TestRun run(kFullFedEp);
  const SavedPosterior saved = read_posterior(run.path());
  EXPECT_TRUE(saved.state.global.full());
  EXPECT_TRUE(saved.posterior);
  const InferenceSettings inference = *read_recipe(run.path() / "recipe.toml").phases[0].inference;
  EXPECT_EQ(inference.name, "quadrature");
  EXPECT_EQ(inference.family, FamilyChoice::full);
  for (const RoundRecord& round : read_history(run.path() / "log.jsonl").rounds) {
    EXPECT_GE(round.condition, 1);
    EXPECT_TRUE(std::isfinite(round.train_loss));
  }
}

TEST(FullFamily, EveryCommandHasItsCovariance) {
  const TestRun run(std::string(kFullFedEp) + "[evaluate]\nsamples = 5\n");
  const SavedPosterior saved = read_posterior(run.path());
  const Eigen::MatrixXd sigma = covariance(in_double(saved.state.global));

  const CoefficientTable table = read_coefficients(run.path(), "/nowhere");
  ASSERT_EQ(table.rows.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto at = Eigen::Index(i);
    EXPECT_NEAR(table.rows[i].deviation.value(), std::sqrt(sigma(at, at)), 1e-6);
  }
  EXPECT_THAT(coefficients_text(table), HasSubstr("full covariance matrix"));
  EXPECT_THAT(coefficients_text(table), Not(HasSubstr("uncorrelated")));
  EXPECT_EQ(nlohmann::json::parse(coefficients_json(table))["family"], "full");

  const auto written = export_safetensors(run.path(), run.folder().path() / "out");
  ASSERT_EQ(written.size(), 3u);
  const SafetensorsFile file = read_safetensors(written[2]);
  ASSERT_EQ(file.tensor("covariance").shape, (std::vector<std::int64_t>{4, 4}));
  const auto& elements = file.get<float>("covariance");
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(elements[i], sigma(Eigen::Index(i / 4), Eigen::Index(i % 4)), 1e-6);
  }
  const auto deviations = read_safetensors(written[1]).get<float>("weight");
  EXPECT_NEAR(deviations[1], std::sqrt(sigma(1, 1)), 1e-6);

  EXPECT_EQ(evaluate_run(run.path(), run.folder().path(), {}).samples, 5);
  const PredictedRows rows =
      predict_file(run.path(), run.write("new.csv", "age,sodium,unit\n70,140,ICU\n"), "", 5);
  EXPECT_EQ(rows.mutual_information.size(), 1u);
}

// Columns that are the same but for a prior that hardly holds them.
std::filesystem::path collinear_run(const TemporaryFolder& folder) {
  std::string table;
  const std::string once = ward_table();
  for (std::size_t begin = 0; begin < once.size();) {
    const std::size_t end = once.find('\n', begin);
    const std::string line = once.substr(begin, end - begin);
    std::size_t age = 0;
    for (int commas = 0; commas < 2; ++commas) age = line.find(',', age) + 1;
    const std::string value = line.substr(age, line.find(',', age) - age);
    table += line + "," + (begin == 0 ? "years" : value) + "\n";
    begin = end + 1;
  }
  folder.write("wards.csv", table);
  Recipe recipe = parse_recipe(ward_recipe(kFullFedEp));
  recipe.server.prior->precision = 1e-6;
  recipe.phases[0].factors = FactorStart::flat;  // alpha holds them otherwise
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  return folder.path() / "run";
}

TEST(FullFamily, AMatrixThatCannotBeInvertedReliablyHasNoIntervals) {
  const TemporaryFolder folder;
  const auto run = collinear_run(folder);
  EXPECT_GT(read_history(run / "log.jsonl").rounds.back().condition, 1e6);
  const CoefficientTable table = read_coefficients(run, "");
  EXPECT_THAT(coefficients_text(table), Not(HasSubstr("95 %")));
  EXPECT_THAT(coefficients_text(table), HasSubstr("There are no intervals: the posterior's"));
  const auto json = nlohmann::json::parse(coefficients_json(table));
  EXPECT_TRUE(json["coefficients"][0]["sd"].is_null());
  EXPECT_THAT(std::string(json["withheld"]), HasSubstr("condition number"));
  EXPECT_EQ(export_safetensors(run, folder.path() / "out").size(), 1u);
  EXPECT_THAT(evaluate_run(run, folder.path(), {}).notes,
              ElementsAre(HasSubstr("scores are those of the mean, without draws")));
  const auto file = folder.write("new.csv", "age,sodium,unit,years\n70,140,ICU,70\n");
  const PredictedRows rows = predict_file(run, file, "", 5);
  EXPECT_TRUE(rows.mutual_information.empty());
  EXPECT_THAT(rows.notes, testing::Contains(HasSubstr("condition number")));
}

std::map<std::string, std::vector<std::byte>> states_of(const std::filesystem::path& run) {
  std::map<std::string, std::vector<std::byte>> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    const auto extension = entry.path().extension();
    if (extension != ".safetensors" && extension != ".site") continue;
    files[entry.path().filename().string()] = read_file(entry.path());
  }
  return files;
}

TEST(FullFamily, ARunThatIsStoppedGoesOnToTheSameBits) {
  for (const char* algorithm : {"fed_ep", "fed_sep"}) {
    const std::string phase = fmt::format("algorithm = \"{}\"\n", algorithm);
    const TestRun whole(phase);
    const TemporaryFolder folder;
    folder.write("wards.csv", ward_table());
    const Recipe recipe = parse_recipe(ward_recipe(phase));
    RunRecipeOptions options{.out = folder.path() / "run", .data = folder.path()};
    run_recipe(shortened(recipe, 2), options);
    options.resume = true;
    options.threads = 3;
    run_recipe(recipe, options);
    EXPECT_EQ(states_of(options.out), states_of(whole.path()));
  }
}

TEST(FullFamily, ARunOfBeforeGoesOnWithTheFamilyThatItsMethodHas) {
  const TestRun whole;  // diagonal, as asked
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  RunRecipeOptions options{.out = folder.path() / "run", .data = folder.path()};
  run_recipe(shortened(recipe, 2), options);
  // Recipes of before had no word on families.
  const auto kept = options.out / "recipe.toml";
  std::string text = to_toml(read_recipe(kept));
  const std::string word = "family = \"diagonal\"\n";
  text.erase(text.find(word), word.size());
  folder.write("run/recipe.toml", text);
  const SavedPosterior saved = read_posterior(options.out);
  Checkpoint checkpoint = read_checkpoint(saved.file, saved.layout);
  checkpoint.recipe = text;
  write_checkpoint(saved.file, checkpoint, saved.layout);
  recipe.phases[0].inference->family = FamilyChoice::automatic;
  options.resume = true;
  const ServerState state = run_recipe(recipe, options).result.state;
  EXPECT_EQ(state.global, read_posterior(whole.path()).state.global);
}

TEST(FullFamily, IsRefusedOnADeviceOfItsOwnMemory) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  const Recipe recipe = parse_recipe(ward_recipe(kFullFedEp));
  RunRecipeOptions options{.out = folder.path() / "run", .data = folder.path()};
  options.device = "cuda";
  EXPECT_THAT(message_of<InputError>([&] { run_recipe(recipe, options); }),
              HasSubstr("family = \"diagonal\""));
  EXPECT_FALSE(std::filesystem::exists(options.out));
}

}  // namespace
}  // namespace fedep
