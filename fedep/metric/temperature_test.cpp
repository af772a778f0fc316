#include "fedep/metric/temperature.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/metric/probability.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

constexpr std::size_t kRows = 20000, kClasses = 10;

std::vector<float> made_up_logits() {
  std::vector<float> logits(kRows * kClasses);
  fill_normal({.seed = 11}, logits);
  for (float& z : logits) z *= 2;
  return logits;
}

std::vector<float> times(std::vector<float> logits, float factor) {
  for (float& z : logits) z *= factor;
  return logits;
}

// Labels drawn from these probabilities.
std::vector<std::int32_t> drawn(const std::vector<double>& probabilities) {
  std::vector<float> uniform(kRows);
  fill_uniform({.seed = 12}, uniform);
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < kRows; ++i) {
    double left = double(uniform[i]);
    std::int32_t label = 0;
    while (label + 1 < std::int32_t(kClasses) &&
           (left -= probabilities[i * kClasses + std::size_t(label)]) > 0) {
      ++label;
    }
    labels.push_back(label);
  }
  return labels;
}

TEST(Temperature, TheGridGoesFromAnEighthToEightThroughOne) {
  const auto grid = temperature_grid();
  EXPECT_DOUBLE_EQ(grid.front(), 0.125);
  EXPECT_DOUBLE_EQ(grid[kTemperatures / 2], 1);
  EXPECT_DOUBLE_EQ(grid.back(), 8);
}

// Outcomes follow the softmax of logits / T; what is fitted to the softmax of the logits is T.
TEST(Temperature, APlantedOneIsFound) {
  const std::vector<float> logits = made_up_logits();
  for (const double planted : {0.4, 0.8, 1.0, 1.7, 3.1}) {
    const auto labels = drawn(softmax(times(logits, float(1 / planted)), kClasses));
    TemperatureLosses losses;
    losses.add_classes(softmax(logits, kClasses), kClasses, labels);
    EXPECT_NEAR(losses.best() / planted, 1, 0.03) << planted;
  }
}

TEST(Temperature, OfASoftmaxIsTheLogitsDivisor) {
  const std::vector<float> logits = made_up_logits();
  std::vector<double> probabilities = softmax(logits, kClasses);
  temper_classes(probabilities, kClasses, 2.5);
  const std::vector<double> expected = softmax(times(logits, 0.4f), kClasses);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(probabilities[i], expected[i], 1e-6);
  }
}

TEST(Temperature, TheSumIsTheLossOfTemperedProbabilities) {
  const std::vector<float> logits = made_up_logits();
  const std::vector<double> plain = softmax(logits, kClasses);
  const auto labels = drawn(plain);
  TemperatureLosses losses;
  losses.add_classes(plain, kClasses, labels);
  const auto grid = temperature_grid();
  const auto sums = losses.sums();
  for (const std::size_t i : {std::size_t(5), kTemperatures / 2, kTemperatures - 1}) {
    std::vector<double> tempered = plain;
    temper_classes(tempered, kClasses, grid[i]);
    double loss = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
      loss -= std::log(tempered[row * kClasses + std::size_t(labels[row])]);
    }
    EXPECT_NEAR(sums[i] / loss, 1, 1e-9);
  }
}

TEST(Temperature, SumsAreConvexInItsInverse) {
  const std::vector<double> plain = softmax(made_up_logits(), kClasses);
  TemperatureLosses losses;
  losses.add_classes(plain, kClasses, drawn(plain));
  const auto grid = temperature_grid();
  const auto sums = losses.sums();
  for (std::size_t i = 1; i + 1 < kTemperatures; ++i) {
    const double before = (sums[i] - sums[i - 1]) / (1 / grid[i] - 1 / grid[i - 1]);
    const double after = (sums[i + 1] - sums[i]) / (1 / grid[i + 1] - 1 / grid[i]);
    EXPECT_LE(after, before * (1 + 1e-9) + 1e-9);  // 1/T falls
  }
}

TEST(Temperature, ClientsAddUpToAll) {
  const std::vector<double> plain = softmax(made_up_logits(), kClasses);
  const auto labels = drawn(plain);
  TemperatureLosses all, first, second;
  all.add_classes(plain, kClasses, labels);
  const std::size_t cut = 777;
  first.add_classes(std::span(plain).first(cut * kClasses), kClasses, std::span(labels).first(cut));
  second.add_classes(std::span(plain).subspan(cut * kClasses), kClasses,
                     std::span(labels).subspan(cut));
  second.add(first);
  EXPECT_EQ(second.sums(), all.sums());
  EXPECT_EQ(second.examples(), kRows);
}

TEST(Temperature, OfEventsIsFoundToo) {
  std::vector<float> logits(kRows), uniform(kRows);
  fill_normal({.seed = 13}, logits);
  fill_uniform({.seed = 14}, uniform);
  const std::vector<double> stated = sigmoid(times(logits, 3.0f));
  const std::vector<double> truth = sigmoid(times(logits, 1.5f));
  std::vector<std::uint8_t> happened(kRows);
  for (std::size_t i = 0; i < kRows; ++i) happened[i] = double(uniform[i]) < truth[i];
  TemperatureLosses losses;
  losses.add_events(stated, 1, happened);
  EXPECT_NEAR(losses.best(), 2, 0.1);
  std::vector<double> tempered = stated;
  temper_events(tempered, 2);
  for (std::size_t i = 0; i < kRows; ++i) EXPECT_NEAR(tempered[i], truth[i], 1e-6);
}

TEST(Temperature, WithoutExamplesItIsOne) { EXPECT_EQ(TemperatureLosses().best(), 1); }

// Outcomes follow what is stated times 1/T: by how much do fitted temperatures miss?
std::vector<double> fitted_to(std::size_t rows, float planted, std::uint32_t simulations) {
  std::vector<double> found;
  for (std::uint32_t i = 0; i < simulations; ++i) {
    std::vector<float> logits(rows), uniform(rows);
    fill_normal({.seed = 21, .step = i}, logits);
    fill_uniform({.seed = 22, .step = i}, uniform);
    const std::vector<double> stated = sigmoid(times(logits, 2 * planted));
    const std::vector<double> truth = sigmoid(times(logits, 2));
    std::vector<std::uint8_t> happened(rows);
    for (std::size_t row = 0; row < rows; ++row) happened[row] = double(uniform[row]) < truth[row];
    TemperatureLosses losses;
    losses.add_events(stated, 1, happened);
    found.push_back(losses.best());
  }
  return found;
}

TEST(Temperature, OfHonestProbabilitiesIsOneButForOneInTwenty) {
  for (const std::size_t rows : {std::size_t(60), std::size_t(400)}) {
    const auto found = fitted_to(rows, 1, 1000);
    const auto told = std::count_if(found.begin(), found.end(), [](double t) { return t != 1; });
    EXPECT_NEAR(double(told) / 1000, 0.05, 0.025) << rows;
  }
}

// Tags of one row are one example: forty of them tell no more than their row does.
TEST(Temperature, EventsOfARowAreOneExample) {
  constexpr std::size_t kTags = 40;
  const auto best = [&](std::size_t rows) {
    TemperatureLosses losses;
    const std::vector<double> stated(rows * kTags, 0.01);
    std::vector<std::uint8_t> happened(rows * kTags, 0);
    for (std::size_t i = 0; i < happened.size(); i += 4) happened[i] = 1;
    losses.add_events(stated, kTags, happened);
    EXPECT_EQ(losses.examples(), rows);
    return losses.best();
  };
  EXPECT_EQ(best(kFewestForTemperature - 1), 1);
  EXPECT_GT(best(kFewestForTemperature), 2);
}

TEST(Temperature, OfFewExamplesIsOne) {
  for (const double t : fitted_to(kFewestForTemperature - 1, 4, 50)) EXPECT_EQ(t, 1);
}

TEST(Temperature, OfOverconfidentOnesIsFoundAllTheSame) {
  for (const double t : fitted_to(400, 2, 200)) EXPECT_GT(t, 1.2);
}

// A parabola in log T: its least value lies below those on the grid.
TEST(Temperature, TheLeastLossIsThatOfTheParabola) {
  std::array<double, kTemperatures> losses;
  for (std::size_t i = 0; i < kTemperatures; ++i) {
    losses[i] = 7 + 0.5 * std::pow(double(i) - 18.3, 2);
  }
  const BestTemperature best = best_temperature(losses);
  EXPECT_NEAR(best.loss, 7, 1e-12);
  EXPECT_NEAR(std::log2(best.temperature), 3 * (18.3 - 16) / 16, 1e-12);
}

TEST(Temperature, NaNIsLeftOut) {
  TemperatureLosses losses;
  losses.add_classes(std::vector<double>{NAN, 0.5}, 2, std::vector<std::int32_t>{0});
  EXPECT_EQ(losses.examples(), 0u);
  std::vector<double> row{NAN, 0.5};
  temper_classes(row, 2, 2);
  EXPECT_TRUE(std::isnan(row[0]));
}

}  // namespace
}  // namespace fedep
