#include "app/posterior/coverage_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/test_run.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

using testing::HasSubstr;

// Long enough to converge, from the prior.
constexpr const char* kEnough = " --set server.damping=0.5 phase.0.rounds=15 phase.0.factors=flat";

// A folder with the wards' table and a recipe of the full family.
class Wards {
 public:
  Wards() {
    folder_.write("wards.csv", ward_table());
    folder_.write("wards.toml", ward_recipe(kFullFedEp));
  }
  std::filesystem::path path() const { return folder_.path(); }
  // What a command prints.
  std::string coverage(const std::string& arguments) const {
    Command app("fedep", "fedep");
    int exit_code = 0;
    add_coverage_command(app, exit_code);
    testing::internal::CaptureStdout();
    try {
      app.parse("coverage " + (path() / "wards.toml").string() + " --data " + path().string() +
                " " + arguments);
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    return testing::internal::GetCapturedStdout();
  }

 private:
  TemporaryFolder folder_;
};

TEST(CoverageCommand, TextAndJsonAndPageTellTheSame) {
  const Wards wards;
  const std::string out = (wards.path() / "study").string();
  const auto json =
      nlohmann::json::parse(wards.coverage("--replicates 40 --json --out " + out + kEnough));
  EXPECT_EQ(json["replicates"], 40);
  EXPECT_EQ(json["clients"], 3);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_EQ(json["coefficients"].size(), 4u);
  EXPECT_EQ(json["coefficients"][2]["name"], "unit=CCU vs ICU");
  EXPECT_EQ(json["covered"][2]["level"], 0.95);
  EXPECT_NEAR(json["covered"][2]["value"].get<double>(), 0.95, 0.08);
  EXPECT_EQ(json["doubts"].size(), 0u);

  const std::string text = wards.coverage(std::string("--replicates 40 --threads 2") + kEnough);
  EXPECT_THAT(text, HasSubstr("3 clients, 240 rows, 4 coefficients; fed_ep, 40 replicates"));
  EXPECT_THAT(text, HasSubstr("Nothing speaks against these intervals."));
  EXPECT_THAT(
      text, HasSubstr(fmt::format("{:>5.1f} ±", 100 * json["covered"][2]["value"].get<double>())));
  EXPECT_TRUE(std::filesystem::exists(out + "/coverage.html"));
  EXPECT_TRUE(std::filesystem::exists(out + "/coverage.json"));
}

TEST(CoverageCommand, AWrongPriorIsADoubt) {
  const Wards wards;
  const auto json = nlohmann::json::parse(
      wards.coverage(std::string("--replicates 60 --json --truth-precision 0.02") + kEnough));
  EXPECT_GT(json["doubts"].size(), 0u);
  EXPECT_EQ(json["truth_precision"], 0.02);
  EXPECT_LT(json["sd_ratio"]["value"], 0.8);
}

// What a factor had at the start is still in it after a few rounds.
TEST(CoverageCommand, ARunThatStopsTooEarlyIsADoubt) {
  const auto json = nlohmann::json::parse(
      Wards().coverage("--replicates 40 --json --set phase.0.rounds=3 phase.0.factors=carry_mean"));
  EXPECT_GT(json["doubts"].size(), 0u);
}

TEST(CoverageCommand, RefusesWhatHasNoIntervals) {
  const Wards wards;
  const auto refusal = [&](const std::string& arguments) {
    try {
      wards.coverage(arguments);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal("--set phase.0.algorithm=fed_avg"), HasSubstr("an estimate alone"));
  EXPECT_THAT(refusal("--set data.name=toy"), HasSubstr("must have rows"));
  EXPECT_THAT(refusal("--set phase.0.cavity=whole"), HasSubstr("there are no intervals"));
  EXPECT_THAT(refusal("--set server.clients_per_round=9"), HasSubstr("must be at most 3"));
  EXPECT_THAT(refusal("--truth-precision 0"), HasSubstr("precision of truths must be positive"));
}

TEST(CoverageCommand, FewReplicatesSayThatRanksAreNotTested) {
  EXPECT_THAT(Wards().coverage("--replicates 5"), HasSubstr("that needs 20 replicates"));
}

}  // namespace
}  // namespace fedep
