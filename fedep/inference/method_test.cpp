// What each method makes of a chain's samples and squared gradients, against algebra done by hand:
// the cohort here is a script, all in double.

#include <cmath>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/inference/infer_cohort.h"

namespace fedep {
namespace {

using V = HostVector<double>;
using Q = Gaussian<V>;

// Epoch e ends at iterate e+1 in every coordinate, its average is (e+1)/2. Two coordinates, one
// client.
class Script final : public Cohort<V> {
 public:
  std::size_t clients() const override { return 1; }
  double examples(std::size_t) const override { return n; }
  const Q& cavity(std::size_t) const override { return the_cavity; }
  double weight_decay() const override { return wd; }
  int epochs() const override { return 4; }
  void sgd_epoch(int epoch) override { EXPECT_EQ(epoch, epochs_played++); }
  V iterate(std::size_t) const override { return V(2, double(epochs_played)); }
  V epoch_average(std::size_t) const override { return V(2, 0.5 * epochs_played); }
  void accumulate_moments() override { ++samples; }
  V mean(std::size_t) const override { return {2, -1}; }
  V variance(std::size_t) const override { return var; }
  std::size_t steps(std::size_t) const override { return 0; }
  double loss_sum(std::size_t) const override { return 0; }
  int fisher_batches(std::size_t, int) const override { return int(squares.size()); }
  std::vector<V> squared_gradients(const std::vector<V>& theta, int t, int, int draw) override {
    asked.push_back(theta[0]);
    draws.insert({t, draw});
    return {squares[std::size_t(t)]};
  }
  std::vector<V> gradients(const std::vector<V>&, int, int, int) override { return {V{1, -1}}; }
  V noise(std::size_t, int, int) const override { return {1, -3}; }

  double n = 10, wd = 0.5;
  Q the_cavity{V{1, 1}, V{4, 16}};
  V var{0.1, 0.4};
  std::vector<V> squares{{1, 2}, {3, 6}};
  int epochs_played = 0, samples = 0;
  std::vector<V> asked;                 // where squared gradients were asked for
  std::set<std::pair<int, int>> draws;  // step and draw
};

InferenceSettings named(const char* name) { return {.name = name}; }

Q tilted_of(Script& script, const InferenceSettings& settings) {
  return infer_cohort(script, find_algorithm("fed_sep"), settings)[0].tilted;
}

void expect_lambda(const Q& tilted, double first, double second) {
  EXPECT_NEAR(tilted.lambda_full()[0], first, 1e-12 * std::fabs(first));
  EXPECT_NEAR(tilted.lambda_full()[1], second, 1e-12 * std::fabs(second));
  // Whatever the precision, the mean is that of the chain's samples.
  EXPECT_NEAR(tilted.eta()[0], 2 * first, 1e-11 * std::fabs(first));
  EXPECT_NEAR(tilted.eta()[1], -second, 1e-11 * std::fabs(second));
}

TEST(ScaledIdentity, AddsAlphaPerExampleToTheCavity) {
  Script script;
  InferenceSettings settings = named("scaled_identity");
  settings.alpha = 0.3;
  expect_lambda(tilted_of(script, settings), 4 + 3, 16 + 3);
  EXPECT_EQ(script.samples, 4);  // every epoch's end counts
  EXPECT_TRUE(script.asked.empty());
}

TEST(ScaledIdentity, OfAnIsotropicCavityIsIsotropic) {
  Script script;
  script.the_cavity = Q(V{1, 1}, 4.0);
  const Q tilted = tilted_of(script, named("scaled_identity"));
  EXPECT_TRUE(tilted.isotropic());
  expect_lambda(tilted, 14, 14);
}

TEST(SampleMoments, AreOneOverTheVariance) {
  Script script;
  expect_lambda(tilted_of(script, named("sample_moments")), 10, 2.5);
}

TEST(SampleMoments, ShrinkVariancesTowardsOne) {
  Script script;
  InferenceSettings settings = named("sample_moments");
  settings.shrinkage = 0.25;
  expect_lambda(tilted_of(script, settings), 1 / (0.25 + 0.075), 1 / (0.25 + 0.3));
}

// 1 / variance of n normal samples is on average (n - 1)/(n - 3) too large.
TEST(SampleMoments, UnbiasedAreCorrectedForTheirNumber) {
  Script script;
  InferenceSettings settings = named("sample_moments");
  settings.unbiased = true;
  expect_lambda(tilted_of(script, settings), 10 * 1.0 / 3, 2.5 * 1.0 / 3);  // of 4 samples
  EXPECT_THROW(check_sample_moments(settings, 3), InputError);
  settings.langevin = true;
  EXPECT_NO_THROW(check_sample_moments(settings, 4));
}

TEST(SampleMoments, ClipTheirPrecision) {
  Script script;
  InferenceSettings settings = named("sample_moments");
  settings.clip_std = 0.5;  // mean 6.25, deviation 3.75
  expect_lambda(tilted_of(script, settings), 6.25 + 1.875, 6.25 - 1.875);
}

TEST(SampleMoments, RescaledHaveTheNormOfScaledIdentity) {
  Script script;
  InferenceSettings settings = named("sample_moments");
  settings.rescale = true;
  settings.alpha = 0.3;
  const double ratio = std::hypot(7.0, 19.0) / std::hypot(10.0, 2.5);
  expect_lambda(tilted_of(script, settings), 10 * ratio, 2.5 * ratio);
}

TEST(SampleMoments, ShrinkThenClipThenRescale) {
  Script script;
  InferenceSettings settings = named("sample_moments");
  settings.shrinkage = 0.25;
  settings.clip_std = 0.5;
  settings.rescale = true;
  settings.alpha = 0.3;
  const double a = 1 / 0.325, b = 1 / 0.55;
  const double mean = (a + b) / 2, spread = (a - b) / 2;
  const double high = mean + 0.5 * spread, low = mean - 0.5 * spread;
  const double ratio = std::hypot(7.0, 19.0) / std::hypot(high, low);
  expect_lambda(tilted_of(script, settings), high * ratio, low * ratio);
}

TEST(Laplace, AddsTheDataSetsFisherInformationAndWeightDecay) {
  Script script;  // batches average to {2, 4}; times N_k = 10
  expect_lambda(tilted_of(script, named("laplace")), 4 + 20 + 5, 16 + 40 + 5);
  EXPECT_EQ(script.asked, (std::vector<V>(2, V{2, -1})));  // at the mean
}

TEST(Laplace, ScalesWhatTheClientAddsAndClipsOnlyTheFisher) {
  Script script;
  InferenceSettings settings = named("laplace");
  settings.scale = 500;
  expect_lambda(tilted_of(script, settings), 4 + 500 * 25.0, 16 + 500 * 45.0);
  settings.clip_std = 0.5;  // of 20 and 40: mean 30, deviation 10
  Script again;
  expect_lambda(tilted_of(again, settings), 4 + 500 * 30.0, 16 + 500 * 40.0);
}

TEST(Laplace, WithoutABatchHasOnlyWeightDecay) {
  Script script;
  script.squares.clear();
  expect_lambda(tilted_of(script, named("laplace")), 4 + 5, 16 + 5);
}

TEST(Ngvi, FollowsItsRecursionWithoutCorrectionForTheStart) {
  Script script;
  InferenceSettings settings = named("ngvi");
  settings.decay = 0.9;
  settings.samples = 3;
  settings.scale = 2;
  // ν: 0 → 0.1·{1, 2} → 0.9·0.1·{1, 2} + 0.1·{3, 6} = {0.39, 0.78}
  expect_lambda(tilted_of(script, settings), 4 + 2 * (3.9 + 5), 16 + 2 * (7.8 + 5));
  ASSERT_EQ(script.asked.size(), 6u);  // three draws in each of two steps
  EXPECT_EQ(script.draws.size(), 6u);  // all told apart
  // Drawn with the precision of the step: Λ_p = Λ_c + wd N_k, then N_k ν more; never scaled by s.
  EXPECT_NEAR(script.asked[0][0], 2 + 1 / std::sqrt(9.0), 1e-12);
  EXPECT_NEAR(script.asked[0][1], -1 - 3 / std::sqrt(21.0), 1e-12);
  EXPECT_NEAR(script.asked[3][0], 2 + 1 / std::sqrt(9.0 + 1), 1e-12);
  EXPECT_NEAR(script.asked[3][1], -1 - 3 / std::sqrt(21.0 + 2), 1e-12);
}

TEST(Ngvi, StartsFromItsInitialScaleAndClipsEachStep) {
  Script script;
  InferenceSettings settings = named("ngvi");
  settings.decay = 0.5;
  settings.initial_scale = 0.8;
  settings.clip_std = 0.5;
  // F: {1, 2} to 1.5 ± 0.25, {3, 6} to 4.5 ± 0.75. ν: {.8, .8} → {1.025, 1.275} → {2.3875, 3.2625}
  expect_lambda(tilted_of(script, settings), 4 + 23.875 + 5, 16 + 32.625 + 5);
  EXPECT_NEAR(script.asked[0][0], 2 + 1 / std::sqrt(9.0 + 8), 1e-12);
}

TEST(Ngvi, AfterManyStepsIsLaplace) {
  Script script;
  script.squares.assign(2000, V{2, 4});
  expect_lambda(tilted_of(script, named("ngvi")), 4 + 20 * (1 - std::pow(0.99, 2000)) + 5,
                16 + 40 * (1 - std::pow(0.99, 2000)) + 5);
}

// Several clients, each with its own script; who has no batch t left answers with zeros.
class Together final : public Cohort<V> {
 public:
  explicit Together(std::vector<Script> scripts) : scripts_(std::move(scripts)) {}
  std::size_t clients() const override { return scripts_.size(); }
  double examples(std::size_t row) const override { return scripts_[row].n; }
  const Q& cavity(std::size_t row) const override { return scripts_[row].the_cavity; }
  double weight_decay() const override { return scripts_[0].wd; }
  int epochs() const override { return scripts_[0].epochs(); }
  void sgd_epoch(int) override {}
  V iterate(std::size_t row) const override { return scripts_[row].iterate(0); }
  V epoch_average(std::size_t row) const override { return scripts_[row].epoch_average(0); }
  void accumulate_moments() override {}
  V mean(std::size_t row) const override { return scripts_[row].mean(0); }
  V variance(std::size_t row) const override { return scripts_[row].var; }
  std::size_t steps(std::size_t) const override { return 0; }
  double loss_sum(std::size_t) const override { return 0; }
  int fisher_batches(std::size_t row, int) const override {
    return int(scripts_[row].squares.size());
  }
  std::vector<V> squared_gradients(const std::vector<V>&, int t, int, int) override {
    std::vector<V> out;
    for (const Script& script : scripts_) {
      const bool has = std::size_t(t) < script.squares.size();
      out.push_back(has ? script.squares[std::size_t(t)] : V(2, 0.0));
    }
    return out;
  }
  V noise(std::size_t row, int t, int draw) const override {
    return scripts_[row].noise(0, t, draw);
  }

 private:
  std::vector<Script> scripts_;
};

TEST(InferCohort, GivesAClientWhatItHasAloneWhoeverIsBesideIt) {
  std::vector<Script> scripts(3);
  scripts[1].n = 4;
  scripts[1].squares = {{5, 1}};  // ends first
  scripts[2].n = 30;
  scripts[2].squares = {{1, 1}, {2, 2}, {0.5, 9}, {7, 3}};
  scripts[2].the_cavity = Q(V{1, 1}, V{2, 3});
  for (const char* name : {"scaled_identity", "sample_moments", "laplace", "ngvi"}) {
    InferenceSettings settings = named(name);
    settings.decay = 0.75;
    settings.samples = 2;
    Together together(scripts);
    const auto runs = infer_cohort(together, find_algorithm("fed_sep"), settings);
    for (std::size_t row = 0; row < scripts.size(); ++row) {
      Script alone = scripts[row];
      EXPECT_EQ(runs[row].tilted, tilted_of(alone, settings)) << name << " " << row;
    }
  }
}

TEST(InferCohort, GivesAClientWithoutExamplesItsCavity) {
  for (const Method& method : methods()) {
    Script script;
    script.n = 0;
    InferenceSettings settings{.name = std::string(method.name)};
    EXPECT_EQ(tilted_of(script, settings), script.the_cavity) << method.name;
  }
}

TEST(InferCohort, ReturnsTheLastIterateForFedAvgAndEpochsAveragesForFedPa) {
  Script script;
  const auto avg = infer_cohort(script, find_algorithm("fed_avg"), {});
  EXPECT_EQ(avg[0].last, V(2, 4.0));
  EXPECT_TRUE(avg[0].samples.empty());
  EXPECT_EQ(script.samples, 0);
  for (const int mixin : {0, 1, 3, 4}) {
    Script fresh;
    InferenceSettings settings;
    settings.mixin_epochs = mixin;
    const auto run = infer_cohort(fresh, find_algorithm("fed_pa"), settings)[0];
    ASSERT_EQ(run.samples.size(), std::size_t(4 - mixin));
    for (std::size_t i = 0; i < run.samples.size(); ++i) {
      EXPECT_EQ(run.samples[i], V(2, 0.5 * double(mixin + int(i) + 1)));
    }
    EXPECT_EQ(run.last, V(2, 4.0));
  }
}

TEST(Methods, AreFoundByNameAndAnUnknownOneGetsASuggestion) {
  std::set<std::string_view> names;
  for (const Method& method : methods()) {
    EXPECT_EQ(&find_method(method.name), &method);
    EXPECT_FALSE(method.summary.empty()) << method.name;
    EXPECT_FALSE(method.title.empty()) << method.name;
    EXPECT_TRUE(names.insert(method.name).second) << method.name;
  }
  try {
    find_method("laplas");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean laplace?"));
  }
}

TEST(Methods, AnswerOtherwiseWithAnotherAlphaWhereTheySayThatTheyReadIt) {
  for (const Method& method : methods()) {
    for (const bool rescale : {false, true}) {
      InferenceSettings settings{.name = std::string(method.name), .alpha = 0.5};
      settings.rescale = rescale;
      settings.initial_scale = 1;
      Script script, other;
      const Q before = tilted_of(script, settings);
      const bool reads = reads_alpha(settings);
      settings.alpha = 0.7;
      EXPECT_EQ(tilted_of(other, settings) != before, reads) << method.name << " " << rescale;
      settings.family = FamilyChoice::full;
      EXPECT_FALSE(reads_alpha(settings));
    }
  }
  EXPECT_FALSE(reads_alpha(named("quadrature")));
}

// A core's storage and a GPU's have a table each, made from the same rows.
TEST(Methods, AreTheSameForEveryStorage) {
  for (const Method& method : methods()) {
    EXPECT_EQ(method_row<HostVector<float>>(method.name).method.name, method.name);
    EXPECT_EQ(method_row<HostVector<double>>(method.name).method.name, method.name);
  }
}

// Settings of a recipe that nobody can mean, whatever the method.
TEST(Methods, RefuseWhatTheyCannotUseNamingThePhase) {
  for (const Method& method : methods()) {
    if (method.check == nullptr) continue;
    InferenceSettings settings{.name = std::string(method.name), .samples = 1 << 20};
    try {
      check_inference(settings, 1);
      ADD_FAILURE() << method.name << " has a check that refuses nothing";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("phase.inference")) << method.name;
    }
  }
}

TEST(CheckInference, RefusesMomentsThatDoNotExist) {
  InferenceSettings settings = named("sample_moments");
  EXPECT_THROW(check_inference(settings, 10), InputError);  // neither shrinkage nor noise
  settings.shrinkage = 1e-4;
  EXPECT_NO_THROW(check_inference(settings, 10));
  EXPECT_THROW(check_inference(settings, 1), InputError);
  EXPECT_NO_THROW(check_inference(named("laplace"), 1));
  EXPECT_THROW(check_inference(named("laplas"), 1), InputError);
}

TEST(CheckSamples, RefusesAChainThatEndsBeforeItsFirstSample) {
  EXPECT_NO_THROW(check_samples({}, 2));
  EXPECT_THROW(check_samples({}, 1), InputError);
  InferenceSettings settings;
  settings.mixin_epochs = 0;
  EXPECT_NO_THROW(check_samples(settings, 1));
}

TEST(CheckInference, RefusesMoreDrawsThanAddressesTellApart) {
  InferenceSettings settings = named("ngvi");
  settings.samples = 127;
  EXPECT_NO_THROW(check_inference(settings, 1));
  settings.samples = 128;
  EXPECT_THROW(check_inference(settings, 1), InputError);
}

}  // namespace
}  // namespace fedep
