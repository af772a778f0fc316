#include "fedep/metric/parts.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/metric/calibration.h"
#include "fedep/metric/classification.h"
#include "fedep/metric/counts.h"
#include "fedep/metric/ranking.h"
#include "fedep/metric/regression.h"
#include "fedep/metric/tags.h"
#include "fedep/metric/temperature.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

constexpr std::size_t kExamples = 60;

std::vector<double> some_probabilities(std::size_t size, std::uint32_t step) {
  std::vector<float> drawn(size);
  fill_uniform({.seed = 8, .step = step}, drawn);
  return {drawn.begin(), drawn.end()};
}

// What one accumulator is told by two others, which saw the examples before and after a cut, against
// one that saw all of them. `add(sums, begin, end)` shows examples, `values(sums)` are all results.
template <class Sums, class Add, class Values>
void expect_adds_up(const Sums& empty, const Add& add, const Values& values) {
  Sums whole = empty;
  add(whole, std::size_t(0), kExamples);
  const std::vector<double> expected = values(whole);
  for (const std::size_t cut : {std::size_t(0), std::size_t(1), std::size_t(23), kExamples}) {
    Sums first = empty, second = empty;
    add(first, std::size_t(0), cut);
    add(second, cut, kExamples);
    PartsWriter mine;
    first.parts(mine);
    PartsAdder theirs(mine.bytes());
    second.parts(theirs);
    EXPECT_TRUE(theirs.is_done());
    const std::vector<double> found = values(second);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], expected[i]) << cut;
  }
}

TEST(Parts, OfClassificationAddUpToOneAccumulator) {
  const std::vector<double> raw = some_probabilities(3 * kExamples, 1);
  std::vector<double> p = raw;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < kExamples; ++i) {
    const double sum = raw[3 * i] + raw[3 * i + 1] + raw[3 * i + 2];
    for (std::size_t c = 0; c < 3; ++c) p[3 * i + c] = raw[3 * i + c] / sum;
    labels.push_back(std::int32_t(i % 3));
  }
  const auto rows = [&](std::size_t begin, std::size_t end) {
    return std::span<const double>(p).subspan(3 * begin, 3 * (end - begin));
  };
  const auto of = [&](std::size_t begin, std::size_t end) {
    return std::span<const std::int32_t>(labels).subspan(begin, end - begin);
  };
  expect_adds_up(
      ClassificationMetrics(3),
      [&](auto& sums, std::size_t begin, std::size_t end) {
        sums.add(rows(begin, end), of(begin, end));
      },
      [](const auto& sums) {
        return std::vector<double>{double(sums.count()), sums.accuracy(), sums.nll(), sums.brier()};
      });
  expect_adds_up(
      UniformBins(),
      [&](auto& sums, std::size_t begin, std::size_t end) {
        sums.add(top_class_forecasts(rows(begin, end), 3, of(begin, end)));
      },
      [](const auto& sums) {
        std::vector<double> values{sums.ece()};
        for (const ReliabilityBin& bin : sums.bins()) values.push_back(double(bin.count));
        return values;
      });
  expect_adds_up(
      TemperatureLosses(),
      [&](auto& sums, std::size_t begin, std::size_t end) {
        sums.add_classes(rows(begin, end), 3, of(begin, end));
      },
      [](const auto& sums) {
        const auto losses = sums.sums();
        std::vector<double> values{double(sums.examples()), sums.best()};
        values.insert(values.end(), losses.begin(), losses.end());
        return values;
      });
}

TEST(Parts, OfTwoClassesAddUpToOneAccumulator) {
  const std::vector<double> p = some_probabilities(kExamples, 2);
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < kExamples; ++i) labels.push_back(p[i] * p[i] > 0.3 ? 1 : 0);
  const auto add = [&](auto& sums, std::size_t begin, std::size_t end) {
    sums.add(std::span<const double>(p).subspan(begin, end - begin),
             std::span<const std::int32_t>(labels).subspan(begin, end - begin));
  };
  expect_adds_up(BinaryMetrics(), add, [](const auto& sums) {
    return std::vector<double>{double(sums.count()), sums.accuracy(), sums.nll(), sums.brier()};
  });
  expect_adds_up(Ranking(), add, [](const auto& sums) {
    return std::vector<double>{sums.auc(), sums.auc_deviation()};
  });
}

TEST(Parts, OfTagsAddUpToOneAccumulator) {
  const std::vector<double> p = some_probabilities(7 * kExamples, 3);
  expect_adds_up(
      TagMetrics(7, 0.5, 2),
      [&](auto& sums, std::size_t begin, std::size_t end) {
        std::vector<std::uint32_t> offsets{0}, columns;
        for (std::size_t i = begin; i < end; ++i) {
          columns.push_back(std::uint32_t(i % 4));
          columns.push_back(std::uint32_t(4 + i % 3));
          offsets.push_back(std::uint32_t(columns.size()));
        }
        sums.add(std::span<const double>(p).subspan(7 * begin, 7 * (end - begin)), offsets,
                 columns);
      },
      [](const auto& sums) {
        return std::vector<double>{sums.precision(),  sums.recall(), sums.micro_f1(),
                                   sums.macro_f1(),   sums.nll(),    double(sums.count()),
                                   sums.recall_at_k()};
      });
}

TEST(Parts, OfNumbersAndCountsAddUpToOneAccumulator) {
  const std::vector<double> means = some_probabilities(kExamples, 4);
  std::vector<float> targets;
  for (std::size_t i = 0; i < kExamples; ++i) targets.push_back(float(i % 5));
  const std::vector<double> spread(kExamples, 0.3);
  const auto add = [&](auto& sums, std::size_t begin, std::size_t end) {
    sums.add(std::span<const double>(means).subspan(begin, end - begin),
             std::span<const double>(spread).subspan(begin, end - begin),
             std::span<const float>(targets).subspan(begin, end - begin));
  };
  expect_adds_up(RegressionMetrics(), add, [](const auto& sums) {
    return std::vector<double>{double(sums.count()), sums.rmse(), sums.nll(), sums.error_ratio()};
  });
  expect_adds_up(CountMetrics(), add, [](const auto& sums) {
    return std::vector<double>{double(sums.count()), sums.rmse(), sums.nll(), sums.deviance(),
                               sums.error_ratio()};
  });
}

TEST(Parts, CarryWhatIsNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto sent = [](double term) {
    ExactSum sum, other;
    sum.add(term);
    other.add(1);
    PartsWriter mine;
    mine.sum(sum);
    PartsAdder theirs(mine.bytes());
    theirs.sum(other);
    return other.value();
  };
  EXPECT_EQ(sent(2), 3);
  EXPECT_EQ(sent(-kInfinity), -kInfinity);
  EXPECT_TRUE(std::isnan(sent(NAN)));
}

TEST(Parts, ThatEndTooEarlyAreRefused) {
  PartsWriter mine;
  ExactSum sum;
  sum.add(1);
  mine.sum(sum);
  for (std::size_t size = 0; size < mine.bytes().size(); ++size) {
    PartsAdder theirs(std::span(mine.bytes()).first(size));
    EXPECT_THROW(theirs.sum(sum), RunError) << size;
  }
}

}  // namespace
}  // namespace fedep
