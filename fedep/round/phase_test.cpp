#include "fedep/round/phase.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "fedep/algorithm/damping.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

Family diagonal_if_exact(std::string_view name) {
  return name == "exact" ? Family::diagonal : Family::isotropic;
}

Recipe two_phases() {
  Recipe recipe;
  recipe.server.clients_per_round = 7;
  recipe.server.optimizer = {.lr = 0.5, .momentum = 0.9};
  recipe.server.grid_bits = 32;
  recipe.phases = {{.algorithm = "fed_avg", .rounds = 401},
                   {.algorithm = "fed_ep",
                    .rounds = 1099,
                    .clip = 100,
                    .optimizer_state = OptimizerHandover::carry,
                    .inference = InferenceSettings{.name = "exact", .alpha = 0.05, .rho = 0.3}}};
  return recipe;
}

TEST(PlanPhases, FollowEachOtherWithoutAGap) {
  const std::vector<Phase> phases = plan_phases(two_phases(), diagonal_if_exact);
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].first_round, 0);
  EXPECT_EQ(phases[0].end_round(), 401);
  EXPECT_EQ(phases[1].first_round, 401);
  EXPECT_EQ(phases[1].end_round(), 1500);
}

TEST(PlanPhases, MakeEveryChoiceOfTheRecipe) {
  const std::vector<Phase> phases = plan_phases(two_phases(), diagonal_if_exact);
  EXPECT_EQ(phases[0].family, Family::isotropic);
  EXPECT_FALSE(phases[0].stateful());
  EXPECT_EQ(phases[0].weight, WeightRule::examples);
  EXPECT_EQ(phases[0].damping.rule, DampingRule::none);  // an average by examples is one already
  const Phase& ep = phases[1];
  EXPECT_EQ(ep.algorithm, &find_algorithm("fed_ep"));
  EXPECT_EQ(ep.family, Family::diagonal);
  EXPECT_TRUE(ep.stateful());
  EXPECT_EQ(ep.weight, WeightRule::equal);
  EXPECT_EQ(ep.damping.rule, DampingRule::one_over_k);
  EXPECT_EQ(ep.clip, 100);
  EXPECT_EQ(ep.alpha, 0.05);
  EXPECT_EQ(ep.delta.rho, 0.3);
  EXPECT_TRUE(ep.carries_optimizer);
  EXPECT_EQ(ep.clients_per_round, 7u);
  EXPECT_EQ(ep.grid_bits, 32);
  EXPECT_EQ(ep.server_optimizer, ep.factor_optimizer);
  EXPECT_EQ(ep.server_optimizer.momentum, 0.9);
}

Recipe with_schedule(ScheduleSettings schedule) {
  Recipe recipe = two_phases();
  recipe.phases[1].schedule = std::move(schedule);
  return recipe;
}

TEST(PhaseInRound, IsTheSameWhereNothingIsScheduled) {
  for (const Phase& phase : plan_phases(two_phases(), diagonal_if_exact)) {
    EXPECT_FALSE(phase_in_round(phase, phase.first_round + 3));
  }
}

TEST(PhaseInRound, HasWhatItsSchedulesMakeOfClipAlphaAndRate) {
  const Phase phase = plan_phases(with_schedule({.client_rate = RoundSchedule{.to = 0.5},
                                                 .clip = RoundSchedule{.rounds = 10, .to = 3},
                                                 .alpha = RoundSchedule{.after = 99, .to = 2}}),
                                  diagonal_if_exact)[1];
  const Phase now = phase_in_round(phase, 401 + 99).value();
  EXPECT_DOUBLE_EQ(now.clip, 300);
  EXPECT_DOUBLE_EQ(now.client_rate, 1 - 0.5 * 100 / 1099);
  EXPECT_DOUBLE_EQ(now.inference.alpha, 0.05 * (1 + 1.0 / 1000));
  EXPECT_EQ(phase_in_round(phase, 401)->inference.alpha, 0.05);
}

TEST(OptimizerScale, OfALinearScheduleIsACooldowns) {
  Recipe cooled = two_phases();
  cooled.phases[1].cooldown = CooldownSettings{.after = 700, .rounds = 300, .to = 0.01};
  const Phase a = plan_phases(cooled, diagonal_if_exact)[1];
  const Phase b = plan_phases(
      with_schedule({.server_rate = RoundSchedule{.after = 700, .rounds = 300, .to = 0.01}}),
      diagonal_if_exact)[1];
  for (std::int64_t round = 401; round < 1500; ++round) {
    EXPECT_EQ(optimizer_scale(a, round, 0.1), optimizer_scale(b, round, 0.1));
  }
}

TEST(OptimizerScale, IsDampingTimesSchedule) {
  Recipe recipe = with_schedule({.server_rate = RoundSchedule{.to = 0.1}});
  const Phase inside = plan_phases(recipe, diagonal_if_exact)[1];
  recipe.server.damping = {.rule = DampingRule::decaying, .outside = true};
  const Phase outside = plan_phases(recipe, diagonal_if_exact)[1];
  for (std::int64_t round = 0; round < 1099; round += 50) {
    const double delta = damping(outside.damping, 7, std::size_t(round));
    EXPECT_DOUBLE_EQ(optimizer_scale(outside, 401 + round, delta),
                     delta * optimizer_scale(inside, 401 + round, delta));
  }
}

std::string refusal(const Recipe& recipe) {
  try {
    plan_phases(recipe, diagonal_if_exact);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(PlanPhases, RefuseTwoSchedulesOfOneThingAndThoseOfNothing) {
  Recipe twice = with_schedule({.server_rate = RoundSchedule{}});
  EXPECT_EQ(refusal(twice), "");
  twice.phases[1].cooldown = CooldownSettings{};
  EXPECT_NE(refusal(twice).find("phase.1.schedule.server_rate and cooldown"), std::string::npos);
  Recipe without_clip = with_schedule({.clip = RoundSchedule{}});
  without_clip.phases[1].clip = 0;
  EXPECT_NE(refusal(without_clip).find("phase.1.schedule.clip"), std::string::npos);
  Recipe without_alpha = two_phases();
  without_alpha.phases[0].schedule = ScheduleSettings{.alpha = RoundSchedule{}};
  EXPECT_NE(refusal(without_alpha).find("phase.0.schedule.alpha"), std::string::npos);
  EXPECT_NE(refusal(with_schedule({.client_rate = RoundSchedule{.to = 0}})), "");
  EXPECT_EQ(refusal(with_schedule({.server_rate = RoundSchedule{.to = 0}})), "");
}

TEST(PlanPhases, HaveATailOnlyWhereTheEndIsKnown) {
  Recipe recipe = two_phases();
  recipe.stop.converged = 0.01;
  recipe.phases[0].average = AverageSettings{.kind = AverageKind::tail, .rounds = 50};
  recipe.phases[1].average = AverageSettings{};
  EXPECT_EQ(refusal(recipe), "");  // the last phase alone may end early
  recipe.phases[1].average->kind = AverageKind::tail;
  EXPECT_NE(refusal(recipe).find("phase.1.average"), std::string::npos);
  recipe.stop.converged = 0;
  EXPECT_EQ(refusal(recipe), "");
  recipe.stop.converged = 0.01;
  recipe.phases.pop_back();  // FedAvg, which does not converge
  EXPECT_EQ(refusal(recipe), "");
}

TEST(PlanPhases, HandOverAnAverageOnlyWhereThereIsOne) {
  Recipe recipe = two_phases();
  recipe.phases[1].hand_over = HandOver::average;
  EXPECT_NE(refusal(recipe).find("phase.1.hand_over"), std::string::npos);
  recipe.phases[0].average = AverageSettings{};
  EXPECT_EQ(refusal(recipe), "");
  EXPECT_EQ(plan_phases(recipe, diagonal_if_exact)[1].hand_over, HandOver::average);
}

TEST(PlanPhases, LetARecipeOverruleTheAlgorithm) {
  Recipe recipe = two_phases();
  recipe.phases[1].cavity = CavityKind::flat;
  recipe.phases[1].weight = WeightRule::examples;
  recipe.server.factor_optimizer = OptimizerSettings{.lr = 0.25};
  const Phase phase = plan_phases(recipe, diagonal_if_exact)[1];
  EXPECT_FALSE(phase.stateful());
  EXPECT_EQ(phase.weight, WeightRule::examples);
  EXPECT_EQ(phase.factor_optimizer, (OptimizerSettings{.lr = 0.25}));
}

TEST(PlanPhases, MayHaveAnOptimizerOfTheirOwn) {
  Recipe recipe = two_phases();
  recipe.server.factor_optimizer = OptimizerSettings{.lr = 0.25};
  const OptimizerSettings own{.lr = 0.125, .momentum = 0.5};
  recipe.phases[1].optimizer = own;
  const std::vector<Phase> phases = plan_phases(recipe, diagonal_if_exact);
  EXPECT_EQ(phases[0].server_optimizer, recipe.server.optimizer);
  EXPECT_EQ(phases[0].factor_optimizer, *recipe.server.factor_optimizer);
  EXPECT_EQ(phases[1].server_optimizer, own);
  EXPECT_EQ(phases[1].factor_optimizer, own);  // q and the factors take the same steps
}

TEST(PlanPhases, CoolDownFromTheirOwnFirstRound) {
  Recipe recipe = two_phases();
  recipe.phases[1].cooldown = CooldownSettings{.after = 99, .rounds = 2, .to = 0.5};
  for (const bool outside : {false, true}) {
    recipe.server.damping.outside = outside;
    const std::vector<Phase> phases = plan_phases(recipe, diagonal_if_exact);
    const double damping = outside ? 0.25 : 1;
    EXPECT_EQ(optimizer_scale(phases[0], 400, 0.25), damping);
    EXPECT_EQ(optimizer_scale(phases[1], 401 + 98, 0.25), damping);
    EXPECT_EQ(optimizer_scale(phases[1], 401 + 99, 0.25), 0.75 * damping);
    EXPECT_EQ(optimizer_scale(phases[1], 1499, 0.25), 0.5 * damping);
  }
}

TEST(PlanPhases, BeginFactorsAtAProperPriorOnlyWhereTheFirstOfThemInfers) {
  Recipe recipe = two_phases();
  recipe.server.prior.emplace();
  EXPECT_EQ(plan_phases(recipe, diagonal_if_exact)[1].factors, FactorStart::carry_mean);
  recipe.phases.erase(recipe.phases.begin());
  EXPECT_EQ(plan_phases(recipe, diagonal_if_exact)[0].factors, FactorStart::flat);
  recipe.server.prior.reset();
  EXPECT_EQ(plan_phases(recipe, diagonal_if_exact)[0].factors, FactorStart::carry_mean);
}

TEST(PlanPhases, HaveTheServersDampingUnlessTheyHaveTheirOwn) {
  Recipe recipe = two_phases();
  recipe.server.damping = {.rule = DampingRule::constant, .constant = 0.5, .outside = true};
  std::vector<Phase> phases = plan_phases(recipe, diagonal_if_exact);
  EXPECT_EQ(phases[0].damping, recipe.server.damping);
  EXPECT_EQ(phases[1].damping, recipe.server.damping);
  recipe.phases[1].damping = DampingSettings{.rule = DampingRule::constant, .constant = 0.25};
  phases = plan_phases(recipe, diagonal_if_exact);
  EXPECT_EQ(phases[0].damping, recipe.server.damping);
  EXPECT_EQ(phases[1].damping.constant, 0.25);
  EXPECT_TRUE(phases[1].damping.outside);  // where the server has it
  recipe.phases[0].damping_outside = false;
  phases = plan_phases(recipe, diagonal_if_exact);
  EXPECT_EQ(phases[0].damping.constant, 0.5);
  EXPECT_FALSE(phases[0].damping.outside);
}

Recipe on_the_servers_clock() {
  Recipe recipe = two_phases();
  for (PhaseSettings& phase : recipe.phases) phase.factor_clock = FactorClock::round;
  recipe.phases[1].optimizer_state = OptimizerHandover::fresh;
  return recipe;
}

TEST(PlanPhases, FollowRoundsOnlyWhereFactorsHaveMomentum) {
  Recipe recipe = on_the_servers_clock();
  std::vector<Phase> phases = plan_phases(recipe, diagonal_if_exact);
  EXPECT_FALSE(phases[0].follows_rounds());  // no factors
  EXPECT_TRUE(phases[1].follows_rounds());
  recipe.server.optimizer.momentum = 0;
  EXPECT_FALSE(plan_phases(recipe, diagonal_if_exact)[1].follows_rounds());
  recipe = two_phases();
  EXPECT_FALSE(plan_phases(recipe, diagonal_if_exact)[1].follows_rounds());
}

TEST(PlanPhases, RefuseTheServersClockWhereFactorsCannotMakeItsSteps) {
  const auto refusal = [](const Recipe& recipe) {
    try {
      plan_phases(recipe, diagonal_if_exact);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string start = "phase.1.factor_clock can be round only ";
  Recipe recipe = on_the_servers_clock();
  recipe.server.optimizer = {.name = "adam"};
  EXPECT_EQ(refusal(recipe), start + "with sgd, whose steps add up, but server.optimizer is adam");
  recipe = on_the_servers_clock();
  recipe.server.factor_optimizer = OptimizerSettings{.lr = 0.5, .momentum = 0.5};
  EXPECT_EQ(refusal(recipe), start +
                                 "where factors make the server's steps, but "
                                 "server.factor_optimizer is not server.optimizer");
  recipe = on_the_servers_clock();
  recipe.phases[1].optimizer_state = OptimizerHandover::carry;
  EXPECT_NE(refusal(recipe).find("but phase.1.optimizer_state is carry"), std::string::npos);
  recipe = on_the_servers_clock();
  recipe.phases[1].guard.mode = GuardMode::floor;
  EXPECT_NE(refusal(recipe).find("but phase.1.guard is floor"), std::string::npos);
  recipe.phases[1].factor_clock = FactorClock::visit;
  EXPECT_EQ(refusal(recipe), "accepted");
}

TEST(PlanPhases, CarryOnlyWhatTheNextOptimizerKeeps) {
  Recipe recipe = two_phases();
  recipe.phases[1].optimizer = OptimizerSettings{.name = "adam"};
  try {
    plan_phases(recipe, diagonal_if_exact);
    FAIL() << "should be refused";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("phase.1.optimizer_state"), std::string::npos)
        << error.what();
  }
  recipe.phases[1].optimizer_state = OptimizerHandover::fresh;
  EXPECT_NO_THROW(plan_phases(recipe, diagonal_if_exact));
}

TEST(PlanPhases, NeedAnInferenceMethodOnlyWhereADistributionIsInferred) {
  Recipe recipe = two_phases();
  recipe.phases[0].inference = InferenceSettings{.rho = 0.25};
  EXPECT_EQ(plan_phases(recipe, diagonal_if_exact)[0].delta.rho, 0.25);
  for (const auto& nameless : {std::optional<InferenceSettings>(), {InferenceSettings{}}}) {
    recipe.phases[1].inference = nameless;
    try {
      plan_phases(recipe, diagonal_if_exact);
      FAIL();
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()), "phase.1.inference.name is missing: fed_ep needs one");
    }
  }
}

TEST(PlanPhases, SayWhatIsMissingOrWrong) {
  Recipe recipe = two_phases();
  recipe.phases[0].algorithm = "fed_agv";
  try {
    plan_phases(recipe, diagonal_if_exact);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("fed_avg"), std::string::npos) << error.what();
  }
  recipe = two_phases();
  recipe.server.optimizer.lr = -1;
  EXPECT_THROW(plan_phases(recipe, diagonal_if_exact), InputError);
}

Recipe full_phase() {
  Recipe recipe;
  recipe.server.prior = PriorSettings{};
  recipe.phases = {{.algorithm = "fed_ep", .rounds = 3}};
  recipe.phases[0].inference = InferenceSettings{.name = "exact", .family = FamilyChoice::full};
  return recipe;
}

TEST(PlanPhases, HaveTheFamilyThatIsAskedForOrTheMethods) {
  Recipe recipe = full_phase();
  EXPECT_EQ(plan_phases(recipe, diagonal_if_exact)[0].family, Family::full);
  for (const FamilyChoice choice : {FamilyChoice::automatic, FamilyChoice::diagonal}) {
    recipe.phases[0].inference->family = choice;
    EXPECT_EQ(plan_phases(recipe, diagonal_if_exact)[0].family, Family::diagonal);
  }
  recipe.phases[0].inference->family = FamilyChoice::isotropic;
  EXPECT_EQ(
      refusal(recipe),
      "phase.0.inference.family: exact does not have the family isotropic, which is asked for");
}

TEST(PlanPhases, RefuseAFullFamilyByTheNameOfWhatStandsInItsWay) {
  const std::string cannot = "phase.0.inference.family: full cannot be had, because ";
  Recipe recipe = full_phase();
  recipe.server.prior.reset();
  EXPECT_EQ(refusal(recipe), cannot + "server.prior is flat");
  recipe = full_phase();
  recipe.server.grid_bits = 32;
  EXPECT_EQ(refusal(recipe), cannot + "server.grid_bits is 32, not 64");
  recipe = full_phase();
  recipe.phases[0].cavity = CavityKind::flat;
  EXPECT_EQ(refusal(recipe), cannot + "phase.0.cavity is flat");
  recipe = full_phase();
  recipe.phases[0].average = AverageSettings{};
  EXPECT_EQ(refusal(recipe), cannot + "phase.0.average has precisions weight by weight");
  for (const char* name : {"adagrad", "adam", "yogi"}) {
    recipe = full_phase();
    recipe.server.optimizer.name = name;
    EXPECT_EQ(refusal(recipe), cannot + "server.optimizer is " + name + ", not sgd");
    recipe.phases[0].optimizer = OptimizerSettings{};
    EXPECT_EQ(refusal(recipe), "");
    recipe.phases[0].optimizer->name = name;
    EXPECT_EQ(refusal(recipe), cannot + "phase.0.optimizer is " + name + ", not sgd");
  }
  recipe = full_phase();
  recipe.server.optimizer.momentum = 0.5;
  EXPECT_EQ(refusal(recipe), cannot + "server.optimizer has momentum 0.5");
  recipe = full_phase();
  recipe.server.factor_optimizer = OptimizerSettings{.momentum = 0.5};
  EXPECT_EQ(refusal(recipe), cannot + "server.factor_optimizer has momentum 0.5");
  recipe.phases[0].algorithm = "fed_sep";  // without factors
  EXPECT_EQ(refusal(recipe), "");
}

}  // namespace
}  // namespace fedep
