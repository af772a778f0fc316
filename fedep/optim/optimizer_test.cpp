#include "fedep/optim/optimizer.h"

#include <cmath>

#include <gtest/gtest.h>

namespace fedep {
namespace {

using V = HostVector<float>;

// Two coordinates with their own precisions, or one precision for both.
Message message(Family family, float eta0, float eta1, float lambda) {
  if (family == Family::isotropic) return {V{eta0, eta1}, lambda};
  return {V{eta0, eta1}, V{lambda, 2 * lambda}};
}

// Every coordinate must have moved as one scalar sequence g_1, g_2, … moves a scalar x.
void expect_sequence(const OptimizerSettings& settings, const std::vector<float>& deltas,
                     const std::vector<double>& expected, double tolerance, double scale = 1) {
  for (const Family family : {Family::isotropic, Family::diagonal}) {
    Message x = flat_like(V(2), family);
    OptimizerState state = initial_state(settings, x);
    for (std::size_t t = 0; t < deltas.size(); ++t) {
      const float g = deltas[t];
      const Message delta =
          family == Family::isotropic ? Message(V{g, g}, g) : Message(V{g, g}, V{g, g});
      advance(settings, state, x, delta, scale);
      EXPECT_EQ(state.steps, std::int64_t(t + 1));
      for (const float value : x.eta()) EXPECT_NEAR(value, expected[t], tolerance) << "step " << t;
      for (const float value : x.lambda_span()) {
        EXPECT_NEAR(value, expected[t], tolerance) << "step " << t;
      }
    }
  }
}

TEST(Sgd, WithRateOneAddsTheDelta) {
  for (const Family family : {Family::isotropic, Family::diagonal}) {
    Message x = message(family, 1, 2, 3);
    const Message delta = message(family, 0.5f, -0.25f, 4);
    const Message expected = product(x, delta);
    OptimizerState state = initial_state({}, x);
    EXPECT_TRUE(state.slots.empty());
    advance({}, state, x, delta);
    EXPECT_EQ(x, expected);
  }
}

TEST(Sgd, StepsAreLinearInTheDeltaAndInScale) {
  const OptimizerSettings settings{.lr = 0.5, .momentum = 0.5};
  const Message delta = message(Family::diagonal, 2, -8, 4);
  Message whole = flat_like(V(2), Family::diagonal), half = whole;
  OptimizerState a = initial_state(settings, whole), b = a;
  for (int t = 0; t < 4; ++t) {
    advance(settings, a, whole, power(delta, 0.5f));
    advance(settings, b, half, delta, 0.5);  // damping outside: the same while the step is linear
  }
  EXPECT_EQ(whole, half);
  EXPECT_NE(a, b);  // but momentum has seen other deltas
}

// optax's trace: m ← g + 0.9 m, x ← x + lr·m. By hand for g = 1, 1, 0: m = 1, 1.9, 1.71.
TEST(Sgd, MomentumIsATraceWithoutDampening) {
  expect_sequence({.lr = 0.5, .momentum = 0.9}, {1, 1, 0}, {0.5, 1.45, 2.305}, 1e-6);
}

// a = 4, 13: inside 2/√(4+ε), 3/√(13+ε); ε = 1 makes the two placements differ.
TEST(Adagrad, HasEpsilonInsideOrOutsideTheRoot) {
  const double inside = 5 * 2 / std::sqrt(5.0), inside2 = inside + 5 * 3 / std::sqrt(14.0);
  const double outside = 5 * 2 / 3.0, outside2 = outside + 5 * 3 / (std::sqrt(13.0) + 1);
  OptimizerSettings settings{.name = "adagrad", .lr = 5, .epsilon = 1, .epsilon_inside_root = true};
  expect_sequence(settings, {2, 3}, {inside, inside2}, 1e-5);
  settings.epsilon_inside_root = false;
  expect_sequence(settings, {2, 3}, {outside, outside2}, 1e-5);
}

TEST(Adagrad, StaysWhereNothingWasEverSeenAndStartsFromItsAccumulator) {
  expect_sequence({.name = "adagrad", .epsilon = 0}, {0, 0}, {0, 0}, 0);
  // a = 12 + 4 = 16: 2/(4+0)
  expect_sequence({.name = "adagrad", .epsilon = 0, .initial_accumulator = 12}, {2}, {0.5}, 1e-7);
}

TEST(Adam, TakesAFirstStepOfTheRateWhateverTheDelta) {
  for (const float g : {1e-3f, -7.0f, 1e6f}) {
    const double sign = g > 0 ? 1 : -1;
    expect_sequence({.name = "adam", .lr = 0.25, .epsilon = 0}, {g}, {0.25 * sign}, 1e-6);
  }
}

// β1 = ½, β2 = ¾, g = 2 then 0. m = 1, ½; m̂ = 2, ⅔. v = 1, ¾; v̂ = 4, 12/7. Steps 1 and
// (2/3)/√(12/7).
TEST(Adam, CorrectsTheBiasOfItsMoments) {
  const double second = 2.0 / 3 / std::sqrt(12.0 / 7);
  expect_sequence({.name = "adam", .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0}, {2, 0},
                  {1, 1 + second}, 1e-6);
}

// β1 = ½, β2 = ¾, v_0 = 1. g = 2: v = 1 + ¼·4 = 2, m = 1, step 1/√2. g = 1: v = 2 - ¼ = 1¾, m = 1,
// step 1/√1.75. g = √1.75 would leave v where it is.
TEST(Yogi, FollowsTheSecondMomentBySteps) {
  const OptimizerSettings settings{
      .name = "yogi", .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0, .initial_accumulator = 1};
  const double first = 1 / std::sqrt(2.0);
  expect_sequence(settings, {2, 1}, {first, first + 1 / std::sqrt(1.75)}, 1e-6);
  Message x = flat_like(V(1), Family::isotropic);
  OptimizerState state = initial_state(settings, x);
  advance(settings, state, x, Message(V{1}, 1.0f));  // v = g²: sign 0
  EXPECT_EQ(state.slots[1], Message(V{1}, 1.0f));
}

TEST(Optimizers, TreatEveryCoordinateAlone) {
  for (const Optimizer& optimizer : optimizers()) {
    const OptimizerSettings settings{.name = std::string(optimizer.name), .momentum = 0.9};
    Message both(V{1, 2}, V{3, 4}), one(V{1}, V{3});
    OptimizerState a = initial_state(settings, both), b = initial_state(settings, one);
    for (int t = 1; t < 4; ++t) {
      advance(settings, a, both, Message(V{0.5f * float(t), -3}, V{2, 9}));
      advance(settings, b, one, Message(V{0.5f * float(t)}, V{2}));
    }
    EXPECT_EQ(both.eta()[0], one.eta()[0]) << optimizer.name;
    EXPECT_EQ(both.lambda_vector()[0], one.lambda_vector()[0]) << optimizer.name;
    EXPECT_EQ(a.slots.size(), optimizer.slots(settings).size());
  }
}

TEST(Optimizers, LeaveEverythingWhereADeltaIsZeroFromTheStart) {
  for (const Optimizer& optimizer : optimizers()) {
    const OptimizerSettings settings{.name = std::string(optimizer.name), .momentum = 0.9};
    Message x = message(Family::diagonal, 1, 2, 3);
    const Message before = x;
    OptimizerState state = initial_state(settings, x);
    advance(settings, state, x, flat_like(x.eta(), Family::diagonal));
    EXPECT_EQ(x, before) << optimizer.name;
  }
}

TEST(Optimizers, RefuseAnotherFamilyAnotherSizeAndAnotherOptimizersState) {
  Message x = message(Family::diagonal, 1, 2, 3);
  const Message before = x;
  OptimizerState state = initial_state({}, x);
  EXPECT_THROW(advance({}, state, x, message(Family::isotropic, 1, 2, 3)), InputError);
  EXPECT_THROW(advance({}, state, x, Message(V{1}, V{1})), InputError);
  EXPECT_THROW(advance({.name = "adam"}, state, x, before), InputError);
  EXPECT_EQ(x, before);
  EXPECT_EQ(state.steps, 0);
}

TEST(Optimizers, RefuseSettingsOutOfRange) {
  EXPECT_THROW(check_optimizer({.name = "adagard"}), InputError);
  EXPECT_THROW(check_optimizer({.lr = 0}), InputError);
  EXPECT_THROW(check_optimizer({.lr = NAN}), InputError);
  EXPECT_THROW(check_optimizer({.momentum = 1}), InputError);
  EXPECT_THROW(check_optimizer({.beta1 = -0.1}), InputError);
  EXPECT_THROW(check_optimizer({.beta2 = 1}), InputError);
  EXPECT_THROW(check_optimizer({.epsilon = -1}), InputError);
  EXPECT_THROW(check_optimizer({.initial_accumulator = -1}), InputError);
  EXPECT_NO_THROW(check_optimizer({.name = "yogi", .momentum = 0.99, .beta1 = 0, .epsilon = 0}));
}

}  // namespace
}  // namespace fedep
