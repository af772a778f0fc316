#include "app/run/run_warnings.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/test_run.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/test_files.h"

namespace fedep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> warnings_for(const Recipe& recipe, const std::string& table) {
  const TemporaryFolder folder;
  folder.write("wards.csv", table);
  const std::unique_ptr<Task> task = make_task(recipe, folder.path());
  const auto phases =
      plan_phases(recipe, [&](std::string_view name) { return task->family_of(name); });
  return warnings_of(recipe, phases, *task);
}

TEST(RunWarnings, NameColumnsThatDoNotVary) {
  const Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  EXPECT_THAT(warnings_for(recipe, ward_table()), IsEmpty());
  EXPECT_THAT(warnings_for(recipe, constant_table()),
              ElementsAre(HasSubstr("column \"weight, kg\" has no value in any of 300 rows"),
                          HasSubstr("are not read: year, \"weight, kg\"")));
}

TEST(RunWarnings, NameCooldownsThatNeverBeginOrStopThePhase) {
  const auto of = [](int after, int rounds, double to) {
    Recipe recipe = parse_recipe(ward_recipe(kFedEp));  // 6 rounds
    recipe.phases[0].cooldown = {.after = after, .rounds = rounds, .to = to};
    return warnings_for(recipe, ward_table());
  };
  EXPECT_THAT(of(4, 2, 0.01), IsEmpty());
  EXPECT_THAT(of(5, 10, 0.01), IsEmpty());  // one round of it
  EXPECT_THAT(
      of(6, 2, 0.01),
      ElementsAre("phase.0 (fed_ep): the cooldown begins after 6 rounds, and the phase has 6"));
  EXPECT_THAT(of(1, 2, 0.01), IsEmpty());  // stays at a hundredth
  EXPECT_THAT(of(4, 2, 0), IsEmpty());
  EXPECT_THAT(of(1, 2, 0),
              ElementsAre(HasSubstr("nothing changes in the last 4 of the phase's 6 rounds")));
}

TEST(RunWarnings, NameSchedulesThatNeverBegin) {
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));  // 6 rounds
  recipe.phases[0].schedule = ScheduleSettings{.server_rate = RoundSchedule{.after = 5}};
  EXPECT_THAT(warnings_for(recipe, ward_table()), IsEmpty());
  recipe.phases[0].schedule->server_rate->after = 6;
  EXPECT_THAT(warnings_for(recipe, ward_table()),
              ElementsAre("phase.0 (fed_ep): the schedule of server_rate begins after the phase's "
                          "end"));
}

TEST(RunWarnings, NameSchedulesThatStopTheServer) {
  const auto of = [](const RoundSchedule& rate) {
    Recipe recipe = parse_recipe(ward_recipe(kFedEp));  // 6 rounds
    recipe.phases[0].schedule = ScheduleSettings{.server_rate = rate};
    return warnings_for(recipe, ward_table());
  };
  EXPECT_THAT(
      of({.kind = ScheduleKind::constant, .from = 0}),
      ElementsAre("phase.0 (fed_ep): the schedule of server_rate is 0, and nothing changes, "
                  "in 6 of the phase's 6 rounds"));
  EXPECT_THAT(of({.after = 1, .rounds = 2, .to = 0}),
              ElementsAre(HasSubstr("in 4 of the phase's 6")));
  EXPECT_THAT(of({.to = 0}), IsEmpty());  // the last round alone
  EXPECT_THAT(of({.kind = ScheduleKind::constant, .from = 0.5}), IsEmpty());
}

TEST(RunWarnings, SayThatATailIsLongerThanItsPhase) {
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));  // 6 rounds
  recipe.phases[0].average = AverageSettings{.kind = AverageKind::tail, .rounds = 6};
  EXPECT_THAT(warnings_for(recipe, ward_table()), IsEmpty());
  recipe.phases[0].average->rounds = 7;
  EXPECT_THAT(warnings_for(recipe, ward_table()),
              ElementsAre("phase.0 (fed_ep): the average is of the phase's last 7 rounds, and the "
                          "phase has 6: it is of all of them"));
  recipe.phases[0].average->kind = AverageKind::exponential;
  EXPECT_THAT(warnings_for(recipe, ward_table()), IsEmpty());
}

// 80 training rows a ward are four batches of 20; a tenth less are three, or four with the rest.
TEST(RunWarnings, SayWhatCalibrationRowsCostInSteps) {
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  recipe.data.calibration_fraction = 0.24;
  EXPECT_THAT(warnings_for(recipe, ward_table()), IsEmpty());
  recipe.client.remainder = Remainder::drop;
  EXPECT_THAT(
      warnings_for(recipe, ward_table()),
      ElementsAre(AllOf(HasSubstr("clients make 15.0 steps a visit where they would make 20.0"),
                        HasSubstr("client.remainder = \"keep\" keeps"))));
  recipe.client.remainder = Remainder::keep;
  recipe.data.calibration_fraction = 0.3;
  EXPECT_THAT(warnings_for(recipe, ward_table()),
              ElementsAre(AllOf(HasSubstr("clients make 15.0 steps a visit"),
                                Not(HasSubstr("remainder")))));
}

TEST(RunWarnings, SayThatTooFewRowsTellNoTemperature) {
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  recipe.data.calibration_fraction = 0.1;
  EXPECT_THAT(warnings_for(recipe, ward_table()),
              ElementsAre(HasSubstr("leaves 24 calibration rows of all clients")));
  recipe.data.calibration_fraction = 0.001;
  EXPECT_THAT(warnings_for(recipe, ward_table()),
              ElementsAre(HasSubstr("leaves 0 calibration rows")));
}

TEST(RunWarnings, SayThatNotAllClientsOfATableAreAsked) {
  const std::string full =
      std::string(kFullFedEp) + "[phase.inference]\nname = \"quadrature\"\nfamily = \"full\"\n";
  const auto of = [](const std::string& phase, int asked) {
    Recipe recipe = parse_recipe(ward_recipe(phase));
    recipe.server.clients_per_round = asked;
    return warnings_for(recipe, ward_table());
  };
  EXPECT_THAT(of(full, 3), IsEmpty());
  EXPECT_THAT(of(full, 2), ElementsAre(AllOf(HasSubstr("phase.0 (fed_ep)"),
                                             HasSubstr("2 of 3 clients are asked"))));
  EXPECT_THAT(of(kFedEp, 2), IsEmpty());
}

TEST(MomentumRemarks, NameMomentumThatPartsQFromItsFactors) {
  Phase phase{.algorithm = &find_algorithm("fed_ep"), .cavity = CavityKind::own_factor};
  phase.server_optimizer = phase.factor_optimizer = {.momentum = 0.9};
  phase.clients_per_round = 3;
  EXPECT_THAT(momentum_remarks({phase}, 3), IsEmpty());  // all are asked
  EXPECT_THAT(momentum_remarks({phase}, 4),
              ElementsAre(AllOf(HasSubstr("phase.0 (fed_ep)"), HasSubstr("momentum of 0.9"),
                                HasSubstr("3 of 4 clients"), HasSubstr("factor_clock"))));
  phase.clock = FactorClock::round;
  EXPECT_THAT(momentum_remarks({phase}, 4), IsEmpty());
  phase.clock = FactorClock::visit;
  phase.server_optimizer.momentum = 0;
  EXPECT_THAT(momentum_remarks({phase}, 4), IsEmpty());
}

TEST(RunWarnings, NameNetworksThatBeginWithWeightsAllAlike) {
  const auto of = [](const std::vector<std::string>& changes) {
    const Recipe recipe = parse_recipe(
        "[data]\nname = \"random_images\"\nclients = 3\nexamples = 20\n[model]\nname = "
        "\"resnet_small\"\n[server]\nclients_per_round = 3\nprior = { precision = 1.0 }\n"
        "[[phase]]\nalgorithm = \"fed_ep\"\nrounds = 2\n[phase.inference]\nname = "
        "\"scaled_identity\"\nalpha = 0.01\n",
        "recipe", changes);
    return warnings_for(recipe, "");
  };
  EXPECT_THAT(of({}), ElementsAre(AllOf(HasSubstr("alike"), HasSubstr("carry_mean"))));
  EXPECT_THAT(of({"phase.0.factors=carry_mean"}), IsEmpty());
  EXPECT_THAT(of({"server.prior=flat"}), IsEmpty());
}

}  // namespace
}  // namespace fedep
