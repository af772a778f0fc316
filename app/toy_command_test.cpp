#include "app/toy_command.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

int run(const std::string& arguments) {
  Command app("fedep", "fedep");
  int exit_code = -1;
  add_toy_command(app, exit_code);
  app.parse(arguments);
  return exit_code;
}

TEST(ToyCommand, PrintsTheJsonThatMachinesExpect) {
  testing::internal::CaptureStdout();
  const int exit_code = run("toy --trials 3 --steps 4 --seed 18446744073709551615 --json");
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_EQ(exit_code, 0);
  const auto json = nlohmann::json::parse(out);
  for (const auto* method : {"fed_avg", "fed_pa", "fed_ep", "fed_ep_identity"}) {
    for (const auto* statistic : {"mean", "std", "median"}) {
      EXPECT_TRUE(json.at(method).at(statistic).is_number()) << method << '.' << statistic;
    }
  }
  EXPECT_EQ(json.at("trials"), 3);
  EXPECT_EQ(json.at("steps"), 4);
  EXPECT_EQ(json.at("seed"), 18446744073709551615u);
  EXPECT_EQ(json.at("precision"), "float64");
}

TEST(ToyCommand, PrintsItsNumbersBesideThePapers) {
  const ToyOptions options{.trials = 2, .steps = 3, .float32 = true};
  const std::string table =
      toy_table(options, run_toy_experiment({.trials = 2, .steps = 3, .float32 = true}));
  for (const auto* part : {"FedAvg", "5.4e-01 ± 4.7e-01", "FedPA", "2.6e-01 ± 2.6e-01",
                           "1.1e-07 ± 9.8e-08", "scaled identity", "float32"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part;
  }
}

TEST(ToyCommand, GivesTheSameNumbersForTheSameSeed) {
  const auto numbers = [](std::uint64_t seed) {
    return toy_json({}, run_toy_experiment({.trials = 3, .steps = 2, .seed = seed}));
  };
  EXPECT_EQ(numbers(4), numbers(4));
  EXPECT_NE(numbers(4), numbers(5));
}

TEST(ToyFigures, AreWrittenIntoAFolderMadeForThem) {
  const TemporaryFolder folder;
  const auto deep = folder.path() / "new" / "deep";
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run("toy --trials 2 --steps 3 --figure " + (deep / "toy").string());
  testing::internal::GetCapturedStdout();
  const std::string told = testing::internal::GetCapturedStderr();
  for (const auto* name : {"toy-contours.svg", "toy-distance.svg"}) {
    const auto path = deep / name;
    EXPECT_EQ(text_of(path).substr(0, 4), "<svg");
    EXPECT_NE(told.find(path.string()), std::string::npos);
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(deep)) {
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 2);  // no unfinished one is left behind
}

TEST(ToyFigures, FailWithTheNameWhereNothingCanBeWritten) {
  const TemporaryFolder folder;
  const auto file = folder.write("file", "not a folder");
  testing::internal::CaptureStdout();
  const std::string refusal = message_of<RunError>(
      [&] { run("toy --trials 1 --steps 1 --figure " + (file / "toy").string()); });
  EXPECT_NE(refusal.find(file.string()), std::string::npos) << refusal;
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(ToyCommand, RefusesNoTrialsAndNoSteps) {
  EXPECT_THROW(run("toy --trials 0"), InputError);
  EXPECT_THROW(run("toy --steps -1"), InputError);
  EXPECT_THROW(run("toy --trials many"), InputError);
}

}  // namespace
}  // namespace fedep
