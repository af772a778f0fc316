// Rows in stripes against the same steps in double, row by row.
#include "fedep/sim/sparse/row_store.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

constexpr std::size_t kWidth = 2 * kStripe + 5, kFeatures = 6, kSize = (kFeatures + 1) * kWidth;
constexpr float kLambda = 0.7f, kDecay = 0.1f, kScale = 1.5f;
const SgdNumbers kNumbers{.lr = 0.3f, .momentum = 0.9f, .per_example = 0.05f};

std::vector<float> normals(std::size_t size, std::uint32_t step) {
  std::vector<float> out(size);
  fill_normal({.seed = 4, .purpose = Purpose::test, .step = step}, out);
  return out;
}

// Whether Λ is one number, and whether sums of iterates are kept.
class Rows : public testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  Rows() {
    for (float& x : lambda_) x = 0.5f + std::abs(x);
    // Words 1 and 4; 4; 1 and 5: word 1 waits for a step, and an event comes in its way.
    add({0, 1, 2}, {1, 4}, {0.5f, 2.0f}, 0);
    add({0, 1}, {4}, {1.0f}, 0);
    add({0, 1, 2}, {1, 5}, {1.5f, -1.0f}, 1);
    plans_.finish();
    maps_.reach(3);
  }

  void add(std::vector<std::uint32_t> offsets, std::vector<std::uint32_t> words,
           std::vector<float> values, std::size_t events) {
    Batch& batch = plans_.next_batch();
    batch.size = offsets.size() - 1;
    batch.sparse = {std::move(offsets), std::move(words), std::move(values)};
    plans_.add(rows_, events);
  }

  bool isotropic() const { return GetParam().first; }
  bool sums() const { return GetParam().second; }
  RowLaw law() const {
    return {.numbers = kNumbers,
            .isotropic = isotropic(),
            .lambda = kLambda,
            .maps = maps_.without_gradient(),
            .gradient_maps = maps_.after_gradient(),
            .events = events_,
            .first_step = 0};
  }

  KeptRows rows_{kFeatures};
  StepPlans plans_;
  StepMaps maps_{kNumbers, kLambda};
  std::vector<ChainEvent> events_{{.step = 2, .sample = 1, .epoch_steps = 0}};
  std::vector<float> theta_ = normals(kSize, 1), eta_ = normals(kSize, 2),
                     lambda_ = normals(kSize, 3);
};

TEST_P(Rows, MoveAsTheyWouldOneByOne) {
  RowStore store(kWidth, {.lambda = !isotropic(), .sum = sums(), .mean = true, .squares = false});
  store.resize(rows_.size());
  EXPECT_EQ(store.stripes(), 3u);
  EXPECT_EQ(store.columns(2), 5u);
  std::vector<double> theta(theta_.begin(), theta_.end()), m(kSize), sum(kSize), sample;
  const std::vector<RowClock> clocks(rows_.size());
  const RowsStart start{theta_.data(), eta_.data(), isotropic() ? nullptr : lambda_.data(), kDecay};
  for (std::size_t stripe = 0; stripe < store.stripes(); ++stripe) {
    store.begin(stripe, rows_, 0, start);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (i == 2) sample = theta;
    const Batch& batch = plans_.steps()[i].batch;
    const std::vector<float> delta =
        normals(batch.size * store.stripes() * kStripe, std::uint32_t(10 + i));
    // What every step does to all rows, in double.
    std::vector<double> logits(batch.size * kWidth), gradient(kSize);
    for (std::size_t e = 0; e < batch.size; ++e) {
      for (std::size_t c = 0; c < kWidth; ++c) {
        const double d = double(delta[(c / kStripe * batch.size + e) * kStripe + c % kStripe]);
        const auto use = [&](std::size_t row, double value) {
          logits[e * kWidth + c] += value * theta[row * kWidth + c];
          gradient[row * kWidth + c] += value * d;
        };
        use(kFeatures, 1);
        for (std::size_t k = batch.sparse.offsets[e]; k < batch.sparse.offsets[e + 1]; ++k) {
          use(batch.sparse.columns[k], double(batch.sparse.values[k]));
        }
      }
    }
    for (std::size_t stripe = 0; stripe < store.stripes(); ++stripe) {
      std::vector<float> z(batch.size * kStripe);
      store.catch_up(stripe, law(), clocks, plans_.steps(), i);
      store.logits(stripe, plans_.steps()[i], z.data());
      for (std::size_t e = 0; e < batch.size; ++e) {
        for (std::size_t c = 0; c < kStripe; ++c) {
          const bool there = c < store.columns(stripe);
          const double expected = there ? logits[e * kWidth + stripe * kStripe + c] : 0;
          EXPECT_NEAR(double(z[e * kStripe + c]), expected, 1e-5) << i << " " << e << " " << c;
        }
      }
      // Columns that do not exist have no derivative.
      std::vector<float> d(delta.begin() + std::ptrdiff_t(stripe * batch.size * kStripe),
                           delta.begin() + std::ptrdiff_t((stripe + 1) * batch.size * kStripe));
      for (std::size_t k = 0; k < d.size(); ++k) {
        if (k % kStripe >= store.columns(stripe)) d[k] = 0;
      }
      store.descend(stripe, law(), kScale, plans_.steps(), i, d.data());
    }
    for (std::size_t k = 0; k < kSize; ++k) {
      const double lambda = isotropic() ? double(kLambda) : double(lambda_[k]) + double(kDecay);
      m[k] = double(kNumbers.momentum) * m[k] + double(kScale) * gradient[k] +
             (lambda * theta[k] - double(eta_[k])) * double(kNumbers.per_example);
      theta[k] -= double(kNumbers.lr) * m[k];
      sum[k] += theta[k];
    }
  }
  std::vector<float> found(kWidth);
  const auto expect = [&](std::size_t word, const RowClock& clock, RowPart part,
                          std::size_t divisor, const std::vector<double>& expected) {
    store.read(rows_.slot(word), {part, 3, divisor}, law(), clock, found);
    for (std::size_t c = 0; c < kWidth; ++c) {
      EXPECT_NEAR(double(found[c]), expected[word * kWidth + c] / double(divisor), 1e-5)
          << word << " " << c;
    }
  };
  const RowClock at_end{.step = 3, .event = 1}, after_second{.step = 2, .event = 0};
  for (const std::size_t word : {std::size_t(1), std::size_t(5), kFeatures}) {
    expect(word, at_end, RowPart::theta, 1, theta);
    expect(word, at_end, RowPart::mean, 1, sample);
  }
  expect(4, after_second, RowPart::theta, 2, theta);  // one step more is made in passing
  expect(4, after_second, RowPart::mean, 1, sample);
  expect(4, after_second, RowPart::mean, 1, sample);  // and leaves the row as it was
}

INSTANTIATE_TEST_SUITE_P(Kinds, Rows,
                         testing::Values(std::pair(true, false), std::pair(true, true),
                                         std::pair(false, false), std::pair(false, true)));

TEST(RowStore, KeepsItsRowsWhenItGrows) {
  RowStore store(kStripe + 1, {.lambda = false, .sum = false, .mean = true, .squares = false});
  KeptRows rows(3);
  const std::vector<float> theta = normals(4 * (kStripe + 1), 1), zero(theta.size(), 0.0f);
  const RowsStart start{theta.data(), zero.data(), nullptr, 0.0f};
  const StepMaps maps(kNumbers, 0.0f);
  const RowLaw law{kNumbers, true, 0.0f, maps.without_gradient(), {}, {}, 0};
  for (std::size_t first = 0; first < 3; ++first) {
    if (first > 0) rows.keep(std::uint32_t(first));
    store.resize(rows.size());
    for (std::size_t stripe = 0; stripe < 2; ++stripe) store.begin(stripe, rows, first, start);
  }
  for (std::size_t slot = 0; slot < rows.size(); ++slot) {
    std::vector<float> found(kStripe + 1);
    store.read(slot, {RowPart::theta, 0}, law, {}, found);
    for (std::size_t c = 0; c < found.size(); ++c) {
      EXPECT_EQ(found[c], theta[rows.row(slot) * (kStripe + 1) + c]);
    }
  }
}

}  // namespace
}  // namespace fedep
