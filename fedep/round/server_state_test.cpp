#include "fedep/round/server_state.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;

const V kMean{0.5f, -2, 0.3f};

Population three_clients() { return make_population({{"a", 10}, {"b", 70}, {"c", 20}}); }

Phase ep_phase(Family family, double alpha) {
  return {.algorithm = &find_algorithm("fed_ep"),
          .rounds = 5,
          .family = family,
          .cavity = CavityKind::own_factor,
          .alpha = alpha};
}

Phase average_phase() { return {.algorithm = &find_algorithm("fed_avg"), .rounds = 5}; }

// The state in the midst of a FedAvg phase that has reached kMean.
ServerState after_averaging(const ServerSettings& settings) {
  ServerState state =
      begin_phase(initial_server_state(settings, V{1, 1, 1}), average_phase(), 0, three_clients());
  state.global = from_mean(kMean, 1.0f);
  state.round = 5;
  return state;
}

void expect_near(std::span<const float> a, std::span<const float> b, double relative) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], relative * (std::fabs(double(b[i])) + 1e-30)) << i;
  }
}

class HandOver : public testing::TestWithParam<std::tuple<Family, double>> {
 protected:
  // To a phase of expectation propagation; a prior of precision 0 is a flat one.
  ServerState handed_over() const {
    const auto [family, prior_precision] = GetParam();
    ServerSettings settings;
    if (prior_precision > 0)
      settings.prior = PriorSettings{.mean = 0.25, .precision = prior_precision};
    return begin_phase(after_averaging(settings), ep_phase(family, 0.05), 1, three_clients());
  }
};

TEST_P(HandOver, CarriesTheMeanAndMakesThePrecisionAlphaPerExample) {
  const auto [family, prior_precision] = GetParam();
  const ServerState state = handed_over();
  EXPECT_EQ(state.global.family(), family);
  expect_near(mean(state.global).span(), kMean.span(), 1e-6);
  for (const float lambda : state.global.lambda_span())
    EXPECT_FLOAT_EQ(lambda, float(0.05 * 100 + prior_precision));
  EXPECT_EQ(point_estimate(state), mean(state.global));
  EXPECT_EQ(state.phase, 1);
  EXPECT_EQ(state.round, 5);
}

TEST_P(HandOver, ThePriorTimesTheUnvisitedFactorsIsTheGlobal) {
  const ServerState state = handed_over();
  Message whole = state.prior;
  for (const float examples : {10.0f, 70.0f, 20.0f}) {
    whole = product(whole, power(state.unvisited.per_example, examples));
  }
  EXPECT_EQ(whole.family(), std::get<Family>(GetParam()));
  expect_near(whole.eta().span(), state.global.eta().span(), 1e-6);
  expect_near(whole.lambda_span(), state.global.lambda_span(), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Families, HandOver,
                         testing::Combine(testing::Values(Family::isotropic, Family::diagonal),
                                          testing::Values(0.0, 3.0)));

TEST(HandOver, ReturnsToPointEstimatesWithTheMean) {
  ServerState state =
      begin_phase(after_averaging({}), ep_phase(Family::diagonal, 1), 1, three_clients());
  state = begin_phase(std::move(state), average_phase(), 2, three_clients());
  expect_near(state.global.eta().span(), kMean.span(), 1e-6);
  EXPECT_EQ(state.global.lambda_scalar(), 1);
  EXPECT_EQ(state.unvisited, UnvisitedFactor{});
}

TEST(HandOver, AFlatStartHasThePriorAloneAndChainsStartAtTheWeights) {
  Phase phase = ep_phase(Family::diagonal, 0.05);
  phase.factors = FactorStart::flat;
  const ServerState flat = begin_phase(after_averaging({}), phase, 1, three_clients());
  EXPECT_EQ(flat.global, flat_like(V(3), Family::diagonal));
  EXPECT_EQ(flat.unvisited, UnvisitedFactor{});
  EXPECT_EQ(point_estimate(flat), kMean);

  ServerSettings settings;
  settings.prior = PriorSettings{.mean = 0.5, .precision = 4};
  const ServerState proper = begin_phase(after_averaging(settings), phase, 1, three_clients());
  EXPECT_EQ(proper.global, Message(V(3, 2), V(3, 4)));  // proper before anyone has reported
  EXPECT_TRUE(is_proper(proper.global));
  EXPECT_EQ(point_estimate(proper), V(3, 0.5f));
}

TEST(HandOver, PriorsOfSingleCoordinatesStayWhatTheyAreInEveryFamily) {
  ServerSettings settings;
  settings.prior = PriorSettings{.mean = 0.5, .precision = 4};
  const std::vector<CoordinatePrior> priors{{.coordinate = 2, .mean = -1, .precision = 3}};
  const ServerState begun = initial_server_state(settings, kMean, priors);
  const Message expected(V{2, 2, -3}, V{4, 4, 3});
  EXPECT_EQ(begun.prior, expected);
  EXPECT_EQ(initial_server_state(settings, kMean, {}).prior, Message(V(3, 2), 4.0f));
  for (const FactorStart factors : {FactorStart::flat, FactorStart::carry_mean}) {
    Phase full = ep_phase(Family::full, 0.05), diagonal = ep_phase(Family::diagonal, 0.05);
    full.factors = diagonal.factors = factors;
    const ServerState first = begin_phase(begun, full, 0, three_clients());
    EXPECT_EQ(first.prior, in_family(expected, Family::full));
    const ServerState second = begin_phase(first, diagonal, 1, three_clients());
    EXPECT_EQ(second.prior, expected);
    const V more(3, factors == FactorStart::flat ? 0.0f : 5.0f);
    EXPECT_EQ(second.global.lambda_vector(), expected.lambda_vector() + more);
  }
  EXPECT_THROW(begin_phase(begun, ep_phase(Family::isotropic, 1), 0, three_clients()), InputError);
  EXPECT_EQ(begin_phase(begun, average_phase(), 0, three_clients()).prior, expected);
  const std::vector<CoordinatePrior> outside{{.coordinate = 3}};
  EXPECT_THROW(initial_server_state(settings, kMean, outside), InputError);
}

TEST(HandOver, MayCarryTheAverageInPlaceOfTheMean) {
  const V average{1, 2, 3};
  ServerState before = after_averaging({});
  before.average = {.rounds = 4, .mean = average, .variance = V(3), .lambda = {}};
  before.temperatures = {.round = 5, .point = 2};
  Phase phase = average_phase();
  EXPECT_EQ(mean(begin_phase(before, phase, 1, three_clients()).global), kMean);
  phase.hand_over = fedep::HandOver::average;
  const ServerState after = begin_phase(before, phase, 1, three_clients());
  EXPECT_EQ(mean(after.global), average);
  EXPECT_EQ(after.average, ServerAverage{});  // the next phase's own
  EXPECT_EQ(after.temperatures, Temperatures{});
}

TEST(HandOver, TheFirstPhaseStartsFromTheInitialWeights) {
  for (const Phase& phase : {average_phase(), ep_phase(Family::isotropic, 0.5)}) {
    const ServerState state =
        begin_phase(initial_server_state({}, kMean), phase, 0, three_clients());
    expect_near(point_estimate(state).span(), kMean.span(), 1e-6);
  }
}

TEST(HandOver, MakesTheOptimizersStateFreshUnlessItIsCarried) {
  for (const Family family : {Family::isotropic, Family::diagonal}) {
    Phase phase = ep_phase(family, 0.05);
    phase.server_optimizer = {.name = "adagrad", .initial_accumulator = 0.5};
    ServerState before = after_averaging({});
    before.optimizer = {.steps = 5, .slots = {Message(V{1, 2, 6}, 0.0f)}};
    const ServerState fresh = begin_phase(before, phase, 1, three_clients());
    EXPECT_EQ(fresh.optimizer, initial_state(phase.server_optimizer, fresh.global));
    phase.carries_optimizer = true;
    const ServerState carried = begin_phase(before, phase, 1, three_clients());
    EXPECT_EQ(carried.optimizer.steps, 5);
    const Message slot =
        family == Family::isotropic ? Message(V{1, 2, 6}, 3.0f) : Message(V{1, 2, 6}, V{1, 2, 6});
    EXPECT_EQ(carried.optimizer.slots, std::vector{slot});
    // Slots that lambda has used stay lambda's own.
    ServerState used = before;
    used.optimizer.slots[0].lambda_scalar() = 9.0f;
    if (family == Family::isotropic) {
      EXPECT_EQ(begin_phase(used, phase, 1, three_clients()).optimizer.slots, used.optimizer.slots);
    }
    // And it can be used.
    ServerState moved = carried;
    EXPECT_NO_THROW(advance(phase.server_optimizer, moved.optimizer, moved.global, moved.global));
  }
}

TEST(HandOver, RefusesNoExamplesAndNoAlpha) {
  const ServerState state = after_averaging({});
  EXPECT_THROW(begin_phase(state, ep_phase(Family::diagonal, 0), 1, three_clients()), InputError);
  EXPECT_THROW(begin_phase(state, ep_phase(Family::diagonal, 1), 1, make_population({{"a", 0}})),
               InputError);
}

TEST(PointEstimate, OneImproperCoordinateDoesNotDisturbTheOthers) {
  ServerState state = begin_phase(initial_server_state({}, V{7, 7, 7}),
                                  ep_phase(Family::diagonal, 1), 0, three_clients());
  state.global = Message(V{1, 2, 3}, V{2, 0, 4});
  EXPECT_EQ(point_estimate(state), (V{0.5f, 7, 0.75f}));
  // The reference divides by a negative precision like any other.
  state.global = Message(V{1, 2, 3}, V{2, -1, 4});
  EXPECT_EQ(point_estimate(state), (V{0.5f, -2, 0.75f}));
}

TEST(PointEstimate, OfWeightsThatAreNotFiniteIsAnError) {
  ServerState state =
      begin_phase(initial_server_state({}, V{7, 7, 7}), average_phase(), 0, three_clients());
  state.global.eta()[1] = INFINITY;
  EXPECT_THROW(point_estimate(state), RunError);
}

TEST(InitialServerState, HasThePriorOfTheSettings) {
  EXPECT_EQ(initial_server_state({}, kMean).prior, flat_like(kMean, Family::isotropic));
  ServerSettings settings;
  settings.prior = PriorSettings{.mean = 0.5, .precision = 4};
  EXPECT_EQ(initial_server_state(settings, kMean).prior, Message(V(3, 2), 4.0f));
  settings.prior->precision = -1;
  EXPECT_THROW(initial_server_state(settings, kMean), InputError);
}

}  // namespace
}  // namespace fedep
