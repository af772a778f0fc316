#include "fedep/page/report/report_data.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "fedep/page/test_runs.h"
#include "fedep/round/play_round.h"

namespace fedep {
namespace {

double half(std::int64_t) { return 0.5; }

Json data_of(const RunRecord& run) { return report_data(std::vector{run}, {})["runs"][0]; }

TEST(ReportData, HasEveryRunsCurvesAndCumulativeCosts) {
  const Json data = report_data(
      std::vector{test_run("a", 1, [](auto i) { return 0.1 * double(i); })}, {.version = "1.2.3"});
  EXPECT_EQ(data["version"], "1.2.3");
  EXPECT_EQ(data["live"], false);
  const Json& run = data["runs"][0];
  EXPECT_EQ(run["name"], "a");
  EXPECT_EQ(run["status"], "finished");
  EXPECT_EQ(run["played"], 6);
  EXPECT_EQ(run["rounds"], 6);
  EXPECT_EQ(run["algorithm"], "fed_ep");
  EXPECT_EQ(run["inference"], "laplace");
  EXPECT_EQ(run["curves"]["accuracy"], Json({0.0, 0.1, 0.2, 0.3, 0.4, 0.5}));
  EXPECT_EQ(run["curves"]["train_loss"][5], 0.5);
  EXPECT_EQ(run["bytes"], Json({150.0, 300.0, 450.0, 600.0, 750.0, 900.0}));
  EXPECT_EQ(run["seconds"][5], 1.5);
  EXPECT_EQ(run["phases"][1]["first_round"], 2);
  EXPECT_EQ(data["metrics"][0]["name"], "accuracy");
  EXPECT_EQ(data["metrics"][0]["percent"], true);
  EXPECT_EQ(data["groups"][0]["runs"], Json({0}));
}

TEST(ReportData, WritesNullForWhatDoesNotExist) {
  RunRecord run = test_run("a", 1, half);
  set_score(run.history.rounds[2], "accuracy", NAN);
  const Json json = data_of(run);
  EXPECT_TRUE(json["curves"]["accuracy"][2].is_null());
  EXPECT_TRUE(json["posterior"].is_null());
  EXPECT_TRUE(json["reliability"].is_null());
  EXPECT_EQ(json.dump().find("nan"), std::string::npos);
}

TEST(ReportData, HasTheVerdictOnAFinishedRunAndHowFarQMoved) {
  RunRecord run = test_run("a", 1, half);
  EXPECT_TRUE(data_of(run)["verdict"].is_null());
  run.verdict = {Trust::none, "it diverged", "a smaller lr"};
  run.history.rounds[3].window_end = WindowEnd{0.25, 0.5};
  const Json json = data_of(run);
  EXPECT_EQ(json["verdict"]["trust"], "no");
  EXPECT_EQ(json["verdict"]["text"], "it diverged. What helps: a smaller lr");
  EXPECT_EQ(json["curves"]["moved"], Json({nullptr, nullptr, nullptr, 0.5, nullptr, nullptr}));
}

TEST(ReportData, CountsWhoWasAskedAsTheRoundsDid) {
  const RunRecord run = test_run("a", 5, half);
  std::vector<int> counts(6, 0);
  for (std::int64_t round = 0; round < 6; ++round) {
    for (const std::size_t client : sample_clients(5, round, 6, 3)) ++counts[client];
  }
  const Json json = data_of(run);
  EXPECT_EQ(json["participation"]["counts"], Json(counts));
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 18);

  RunRecord large = run;
  large.history.header->clients = 100000;
  std::int64_t clients = 0, asked = 0;
  const Json many = data_of(large);
  for (const Json& entry : many["participation"]["times"]) {
    asked += entry[0].get<std::int64_t>() * entry[1].get<std::int64_t>();
    clients += entry[1].get<std::int64_t>();
  }
  EXPECT_EQ(clients, 100000);
  EXPECT_EQ(asked, 18);

  RunRecord unknown = run;  // a log of an older version
  unknown.history.header->clients = 0;
  EXPECT_TRUE(data_of(unknown)["participation"].is_null());
}

TEST(ReportData, AddsUpGuardsAndDropouts) {
  RunRecord run = test_run("a", 1, half);
  run.history.rounds[1].dropped = 2;
  run.history.rounds[4].dropped = 1;
  run.history.rounds[4].step_scale = 0.25;
  const Json counters = data_of(run)["counters"];
  EXPECT_EQ(counters["dropped"]["total"], 3);
  EXPECT_EQ(counters["dropped"]["rounds"], 2);
  EXPECT_EQ(counters["backed_off"]["total"], 1);
  EXPECT_EQ(counters["guarded"]["total"], 0);
}

TEST(ReportData, SaysHowFarQIsFromItsFactorsWhereSomebodyLooked) {
  RunRecord run = test_run("a", 1, half, {"server.optimizer.momentum=0.9"});
  EXPECT_TRUE(data_of(run)["factor_gap"].is_null());
  run.history.rounds[4].factor_gap_eta = 0.5;
  run.history.rounds[4].factor_gap_lambda = 0.25;
  const Json gap = data_of(run)["factor_gap"];
  EXPECT_EQ(gap["round"], 4);
  EXPECT_EQ(gap["eta"], 0.5);
  EXPECT_EQ(gap["lambda"], 0.25);
  EXPECT_NE(std::string(gap["text"]).find("momentum"), std::string::npos);
}

TEST(ReportData, HandsOnEvaluationPosteriorTablesAndNotices) {
  RunRecord run = test_run("a", 1, half);
  run.evaluation =
      Json::parse(R"({"reliability": {"point": [{"confidence": 1, "accuracy": 1, "weight": 1}]}})");
  run.posterior = PosteriorSpread{
      .round = 6, .weights = 2, .isotropic = true, .deviation = 0.5, .edges = {}, .layers = {}};
  const Json data = report_data(
      std::vector{run}, {.tables = {{"t", "n", {"c"}, {{"1"}}}}, .notices = {"b is not shown"}});
  EXPECT_EQ(data["runs"][0]["reliability"]["point"][0]["weight"], 1);
  EXPECT_EQ(data["runs"][0]["posterior"]["deviation"], 0.5);
  EXPECT_EQ(data["tables"][0]["rows"][0][0], "1");
  EXPECT_EQ(data["notices"][0], "b is not shown");
}

TEST(ReportData, HasNothingOfASpreadThatIsWithheldButWhy) {
  RunRecord run = test_run("a", 1, half);
  run.posterior = PosteriorSpread{
      .round = 6, .weights = 2, .isotropic = true, .deviation = 0.5, .edges = {}, .layers = {}};
  run.posterior->note = "half of it is alpha";
  EXPECT_EQ(data_of(run)["posterior"]["note"], "half of it is alpha");
  run.posterior->withheld = "precisions are set";
  EXPECT_EQ(
      data_of(run)["posterior"],
      Json({{"round", 6}, {"weights", 2}, {"improper", 0}, {"withheld", "precisions are set"}}));
}

// Withheld or not: the page has a banner for it.
TEST(ReportData, SaysThatAPosteriorIsImproper) {
  RunRecord run = test_run("a", 1, half);
  run.posterior = PosteriorSpread{
      .round = 6, .weights = 2, .isotropic = true, .deviation = NAN, .edges = {}, .layers = {}};
  EXPECT_EQ(data_of(run)["posterior"]["improper"], 2);
  run.posterior->withheld = "its posterior is improper";
  EXPECT_EQ(data_of(run)["posterior"]["improper"], 2);
}

TEST(ReportData, HasCoefficientsWhereSomebodyKnowsThem) {
  RunRecord run = test_run("a", 1, half);
  EXPECT_TRUE(data_of(run)["coefficients"].is_null());
  run.coefficients = CoefficientReport{
      .figure = {.title = "Odds ratios",
                 .rows = {{.name = "age", .estimate = 0, .interval = Bounds{-1, 1}}}}};
  EXPECT_EQ(data_of(run)["coefficients"]["rows"][0]["name"], "age");
  EXPECT_EQ(data_of(run)["coefficients"]["rows"][0]["low"], -1);
}

TEST(ReportData, OfAWatchedRunSaysHowManyRoundsAPointStandsFor) {
  RunRecord run = test_run("a", 1, half);
  run.so_far = RunSoFar{.played = 48, .rounds_each = 8, .counters = {}, .participation = {}};
  run.so_far->counters.dropped = {5, 3};
  const Json json = data_of(run);
  EXPECT_EQ(json["played"], 48);
  EXPECT_EQ(json["rounds_each"], 8);
  EXPECT_EQ(json["counters"]["dropped"]["rounds"], 3);
  EXPECT_TRUE(json["participation"].is_null());
}

TEST(ReportData, AsksNobodyWhereALogNamesMoreClientsThanThereAre) {
  RunRecord run = test_run("a", 1, half);
  for (const std::int64_t clients : {std::int64_t(-3), std::int64_t(1) << 60}) {
    run.history.header->clients = clients;
    EXPECT_TRUE(data_of(run)["participation"].is_null());
  }
}

TEST(ReportData, OfNothingIsEmpty) {
  const Json data = report_data({}, {});
  for (const char* key : {"runs", "groups", "metrics", "tables", "notices"}) {
    EXPECT_TRUE(data[key].is_array() && data[key].empty()) << key;
  }
}

TEST(ReportData, SurvivesAHistoryOfWhichLittleIsKnown) {
  RunRecord run = test_run("a", 1, half);
  run.history.header.reset();
  run.history.rounds[0] = {.round = 0};
  const Json json = data_of(run);
  EXPECT_TRUE(json["curves"]["accuracy"][0].is_null());
  EXPECT_EQ(json["device"], "");
  EXPECT_EQ(json["counters"]["dropped"]["total"], 0);
}

}  // namespace
}  // namespace fedep
