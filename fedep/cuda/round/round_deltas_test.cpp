// The clients' deltas on the GPU against round/grid, round/aggregate and optim/ on the host.

#include "fedep/cuda/round/round_deltas.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "fedep/algorithm/fed_avg.h"
#include "fedep/algorithm/fed_ep.h"
#include "fedep/message/error.h"
#include "fedep/optim/clip.h"
#include "fedep/optim/optimizer.h"
#include "fedep/random/stream.h"
#include "fedep/round/aggregate.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kSize = 4999;
constexpr std::size_t kClients = 7;

V normal(std::uint32_t step, float scale = 1) {
  V x(kSize);
  fill_normal({.seed = 31, .step = step}, x.span());
  return scale * x;
}

Message message(std::uint32_t step, Family family) {
  const V lambda = normal(step + 1000);
  return family == Family::diagonal ? Message(normal(step), lambda)
                                    : Message(normal(step), lambda[1]);
}

class Deltas : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
    for (std::uint32_t k = 0; k < kClients; ++k) {
      tilted.push_back(message(k, GetParam()));
      there.push_back(to_device(tilted.back()));
    }
  }

  Message global = message(99, GetParam());
  std::vector<Message> tilted;
  std::vector<DeviceMessage> there;
};

TEST_P(Deltas, SumToTheHostsBits) {
  for (const int bits : {64, 32}) {
    const Grid grid =
        choose_grid({}, {.clip = 0, .scale = 1, .asked = kClients, .bits = bits}, global);
    const DeviceMessage q = to_device(global);
    const DeviceVector no_mean;  // nothing moves from it
    RoundDeltas deltas(q, no_mean);
    for (const DeviceMessage& message : there) deltas.add_quotient(message, {});
    deltas.add_flat();
    const std::vector<double> norms = deltas.measure();
    ASSERT_EQ(norms.size(), kClients + 1);
    EXPECT_EQ(norms[kClients], 0);
    Aggregate sum(grid, kSize, GetParam());
    for (std::size_t k = 0; k < kClients; ++k) {
      const Message delta = fed_ep_delta(tilted[k], global);
      EXPECT_NEAR(norms[k], joint_norm(delta), 1e-13 * norms[k]);
      const double scale = 0.1 + 0.01 * double(k);
      const auto rounded = to_grid(grid, delta, scale);
      ASSERT_TRUE(rounded.has_value());
      EXPECT_TRUE(deltas.round_to(grid, k, scale));
      sum.add(*rounded);
    }
    EXPECT_EQ(to_host(deltas.total(grid)), sum.total()) << bits;
    // In units, where others add theirs before they are made numbers.
    const DeltaUnits units = deltas.units(grid);
    const GridDelta expected = std::move(sum).take_units();
    const auto here = [&](const UnitArray& array) {
      std::vector<std::int64_t> values = array.wide.download();
      for (const std::int32_t value : array.narrow.download()) values.push_back(value);
      return values;
    };
    EXPECT_EQ(here(units.eta), expected.eta);
    EXPECT_EQ(units.eta.narrow.size(), bits == 32 ? kSize : 0);
    if (GetParam() == Family::diagonal) {
      EXPECT_EQ(here(units.lambda), expected.lambda);
    } else {
      EXPECT_EQ(units.lambda_number, expected.lambda[0]);
    }
  }
}

TEST_P(Deltas, ThatDoNotFitAreLeftOut) {
  const Grid grid = choose_grid({}, {.clip = 0, .scale = 1, .asked = kClients, .bits = 32}, global);
  std::vector<Message> strange(4, tilted[0]);
  strange[0].eta()[3] = 1e30f;
  strange[1].eta()[kSize - 1] = std::numeric_limits<float>::quiet_NaN();
  strange[2].lambda_span()[0] = std::numeric_limits<float>::infinity();
  const DeviceMessage q = to_device(global);
  const DeviceVector no_mean;
  RoundDeltas deltas(q, no_mean);
  for (const Message& message : strange) deltas.add_quotient(to_device(message), {});
  const std::vector<double> norms = deltas.measure();
  EXPECT_TRUE(std::isfinite(norms[0]));
  EXPECT_TRUE(std::isnan(norms[1]));
  EXPECT_FALSE(std::isfinite(norms[2]));
  for (std::size_t k = 0; k < 4; ++k) {
    const auto rounded = to_grid(grid, fed_ep_delta(strange[k], global), 0.5);
    EXPECT_EQ(deltas.round_to(grid, k, 0.5), rounded.has_value()) << k;
    EXPECT_EQ(rounded.has_value(), k == 3) << k;
  }
  Aggregate sum(grid, kSize, GetParam());
  sum.add(to_grid(grid, fed_ep_delta(strange[3], global), 0.5).value());
  EXPECT_EQ(to_host(deltas.total(grid)), sum.total());
}

TEST_P(Deltas, OfPointsAreTheHosts) {
  const Message q = from_mean(normal(5), 1.0f);
  const Grid grid = choose_grid({}, {.clip = 0, .scale = 1, .asked = 2, .bits = 64}, q);
  const V last = normal(6);
  const DeviceMessage there_q = to_device(q);
  const DeviceVector mean_q = to_device(mean(q));
  RoundDeltas deltas(there_q, mean_q);
  deltas.add_move(to_device(last));
  deltas.add_points(to_device(last));
  deltas.measure();
  Aggregate sum(grid, kSize, Family::isotropic);
  sum.add(to_grid(grid, fed_avg_delta(last, mean(q)), 0.25).value());
  sum.add(to_grid(grid, Message(last, 0.0f), 0.5).value());
  EXPECT_TRUE(deltas.round_to(grid, 0, 0.25));
  EXPECT_TRUE(deltas.round_to(grid, 1, 0.5));
  EXPECT_EQ(to_host(deltas.total(grid)), sum.total());
}

TEST_P(Deltas, MoveOwnFactorsByWhatWasSent) {
  const Grid grid = choose_grid({}, {.clip = 0, .scale = 1, .asked = kClients, .bits = 64}, global);
  const auto home = make_memory_store();
  for (const OptimizerSettings& optimizer :
       {OptimizerSettings{.lr = 0.5}, OptimizerSettings{.lr = 0.5, .momentum = 0.9},
        OptimizerSettings{.name = "adam", .lr = 0.1}}) {
    for (const double settle : {1.0, 0.64}) {
      DeviceSites sites(*home);
      SiteState state{.factor = message(50, GetParam()), .optimizer = {}};
      state.optimizer = initial_state(optimizer, state.factor);
      const std::vector<std::uint64_t> client{17};
      sites.propose(17, 0, state);
      sites.settle(0, client);
      const SiteShape shape{
          .size = kSize, .family = GetParam(), .slots = state.optimizer.slots.size()};
      const DeviceMessage q = to_device(global);
      for (int round = 1; round < 3; ++round) {
        sites.begin(shape, round);
        const DeviceVector no_mean;
        RoundDeltas deltas(q, no_mean);
        deltas.add_quotient(there[std::size_t(round)], {});
        deltas.measure();
        ASSERT_TRUE(deltas.round_to(grid, 0, 0.3));
        deltas.move_factors(grid, shape, {{0, sites.find(17)}},
                            {.optimizer = optimizer, .scale = 0.7, .settle = settle});
        sites.end(client);
        const Message sent = from_grid(
            grid, to_grid(grid, fed_ep_delta(tilted[std::size_t(round)], global), 0.3).value());
        const Message before = state.factor;
        advance(optimizer, state.optimizer, state.factor, sent, 0.7);
        if (settle != 1) {
          state.factor = product(before, power(quotient(state.factor, before), float(settle)));
        }
        EXPECT_EQ(sites.get(17), state) << optimizer.name << " " << settle;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Deltas, testing::Values(Family::isotropic, Family::diagonal));

TEST(DeltasOfTwoFamilies, AreWrittenOutOrRefused) {
  if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  const Message narrow = message(1, Family::isotropic), wide = message(2, Family::diagonal);
  const DeviceMessage a = to_device(narrow), b = to_device(wide);
  const Grid grid = choose_grid({}, {.clip = 0, .scale = 1, .asked = 1, .bits = 64}, wide);
  const DeviceVector no_mean;
  RoundDeltas deltas(b, no_mean);
  deltas.add_quotient(a, {});
  deltas.add_quotient(a, a);
  const std::vector<double> norms = deltas.measure();
  const Message delta = fed_ep_delta(narrow, wide);
  EXPECT_NEAR(norms[0], joint_norm(delta), 1e-13 * norms[0]);
  ASSERT_TRUE(deltas.round_to(grid, 0, 1));
  EXPECT_EQ(to_host(deltas.total(grid)), from_grid(grid, to_grid(grid, delta, 1).value()));
  RoundDeltas isotropic(a, no_mean);
  EXPECT_THROW(isotropic.add_quotient(b, {}), InputError);
}

}  // namespace
}  // namespace fedep
