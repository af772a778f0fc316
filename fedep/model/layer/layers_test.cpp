// Norms, pools, dropout and the small loops: their laws, and derivatives against central
// differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "fedep/model/blas.h"
#include "fedep/model/layer/elementwise.h"
#include "fedep/model/layer/exponential.h"
#include "fedep/model/layer/norm.h"
#include "fedep/model/layer/pool.h"
#include "fedep/model/layer/vector_width.h"

namespace fedep {
namespace {

std::vector<float> normals(std::size_t count, std::uint32_t which) {
  std::vector<float> out(count);
  fill_normal({.seed = 8, .step = which}, out);
  return out;
}

// The norm in double: group g of image i at position p, or over all positions.
std::vector<double> plain_norm(NormKind kind, std::size_t n, std::size_t positions,
                               std::size_t channels, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  const std::size_t half = channels / 2;
  const auto group_of = [&](std::size_t at) {
    const std::size_t row = at / channels, image = row / positions;
    const std::size_t place = kind == NormKind::per_position ? row : image;
    return 2 * place + (at % channels) / half;
  };
  std::vector<double> count(2 * n * positions), mean(count.size()), variance(count.size());
  for (std::size_t i = 0; i < x.size(); ++i) count[group_of(i)] += 1, mean[group_of(i)] += x[i];
  for (std::size_t g = 0; g < count.size(); ++g) mean[g] /= std::max(count[g], 1.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    variance[group_of(i)] += std::pow(x[i] - mean[group_of(i)], 2) / count[group_of(i)];
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = (x[i] - mean[group_of(i)]) / std::sqrt(variance[group_of(i)] + 1e-3);
  }
  return y;
}

class NormOfKind : public testing::TestWithParam<NormKind> {
 protected:
  static constexpr std::size_t n = 2, positions = 4, channels = 44;
  Norm norm{GetParam(), positions, channels};
  std::vector<float> x = normals(n * positions * channels, 1);
  std::vector<float> y = std::vector<float>(x.size());
  std::vector<float> rectified = std::vector<float>(x.size());
};

TEST_P(NormOfKind, CentresAndScalesEachGroup) {
  for (float& v : x) v = 3.0f + 2.0f * v;
  norm.forward(n, x.data(), y.data(), rectified.data());
  const std::vector<double> expected =
      plain_norm(GetParam(), n, positions, channels, {x.begin(), x.end()});
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(double(y[i]), expected[i], 2e-6);
    EXPECT_EQ(rectified[i], std::max(y[i], 0.0f));
  }
}

TEST_P(NormOfKind, HasTheDerivativeOfCentralDifferences) {
  const std::vector<float> weights = normals(x.size(), 2);
  for (const bool through_rectifier : {false, true}) {
    norm.forward(n, x.data(), y.data(), nullptr);
    std::vector<float> dy = weights, dx(x.size(), 1.0f);
    norm.add_backward(n, y.data(), through_rectifier, dy.data(), dx.data());
    const auto loss = [&](const std::vector<double>& at) {
      const std::vector<double> out = plain_norm(GetParam(), n, positions, channels, at);
      double sum = 0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        sum += double(weights[i]) * (through_rectifier ? std::max(out[i], 0.0) : out[i]);
      }
      return sum;
    };
    const double h = 1e-6;
    for (std::size_t i = 0; i < x.size(); i += 5) {
      std::vector<double> up(x.begin(), x.end()), down = up;
      up[i] += h;
      down[i] -= h;
      EXPECT_NEAR(double(dx[i]) - 1.0, (loss(up) - loss(down)) / (2 * h), 1e-5) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, NormOfKind,
                         testing::Values(NormKind::per_position, NormKind::group_norm),
                         [](const testing::TestParamInfo<NormKind>& test) {
                           return test.param == NormKind::per_position ? "per_position"
                                                                       : "group_norm";
                         });

TEST(Norm, OfAConstantIsZero) {
  Norm norm(NormKind::per_position, 1, 8);
  const std::vector<float> x(8, 5.0f);
  std::vector<float> y(8);
  norm.forward(1, x.data(), y.data(), nullptr);
  EXPECT_EQ(y, std::vector<float>(8, 0.0f));
}

TEST(MaxPool, TakesTheLargestAndSendsItsDerivativeBack) {
  //  1 5 2        3x3 windows from 0 and 2, the second beyond the end
  //  0 4 8
  //  7 3 6
  const std::vector<float> x{1, 5, 2, 0, 4, 8, 7, 3, 6};
  MaxPool pool = same_max_pool(3, 3, 1, 3, 2);  // pads (1, 1)
  std::vector<float> y(4), dx(9, NAN);
  pool.forward(1, x.data(), y.data());
  EXPECT_EQ(y, (std::vector<float>{5, 8, 7, 8}));
  const std::vector<float> dy{1, 10, 100, 1000};
  pool.backward(1, dy.data(), dx.data());
  EXPECT_EQ(dx, (std::vector<float>{0, 1, 0, 0, 0, 1010, 100, 0, 0}));
}

// 12 -> 6 with pads (0, 1): the last window sees two rows (reference-facts.md 10.1).
TEST(MaxPool, PadsWithMinusInfinityAfterTheMap) {
  const std::vector<float> x(12 * 12, -3.0f);
  MaxPool pool = same_max_pool(12, 12, 1, 3, 2);
  std::vector<float> y(36);
  pool.forward(1, x.data(), y.data());
  EXPECT_EQ(y, std::vector<float>(36, -3.0f));
}

TEST(MaxPool, WithoutPaddingDropsWhatDoesNotFillAWindow) {
  const std::vector<float> x = normals(2 * 5 * 5 * 3, 3);
  MaxPool pool = valid_max_pool(5, 5, 3, 2, 2);
  ASSERT_EQ(pool.output_size(), 2u * 2 * 3);
  std::vector<float> y(24);
  pool.forward(2, x.data(), y.data());
  for (std::size_t image = 0; image < 2; ++image) {
    for (std::size_t c = 0; c < 3; ++c) {
      const auto at = [&](std::size_t r, std::size_t s) {
        return x[image * 75 + (r * 5 + s) * 3 + c];
      };
      EXPECT_EQ(y[image * 12 + 9 + c], std::max({at(2, 2), at(2, 3), at(3, 2), at(3, 3)}));
    }
  }
}

TEST(Dropout, IsAFunctionOfItsAddressAndTheUnit) {
  const Address address{.seed = 1, .purpose = Purpose::dropout, .round = 2, .client = 3, .step = 4};
  std::vector<float> all(1000), again(1000), tail(904);
  fill_dropout(address, 0.25, 0, all);
  fill_dropout(address, 0.25, 0, again);
  fill_dropout(address, 0.25, 96, tail);
  EXPECT_EQ(all, again);
  EXPECT_TRUE(std::equal(all.begin() + 96, all.end(), tail.begin()));
  Address other = address;
  other.step = 5;
  fill_dropout(other, 0.25, 0, again);
  EXPECT_NE(all, again);
}

TEST(Dropout, KeepsTheExpectedShareAndMean) {
  std::vector<float> factor(160000);
  for (const double rate : {0.25, 0.5}) {
    fill_dropout({.seed = 5, .purpose = Purpose::dropout}, rate, 0, factor);
    double dropped = 0, mean = 0;
    for (const float f : factor) {
      EXPECT_TRUE(f == 0.0f || f == float(1 / (1 - rate)));
      dropped += f == 0.0f;
      mean += double(f) / double(factor.size());
    }
    // Five standard deviations of a binomial.
    EXPECT_NEAR(dropped / double(factor.size()), rate, 5 * std::sqrt(rate * (1 - rate) / 160000));
    EXPECT_NEAR(mean, 1.0, 0.01);
  }
}

TEST(SquaredProducts, AreSquaredPerExampleBeforeTheyAreSummed) {
  for (const std::size_t k : {1, 3}) {
    const std::size_t n = 4, in = 5, out = 37;
    const std::vector<float> x = normals(n * k * in, 4), d = normals(n * k * out, 5);
    std::vector<float> sum(in * out, 2.0f);
    add_squared_products(n, k, in, out, x.data(), d.data(), sum.data());
    for (std::size_t i = 0; i < in; ++i) {
      for (std::size_t o = 0; o < out; ++o) {
        double expected = 2.0;
        for (std::size_t e = 0; e < n; ++e) {
          double product = 0;
          for (std::size_t j = e * k; j < (e + 1) * k; ++j) {
            product += double(x[j * in + i]) * double(d[j * out + o]);
          }
          expected += product * product;
        }
        EXPECT_NEAR(double(sum[i * out + o]), expected, 1e-5 * expected);
      }
    }
  }
}

TEST(Bias, GradientIsTheSumOverRowsAndItsSquareIsPerExample) {
  const std::vector<float> dy{1, 2, 3, 4, 5, 6, 7, 8};  // 2 examples, 2 positions, 2 channels
  std::vector<float> db{10, 20}, sum{0, 1};
  bias_gradient(dy.data(), 4, 2, 0.5f, db.data());
  EXPECT_EQ(db, (std::vector<float>{21, 30}));
  add_squared_bias_gradient(dy.data(), 2, 2, 2, sum.data());
  EXPECT_EQ(sum, (std::vector<float>{16 + 144, 36 + 196 + 1}));
}

TEST(Exponential, IsWithinTwoUnitsInTheLastPlace) {
  for (float x = -87.0f; x <= 88.0f; x += 0.0371f) {
    const double exact = std::exp(double(x));
    EXPECT_NEAR(double(exponential(x)), exact, exact * 2.4e-7) << x;
  }
  EXPECT_EQ(exponential(0.0f), 1.0f);
  EXPECT_LT(exponential(-1000.0f), 2e-38f);
}

TEST(VectorWidth, GivesTheSameBits) {
  const std::vector<float> x = normals(1003, 6);
  std::vector<float> narrow(x.size()), avx2(x.size()), avx512(x.size());
  const auto into = [&x](float* y) {
    const float* from = x.data();
    const std::size_t count = x.size();
    return [=]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < count; ++i) y[i] = from[i] * 0.3f + exponential(from[i]);
    };
  };
  into(narrow.data())();
  at_full_width(into(avx512.data()));
  EXPECT_EQ(narrow, avx512);
  if (vector_width() == VectorWidth::baseline) return;
  at_avx2(into(avx2.data()));
  EXPECT_EQ(narrow, avx2);
}

TEST(Multiply, KeepsAsMuchOfTheResultAsAsked) {
  const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{1, 0, 0, 1, 1, 1};  // [2, 3], [3, 2]
  std::vector<float> c{NAN, NAN, NAN, NAN};
  multiply(matrix(a.data(), 2, 3), matrix(b.data(), 3, 2), c.data(), 2);
  EXPECT_EQ(c, (std::vector<float>{4, 5, 10, 11}));
  multiply(matrix(a.data(), 2, 3), matrix(b.data(), 3, 2), c.data(), 2, 2.0f);
  EXPECT_EQ(c, (std::vector<float>{12, 15, 30, 33}));
  std::vector<float> ata(9);
  multiply(transposed(matrix(a.data(), 2, 3)), matrix(a.data(), 2, 3), ata.data(), 3);
  EXPECT_EQ(ata, (std::vector<float>{17, 22, 27, 22, 29, 36, 27, 36, 45}));
}

TEST(BlasKernel, HasANameAndIsNotOneTheCpuHasOutgrown) {
  const std::string kernel = choose_blas_kernel();
  EXPECT_EQ(kernel, blas_kernel());
  if (__builtin_cpu_supports("avx2") && std::getenv("OPENBLAS_CORETYPE") == nullptr) {
    EXPECT_NE(kernel, "Prescott");
  }
}

}  // namespace
}  // namespace fedep
