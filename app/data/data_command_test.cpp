#include "app/data/data_command.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/data/test_data_command.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/registry.h"
#include "fedep/data/table/audit/audit.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/sim/learning_task.h"

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

TEST(DataCommand, DescribesWhatARunTrainsOn) {
  const TemporaryFolder folder;
  const auto recipe = folder.path() / "recipe.toml";
  std::ofstream(recipe) << R"(
[data]
name = "random_images"
examples = 200
partition = "iid"
clients = 4
unseen_classes = [1, 2]
calibration_fraction = 0.25
[[phase]]
algorithm = "fed_avg"
rounds = 1
)";
  const std::string command = "data describe " + recipe.string();
  const auto json = nlohmann::json::parse(printed_by_data(command + " --json"));
  const auto task = open_task_data(read_recipe(recipe.string(), {}), "");
  EXPECT_EQ(json.at("outputs"), 8);
  EXPECT_EQ(json.at("train").at("examples"),
            spread_of_counts({task->clients()[0].second, task->clients()[1].second,
                              task->clients()[2].second, task->clients()[3].second})
                .examples);
  EXPECT_EQ(json.at("test").at("examples"), task->test_size());
  EXPECT_EQ(json.at("calibration_examples"), task->calibration()->test_size());
  EXPECT_EQ(json.at("unlike_examples"), task->unlike()->test_size());
  const std::string text = printed_by_data(command + " --set data.validation_fraction=0.2");
  EXPECT_NE(text.find("\nexamples (train / validation) "), std::string::npos) << text;
  EXPECT_NE(text.find("\nheld out of unseen classes "), std::string::npos) << text;
}

TEST(DataCommand, PrintsATableThatIsRefused) {
  const TemporaryFolder folder;
  std::string rows = "ward,died,age\n";
  for (int i = 0; i < 60; ++i) {
    rows += std::string(1, char('A' + i % 3)) + (i % 4 ? ",1," : ",0,") +
            (i == 40 ? "-999" : std::to_string(20 + i * 7 % 50 + 0.5)) + "\n";
  }
  std::ofstream(folder.path() / "stays.csv") << rows;
  const std::string command = "data describe tabular --data " + folder.path().string() +
                              " --set data.path=stays.csv --set data.client_column=ward"
                              " --set data.label_column=died";
  testing::internal::CaptureStdout();
  EXPECT_THROW(
      {
        Command app("fedep", "fedep");
        int exit_code = -1;
        add_data_command(app, exit_code);
        app.parse(command);
      },
      AuditError);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("all clients: 60 rows, 45 events"), std::string::npos) << text;
  EXPECT_NE(text.find("- refused: missing-code: column age has -999 in 1 row (1 at B; line 42"),
            std::string::npos)
      << text;
}

TEST(DataCommand, RefusesWhatIsNeitherARecipeNorADataSet) {
  EXPECT_THROW(printed_by_data("data describe synthetik"), InputError);
  EXPECT_THROW(printed_by_data("data describe missing.toml"), InputError);
  EXPECT_THROW(printed_by_data("data describe"), InputError);
}

}  // namespace
}  // namespace fedep
