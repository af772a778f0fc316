#include "app/data_command.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fedep/data/registry.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

std::string run(const std::string& arguments) {
  CLI::App app("fedep");
  int exit_code = -1;
  add_data_command(app, exit_code);
  testing::internal::CaptureStdout();
  try {
    app.parse(arguments);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  EXPECT_EQ(exit_code, 0);
  return testing::internal::GetCapturedStdout();
}

TEST(SpreadOfCounts, IsThePopulationsMeanAndDeviation) {
  const CountSpread spread = spread_of_counts({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(spread.clients, 8u);
  EXPECT_EQ(spread.examples, 40u);
  EXPECT_EQ(spread.mean, 5);
  EXPECT_EQ(spread.std, 2);
  EXPECT_EQ(spread_of_counts({3}).std, 0);
  EXPECT_EQ(spread_of_counts({}).mean, 0);
}

TEST(Describe, CountsWhatTheDataSetHas) {
  const auto data = open_dataset({.name = "synthetic", .clients = 7}, 1, "");
  const DatasetDescription description = describe(*data);
  std::size_t examples = 0;
  for (const auto& [id, count] : data->clients()) examples += count;
  EXPECT_EQ(description.train.clients, 7u);
  EXPECT_EQ(description.train.examples, examples);
  EXPECT_EQ(description.test.examples, data->test_size());
}

TEST(DataCommand, PrintsTheSameNumbersAsTextAndAsJson) {
  const auto json =
      nlohmann::json::parse(run("data describe synthetic --json --set data.clients=7"));
  EXPECT_EQ(json.at("train").at("clients"), 7);
  EXPECT_TRUE(json.at("model_size").is_null());
  const std::string text = run("data describe synthetic --set data.clients=7");
  EXPECT_NE(text.find("clients (train / test)              7 / "), std::string::npos) << text;
}

TEST(DataCommand, RefusesWhatIsNeitherARecipeNorADataSet) {
  EXPECT_THROW(run("data describe synthetik"), InputError);
  EXPECT_THROW(run("data describe missing.toml"), InputError);
  EXPECT_THROW(run("data describe"), CLI::ParseError);
}

}  // namespace
}  // namespace fedep
