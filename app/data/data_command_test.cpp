#include "app/data/data_command.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/data/test_data_command.h"
#include "fedep/data/registry.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

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
      nlohmann::json::parse(printed_by_data("data describe synthetic --json --set data.clients=7"));
  EXPECT_EQ(json.at("train").at("clients"), 7);
  EXPECT_TRUE(json.at("model_size").is_null());
  const std::string text = printed_by_data("data describe synthetic --set data.clients=7");
  EXPECT_NE(text.find("clients (train / test)              7 / "), std::string::npos) << text;
}

TEST(DataCommand, RefusesWhatIsNeitherARecipeNorADataSet) {
  EXPECT_THROW(printed_by_data("data describe synthetik"), InputError);
  EXPECT_THROW(printed_by_data("data describe missing.toml"), InputError);
  EXPECT_THROW(printed_by_data("data describe"), InputError);
}

}  // namespace
}  // namespace fedep
