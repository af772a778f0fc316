// The measure of convergence on a federation whose clients are exact: there EP has a closed form. With all
// clients in a round and damping δ, what is missing from q shrinks by 1 - δ a round.
#include "fedep/round/diagnosis/convergence.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/round/executor_place.h"
#include "fedep/round/run.h"
#include "fedep/round/test_federation.h"

namespace fedep {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kRecipe = R"(
[data]
name = "toy"
[server]
clients_per_round = 4
prior = { mean = 0, precision = 1 }
damping = 0.25
[[phase]]
algorithm = "fed_ep"
rounds = 80
factors = "flat"
[phase.inference]
name = "exact"
)";

GaussianClients four_clients(Family family) {
  if (family != Family::full) return random_clients(4, family);
  GaussianClients clients;
  for (int k = 0; k < 4; ++k) {
    clients.add("client-" + std::to_string(k), 10,
                in_family(Message(V{1, float(k), -2}, V{4, 2, 1}), Family::full));
  }
  return clients;
}

// A run of four exact clients that remembers what each window said.
struct ExactRun {
  explicit ExactRun(const std::vector<std::string>& overrides = {},
                    Family family = Family::diagonal)
      : recipe(parse_recipe(kRecipe, "recipe", overrides)),
        clients(four_clients(family)),
        phases(plan_phases(recipe, [family](std::string_view) { return family; })) {}

  RunResult play(const RunHooks& given = {}, RunKeeper* keeper = nullptr) {
    ExecutorPlace place(recipe.seed, population, executor, *sites);
    RunHooks hooks = given;
    hooks.watch = [&](const RoundReport& report) {
      const WindowNumbers& window = report.numbers.window;
      if (window.begins > 0) begun.push_back(report.round);
      if (!window.ends) return;
      ended.push_back(report.round);
      moved.push_back(std::max(window.mean_moved, window.log_sd_moved));
      judged.push_back(window.judged);
    };
    return play_run({recipe, phases, population, layout, place}, V(3), hooks, keeper);
  }

  const Recipe recipe;
  GaussianClients clients;
  const std::vector<Phase> phases;
  const Layout layout{{"weight", {3}}};
  std::vector<std::int64_t> begun, ended;
  std::vector<double> moved;
  std::vector<bool> judged;

  Population population = clients.population();
  std::unique_ptr<SiteStore> sites = make_memory_store();
  InPlace executor{population, clients, *sites};
};

std::int64_t window(const std::vector<std::string>& overrides, std::size_t clients = 4) {
  const Recipe recipe = parse_recipe(kRecipe, "recipe", overrides);
  return window_length(plan_phases(recipe, [](auto) { return Family::diagonal; })[0], clients, 0);
}

TEST(AWindow, IsAsLongAsTheServerTakesToHearEverybodyOnce) {
  EXPECT_EQ(window({}), 4);                              // 1 / 0.25
  EXPECT_EQ(window({"server.clients_per_round=2"}), 8);  // half of them a round
  EXPECT_EQ(window({"server.optimizer.lr=0.5"}), 8);
  EXPECT_EQ(window({"server.optimizer.momentum=0.5"}), 2);
  EXPECT_EQ(window({"server.clients_per_round=1", "server.optimizer.momentum=0.9"}), 2);
  EXPECT_EQ(window({"server.clients_per_round=1", "server.damping=0.05",
                    "server.optimizer.momentum=0.9"}),
            8);
  EXPECT_EQ(window({"server.damping='1/K'"}, 10), 10);  // 10/4 · 4
  EXPECT_EQ(window({"server.damping_outside=true"}), 4);
  EXPECT_EQ(window({"server.damping=0.3"}), 4);  // 3.3
}

TEST(AWindow, HasAtLeastTwoRounds) { EXPECT_EQ(window({"server.damping='none'"}), 2); }

TEST(AWindow, IsTenVisitsOfAClientWithOtherOptimizers) {
  EXPECT_EQ(window({"server.optimizer.name='adam'"}), 10);
  EXPECT_EQ(window({"server.optimizer.name='adam'", "server.clients_per_round=3"}, 10), 34);
}

TEST(AWindow, FollowsTheRateThatAScheduleHasLeft) {
  const Recipe recipe =
      parse_recipe(kRecipe, "recipe", {"phase.0.cooldown={after=10,rounds=5,to=0.5}"});
  const Phase phase = plan_phases(recipe, [](auto) { return Family::diagonal; })[0];
  EXPECT_EQ(window_length(phase, 4, 9), 4);
  EXPECT_EQ(window_length(phase, 4, 20), 8);
}

TEST(Movement, IsThatOfTheCoordinateThatMovedFurthest) {
  const Moved by = moved({0, 10, 5}, {1, 2, 4}, {0.5, 10, 5.5}, {1, 2, 2});
  EXPECT_DOUBLE_EQ(by.mean, 0.5);
  EXPECT_DOUBLE_EQ(by.log_sd, std::log(2));
  EXPECT_DOUBLE_EQ(moved({0}, {2}, {1}, {4}).mean, 0.25);  // of the deviation after the move
  EXPECT_DOUBLE_EQ(moved({0}, {2}, {0}, {4}).log_sd, std::log(2));
}

TEST(Movement, IsInfiniteFromAndToAnImproperQ) {
  EXPECT_TRUE(std::isinf(moved({}, {}, {0}, {1}).mean));
  EXPECT_TRUE(std::isinf(moved({0}, {1}, {}, {}).log_sd));
}

TEST(Windows, FollowEachOtherWithoutAGap) {
  ExactRun run({"phase.0.rounds=18"});
  run.play();
  EXPECT_THAT(run.begun, ElementsAre(0, 4, 8, 12, 16));
  EXPECT_THAT(run.ended, ElementsAre(3, 7, 11, 15));
}

TEST(ExactClients, ConvergeGeometricallyAtTheRateOfTheDamping) {
  for (const Family family : {Family::isotropic, Family::diagonal, Family::full}) {
    ExactRun run({}, family);
    const RunResult result = run.play();
    const double expected = std::pow(1 - 0.25, 4);
    ASSERT_EQ(run.moved.size(), 20u);
    for (std::size_t i = 4; i < 8; ++i) {  // once the first steps are behind, before float's end
      EXPECT_NEAR(run.moved[i] / run.moved[i - 1], expected, 0.05 * expected) << i;
    }
    EXPECT_LT(run.moved.back(), 1e-5);
    EXPECT_TRUE(has_converged(result.state, kConverged));
  }
}

TEST(AServerWithTooLargeARate, MovesFurtherAndFurther) {
  ExactRun run({"server.optimizer.lr=9"});  // every error becomes -1.25 times itself
  run.play();
  EXPECT_GT(run.moved[2], 1);
  EXPECT_TRUE(std::isinf(run.moved.back()));  // negative precisions are no posterior
}

TEST(PointEstimates, AreNotMeasured) {
  ExactRun run({"phase.0.algorithm='fed_avg'"});
  const RunResult result = run.play();
  EXPECT_THAT(run.begun, IsEmpty());
  EXPECT_EQ(result.state.convergence, ConvergenceState{});
}

TEST(StopConverged, EndsARunAfterTwoWindowsBelowIt) {
  ExactRun whole, run({"stop.converged=0.01"});
  whole.play();
  std::size_t second = 1;
  while (!(whole.moved[second] < 0.01 && whole.moved[second - 1] < 0.01)) ++second;
  const RunResult result = run.play();
  EXPECT_EQ(result.end, RunEnd::done);
  EXPECT_EQ(result.state.round, whole.ended[second] + 1);
  EXPECT_LT(result.state.round, 80);
  EXPECT_EQ(run.moved.size(), second + 1);
}

TEST(StopConverged, IsNotForAPhaseThatAnotherFollows) {
  Recipe recipe = parse_recipe(kRecipe, "recipe", {"stop.converged=0.05"});
  recipe.phases.push_back(recipe.phases[0]);
  const auto phases = plan_phases(recipe, [](auto) { return Family::diagonal; });
  ServerState state;
  state.round = 40;
  state.convergence.begun = 40;
  state.convergence.before = state.convergence.latest = 0;
  state.phase = 0;
  EXPECT_FALSE(is_over(recipe, phases, state));
  state.phase = 1;
  EXPECT_TRUE(is_over(recipe, phases, state));
  state.convergence.begun = 39;  // no window has just ended
  EXPECT_FALSE(is_over(recipe, phases, state));
}

class LastState final : public RunKeeper {
 public:
  std::optional<ServerState> begin() override { return kept; }
  void write(const RoundReport&) override {}
  bool wants(std::int64_t, const Phase&, bool stop) const override { return stop; }
  void keep(const ServerState& state, const Phase&, bool) override { kept = state; }
  void end(const ServerState&, double) override {}
  std::int64_t goes_on_from() const override { return kept->round; }

  std::optional<ServerState> kept;
};

TEST(StopConverged, EndsAnInterruptedRunInTheSameRoundAndState) {
  for (const char* asked : {"server.clients_per_round=4", "server.clients_per_round=2"}) {
    ExactRun whole({"stop.converged=0.02", asked});
    const RunResult expected = whole.play();
    ASSERT_LT(expected.state.round, 80);
    for (int stop = 1; stop < int(expected.state.round); stop += 5) {
      ExactRun run({"stop.converged=0.02", asked});
      LastState keeper;
      int left = stop;
      run.play({.stop_requested = [&] { return --left == 0; }}, &keeper);
      ASSERT_EQ(keeper.kept->round, stop);
      EXPECT_EQ(run.play({}, &keeper).state, expected.state);
      EXPECT_EQ(run.moved, whole.moved);
      EXPECT_EQ(run.play({}, &keeper).played, 0) << "it is over";
    }
  }
}

// Windows of four rounds, after each of which q's only mean is the next of these, its deviation 1.
ServerState after_windows(const std::vector<double>& means,
                          const std::vector<double>& deviations = {},
                          std::vector<WindowNumbers>* said = nullptr) {
  Phase phase = ep_phase(4);
  phase.damping = {.rule = DampingRule::constant, .constant = 0.25};
  ServerState state;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const double deviation = i < deviations.size() ? deviations[i] : 1;
    const double precision = 1 / (deviation * deviation);
    state.global = Message(V{float(means[i] * precision)}, V{float(precision)});
    if (i == 0) {
      begin_window(state);
      continue;
    }
    for (int round = 0; round < 4; ++round, ++state.round) count_round(state, {.answered = 4});
    const WindowNumbers window = end_window(state, phase);
    if (said != nullptr) said->push_back(window);
  }
  return state;
}

TEST(LeftToGo, IsTheSumOfTheMovesThatWouldFollow) {
  EXPECT_DOUBLE_EQ(left_to_go(0.2, 0.1), 0.1);  // 0.05 + 0.025 + …
  EXPECT_DOUBLE_EQ(left_to_go(-0.04, -0.03), 0.09);
  EXPECT_EQ(left_to_go(0.2, -0.1), 0);  // turned round
  EXPECT_NEAR(left_to_go(0.04, 0.04), 99 * 0.04, 1e-12);
  EXPECT_NEAR(left_to_go(0.04, 0.05), 99 * 0.05, 1e-12);  // faster and faster
  EXPECT_EQ(left_to_go(0, 0), 0);
}

TEST(ACreep, IsNotTakenForConvergence) {
  std::vector<double> creep{0}, ep{0};  // both arrive at 2
  for (int i = 1; i < 120; ++i) {
    creep.push_back(2 - 2 * std::pow(0.97, i));
    ep.push_back(2 - 2 * std::exp(-i));
  }
  for (std::size_t i = 3; i < creep.size(); ++i) {
    const std::vector<double> so_far(creep.begin(), creep.begin() + long(i) + 1);
    const double left = 2 - creep[i];
    if (std::fabs(left - 0.25) < 0.01) continue;
    EXPECT_EQ(has_converged(after_windows(so_far), kConverged), left < 0.25) << i;
  }
  for (std::size_t i = 3; i < 20; ++i) {
    const std::vector<double> so_far(ep.begin(), ep.begin() + long(i) + 1);
    const bool still = ep[i - 1] - ep[i - 2] < kConverged;
    EXPECT_EQ(has_converged(after_windows(so_far), kConverged), still) << i;
  }
}

TEST(ACreep, OfDeviationsIsSeenToo) {
  std::vector<WindowNumbers> said;
  const ServerState state =
      after_windows({0, 0, 0, 0}, {1, std::exp(0.04), std::exp(0.079), std::exp(0.117)}, &said);
  EXPECT_FALSE(said[0].left);  // one window alone tells nothing
  EXPECT_EQ(said[2].left->mean, 0);
  EXPECT_NEAR(said[2].left->log_sd, left_to_go(0.039, 0.038), 0.01);
  EXPECT_FALSE(has_converged(state, kConverged));
}

TEST(Noise, ThatTurnsRoundIsNoCreep) {
  EXPECT_TRUE(has_converged(after_windows({0, 0.04, 0, 0.04, 0}), kConverged));
  // Nor is it one that goes on by chance once.
  EXPECT_TRUE(has_converged(after_windows({0, 0.04, 0, 0.04, 0.08}), kConverged));
  EXPECT_FALSE(has_converged(after_windows({0, 0.04, 0.08, 0.12, 0.16}), kConverged));
}

TEST(ACreep, OfAStateThatForgotItIsMeasuredAnew) {  // as checkpoints of earlier versions do
  ServerState state = after_windows({0, 0.04, 0.08, 0.12});
  state.convergence.mean_at = {};
  Phase phase = ep_phase(4);
  phase.damping = {.rule = DampingRule::constant, .constant = 0.25};
  state.round += 4;
  EXPECT_FALSE(end_window(state, phase).left);
  EXPECT_TRUE(has_converged(state, kConverged));
  state.convergence.mean_at = {.coordinate = 7, .by = 1};  // of another model
  state.round += 4;
  EXPECT_FALSE(end_window(state, phase).left);
}

// Steps that become shorter move q less, whether it has arrived or not.
TEST(StopConverged, DoesNotJudgeWhileSomethingFallsThatMovesQ) {
  for (const char* falls : {
           "phase.0.cooldown={after=8,rounds=72,to=0}",
           "phase.0.schedule={server_rate={after=8,rounds=72,to=0}}",
           "phase.0.schedule={server_rate={kind='cosine',after=8,rounds=72,to=0.1}}",
           "phase.0.schedule={client_rate={kind='cosine',after=8,rounds=72,to=1e-9}}",
           "phase.0.schedule={clip={after=8,rounds=72,to=0.01}}",
           "phase.0.schedule={alpha={after=8,rounds=72,to=0.01}}",
       }) {
    ExactRun run({"stop.converged=0.05", "phase.0.clip=1e6", "phase.0.inference.alpha=1", falls});
    const RunResult result = run.play();
    EXPECT_EQ(result.state.round, 80) << falls;
    ASSERT_GT(run.judged.size(), 3u) << falls;
    EXPECT_TRUE(run.judged[0] && run.judged[1]) << falls;
    EXPECT_THAT(std::vector<bool>(run.judged.begin() + 2, run.judged.end()), Each(false)) << falls;
  }
}

TEST(StopConverged, DoesNotTakeLostStepsForArrival) {
  ServerState state;
  state.global = Message(V{1, 2, 3}, V{1, 1, 1});
  Phase phase = ep_phase(4);
  phase.damping = {.rule = DampingRule::constant, .constant = 0.25};
  for (int window = 0; window < 3; ++window) {
    begin_window(state);
    for (int round = 0; round < 4; ++round) {
      ++state.round;
      count_round(state, {.asked = 4, .answered = 3, .outside_grid = 1});
    }
    ASSERT_TRUE(window_is_over(state, phase, 4));
    EXPECT_FALSE(end_window(state, phase).judged);
    EXPECT_FALSE(has_converged(state, kConverged));
  }
}

}  // namespace
}  // namespace fedep
