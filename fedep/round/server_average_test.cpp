#include "fedep/round/server_average.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

Phase phase_of(const char* algorithm, AverageSettings average, std::int64_t rounds = 100) {
  Phase phase;
  phase.algorithm = &find_algorithm(algorithm);
  phase.rounds = rounds;
  phase.average = average;
  return phase;
}

HostVector<float> numbers(std::uint32_t which) {
  HostVector<float> values(50);
  fill_normal({.seed = 3, .step = which}, values.span());
  return values;
}

TEST(ServerAverage, OfAConstantIsTheConstant) {
  for (const AverageKind kind : {AverageKind::exponential, AverageKind::tail}) {
    const Phase phase = phase_of("fed_avg", {kind, 30});
    const HostVector<float> point = numbers(1);
    ServerAverage average;
    for (int round = 0; round < 100; ++round) {
      follow_average(average, phase, round, point, from_mean(point, 1.0f));
    }
    EXPECT_EQ(average.mean, point);
    EXPECT_EQ(average.variance, constant_like(point, 0.0f));
  }
}

// Weights proportional to β^(n - t), and moments with these weights.
TEST(ServerAverage, ExponentialHasItsClosedForm) {
  const int rounds = 80;
  const double beta = 1 - 1 / 30.0;
  const Phase phase = phase_of("fed_avg", {AverageKind::exponential, 30});
  ServerAverage average;
  for (int t = 0; t < rounds; ++t) {
    const HostVector<float> point = numbers(std::uint32_t(t));
    follow_average(average, phase, t, point, from_mean(point, 1.0f));
  }
  EXPECT_EQ(average.rounds, rounds);
  std::vector<double> weights;
  double all = 0;
  for (int t = 0; t < rounds; ++t) {
    weights.push_back(std::pow(beta, rounds - 1 - t));
    all += weights.back();
  }
  for (std::size_t i = 0; i < average.mean.size(); ++i) {
    double mean = 0, variance = 0;
    for (int t = 0; t < rounds; ++t) {
      mean += weights[std::size_t(t)] / all * double(numbers(std::uint32_t(t))[i]);
    }
    for (int t = 0; t < rounds; ++t) {
      const double gap = double(numbers(std::uint32_t(t))[i]) - mean;
      variance += weights[std::size_t(t)] / all * gap * gap;
    }
    EXPECT_NEAR(average.mean[i], mean, 1e-5);
    EXPECT_NEAR(average.variance[i], variance, 1e-5);
  }
}

TEST(ServerAverage, TailIsThePlainMeanOfThePhasesLastRounds) {
  Phase phase = phase_of("fed_avg", {AverageKind::tail, 10}, 25);
  phase.first_round = 100;
  ServerAverage average;
  HostVector<float> sum(50);
  for (std::int64_t round = 100; round < 125; ++round) {
    const HostVector<float> point = numbers(std::uint32_t(round));
    follow_average(average, phase, round, point, from_mean(point, 1.0f));
    if (round < 115) {
      EXPECT_EQ(average.rounds, 0);
    } else {
      sum = sum + point;
    }
  }
  EXPECT_EQ(average.rounds, 10);
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(average.mean[i], sum[i] / 10, 1e-5);
}

TEST(ServerAverage, PrecisionsAreAveragedWhereThereAreSome) {
  const Phase phase = phase_of("fed_sep", {AverageKind::tail, 100});
  ServerAverage one, each;
  const HostVector<float> point = numbers(1);
  for (int round = 0; round < 4; ++round) {
    const float lambda = float(1 + round);
    follow_average(one, phase, round, point, from_mean(point, lambda));
    follow_average(each, phase, round, point, to_diagonal(from_mean(point, lambda)));
  }
  EXPECT_FLOAT_EQ(one.lambda_number, 2.5f);
  EXPECT_EQ(one.lambda.size(), 0u);
  for (const float lambda : each.lambda) EXPECT_FLOAT_EQ(lambda, 2.5f);
}

// FedLap's q has the prior's precision, which no rounds inferred.
TEST(ServerAverage, PrecisionsThatNobodyInferredAreNotAveraged) {
  const HostVector<float> point = numbers(1);
  for (const char* algorithm : {"fed_lap", "fed_avg"}) {
    const Phase phase = phase_of(algorithm, {AverageKind::exponential, 10});
    ServerAverage average;
    for (int round = 0; round < 3; ++round) {
      follow_average(average, phase, round, point, from_mean(point, 2.0f));
    }
    EXPECT_EQ(average.lambda_number, 0);
    EXPECT_EQ(average.lambda.size(), 0u);
    EXPECT_FLOAT_EQ(variance(spread_around(average))[0], 1e-20f);
  }
}

TEST(ServerAverage, CountsTheRoundsThatAreInIt) {
  Phase phase = phase_of("fed_avg", {AverageKind::tail, 10}, 25);
  phase.first_round = 100;
  EXPECT_EQ(rounds_in_average(phase, 115), 0);
  EXPECT_EQ(rounds_in_average(phase, 118), 3);
  EXPECT_EQ(rounds_in_average(phase, 125), 10);
  phase.average->rounds = 40;  // longer than the phase
  EXPECT_EQ(rounds_in_average(phase, 118), 18);
  EXPECT_FALSE(counts_in_average(phase, 99));
  phase.average->kind = AverageKind::exponential;
  EXPECT_EQ(rounds_in_average(phase, 101), 1);
  phase.average.reset();
  EXPECT_EQ(rounds_in_average(phase, 125), 0);
}

TEST(ServerAverage, DrawsSpreadAsMeansDidAndAsPrecisionsLeaveOpen) {
  ServerAverage average{.rounds = 5,
                        .mean = {1.0f, -2.0f},
                        .variance = {0.25f, 0.0f},
                        .lambda = {},
                        .lambda_number = 0};
  const Message still = spread_around(average);
  EXPECT_FLOAT_EQ(variance(still)[0], 0.25f);
  EXPECT_FLOAT_EQ(variance(still)[1], 1e-20f);
  EXPECT_FLOAT_EQ(mean(still)[1], -2.0f);
  average.lambda_number = 4;
  EXPECT_FLOAT_EQ(variance(spread_around(average))[0], 0.5f);
  EXPECT_FLOAT_EQ(variance(spread_around(average))[1], 0.25f);
}

// A precision below 0 knows nothing; a spread of 1e-20 there would know everything.
TEST(ServerAverage, HasNoDrawsWhereAPrecisionIsNotPositive) {
  ServerAverage average{.rounds = 3,
                        .mean = {1.0f, -2.0f},
                        .variance = {0.25f, 0.5f},
                        .lambda = {4.0f, -0.5f},
                        .lambda_number = 0};
  EXPECT_FALSE(is_proper(spread_around(average)));
  average.lambda[1] = 2;
  EXPECT_TRUE(is_proper(spread_around(average)));
  average.lambda = {};
  average.lambda_number = -1;  // one for all
  EXPECT_FALSE(is_proper(spread_around(average)));
}

}  // namespace
}  // namespace fedep
