// Optimizers, guard and facts on the GPU against the host's, bit for bit.

#include "fedep/cuda/round/device_step.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kSize = 5003;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class DeviceStep : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  }

  Message normal(std::uint32_t step) const {
    V eta(kSize), lambda(kSize);
    fill_normal({.seed = 21, .step = step}, eta.span());
    fill_normal({.seed = 22, .step = step}, lambda.span());
    return GetParam() == Family::diagonal ? Message(eta, lambda) : Message(eta, lambda[0]);
  }
  Message proper(std::uint32_t step) const {
    Message q = normal(step);
    for (float& x : q.lambda_span()) x = 0.25f + std::fabs(x);
    return q;
  }
};

// The host's fourteen steps and the GPU's.
void expect_same_steps(const OptimizerSettings& settings, Message x,
                       const std::vector<Message>& deltas, double scale) {
  OptimizerState state = initial_state(settings, x);
  DeviceOptimizerState there = to_device(state);
  DeviceMessage y = to_device(x);
  for (const Message& delta : deltas) {
    advance(settings, state, x, delta, scale);
    advance(settings, there, y, to_device(delta), scale);
    ASSERT_EQ(to_host(y), x) << settings.name << " step " << state.steps;
    ASSERT_EQ(to_host(there), state) << settings.name << " step " << state.steps;
  }
}

TEST_P(DeviceStep, OptimizersHaveTheHostsBits) {
  std::vector<Message> deltas;
  for (std::uint32_t step = 0; step < 4; ++step) deltas.push_back(normal(10 + step));
  deltas.push_back(flat_like(deltas[0].eta(), GetParam()));
  for (const double scale : {1.0, 0.05}) {
    expect_same_steps({.name = "sgd", .lr = 0.3}, proper(1), deltas, scale);
    expect_same_steps({.name = "sgd", .lr = 0.3, .momentum = 0.9}, proper(1), deltas, scale);
    expect_same_steps({.name = "adagrad", .lr = 0.3, .epsilon = 1e-5}, proper(1), deltas, scale);
    expect_same_steps({.name = "adagrad", .lr = 0.3, .epsilon = 0, .epsilon_inside_root = true},
                      proper(1), deltas, scale);
    expect_same_steps({.name = "adagrad", .lr = 0.3, .initial_accumulator = 0.1}, proper(1), deltas,
                      scale);
    expect_same_steps({.name = "adam", .lr = 0.3}, proper(1), deltas, scale);
    expect_same_steps({.name = "yogi", .lr = 0.3, .initial_accumulator = 1e-3}, proper(1), deltas,
                      scale);
  }
}

TEST_P(DeviceStep, ImproperPrecisionsAreCountedAsTheHostCounts) {
  const Message before = proper(1);
  Message after = normal(2);
  EXPECT_EQ(count_improper(to_device(before), to_device(after)), count_improper(before, after));
  for (const float value : {0.0f, kNan, kInfinity, -1.0f}) {
    after.lambda_span()[0] = value;
    EXPECT_EQ(count_improper(to_device(before), to_device(after)), count_improper(before, after));
  }
  // Nobody has said anything about a coordinate yet.
  const Message flat = flat_like(before.eta(), GetParam());
  EXPECT_EQ(count_improper(to_device(flat), to_device(flat)), 0u);
  const DeviceMessage a = to_device(after), b = to_device(before);
  EXPECT_EQ(count_improper(to_device(before), {&a, &b}),
            (std::vector<std::size_t>{count_improper(before, after), 0}));
}

TEST_P(DeviceStep, TheGuardDoesWhatTheHostsDoes) {
  const Message before = proper(1);
  Message wrong = normal(2);  // about half of its precisions are negative
  wrong.lambda_span()[0] = -0.01f;
  const Message right = proper(3);
  for (const GuardMode mode :
       {GuardMode::count, GuardMode::back_off, GuardMode::floor, GuardMode::skip}) {
    for (const double floor : {1e-6, 0.5}) {
      for (const Message& wanted : {wrong, right}) {
        const GuardSettings settings{.mode = mode, .floor = floor};
        Message after = wanted;
        DeviceMessage there = to_device(wanted);
        const GuardOutcome expected = guard(settings, before, after);
        EXPECT_EQ(guard(settings, to_device(before), there), expected);
        EXPECT_EQ(to_host(there), after);
        EXPECT_EQ(same(there, to_device(wanted)), after == wanted);
      }
    }
  }
}

TEST_P(DeviceStep, FactsAreTheHosts) {
  Message q = proper(1);
  const auto facts = [](const Message& message) {
    const DeviceMessage there = to_device(message);
    return facts_of({&there, &there})[1];
  };
  EXPECT_TRUE(facts(q).proper);
  EXPECT_EQ(facts(q).largest.eta, magnitudes(q).eta);
  EXPECT_EQ(facts(q).largest.lambda, magnitudes(q).lambda);
  for (const float value : {0.0f, -3.0f, kNan, kInfinity}) {
    Message bad = q;
    bad.lambda_span()[bad.lambda_span().size() / 2] = value;
    EXPECT_EQ(facts(bad).proper, is_proper(bad)) << value;
    EXPECT_EQ(facts(bad).finite, is_finite(bad)) << value;
    EXPECT_EQ(facts(bad).largest.lambda, magnitudes(bad).lambda) << value;
    bad = q;
    bad.eta()[kSize - 1] = value;
    EXPECT_EQ(facts(bad).proper, is_proper(bad)) << value;
    EXPECT_EQ(facts(bad).largest.eta, magnitudes(bad).eta) << value;
  }
}

TEST_P(DeviceStep, AHashIsOfEveryBitAndItsPlace) {
  const Message a = normal(1), b = normal(2);
  const auto hash = [](const Message& first, const Message& second) {
    const DeviceMessage one = to_device(first), two = to_device(second);
    return hash_of({&one, &two});
  };
  const std::uint64_t expected = hash(a, b);
  EXPECT_EQ(hash(a, b), expected);
  EXPECT_NE(hash(b, a), expected);
  Message other = a;
  std::swap(other.eta()[7], other.eta()[kSize - 1]);
  EXPECT_NE(hash(other, b), expected);
  other = a;
  float& last = other.lambda_span().back();
  last = std::nextafter(last, 2 * last);
  EXPECT_NE(hash(other, b), expected);
  EXPECT_NE(hash(a, Message()), expected);
}

TEST_P(DeviceStep, PointsComeFromTheInitialWeightsWhereQSaysNothing) {
  const Message q = normal(1);
  Message holes = q;
  holes.lambda_span()[0] = 0;
  if (GetParam() == Family::diagonal) holes.lambda_span()[7] = kNan;
  const V initial = normal(2).eta();
  for (const Message& message : {q, holes}) {
    const V lambda = message.lambda_full();
    V expected = initial;
    for (std::size_t i = 0; i < kSize; ++i) {
      const float center = message.eta()[i] / lambda[i];
      if (lambda[i] != 0 && std::isfinite(center)) expected[i] = center;
    }
    EXPECT_EQ(to_host(estimate_points(to_device(message), to_device(initial))), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DeviceStep,
                         testing::Values(Family::isotropic, Family::diagonal));

}  // namespace
}  // namespace fedep
