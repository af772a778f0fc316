// Convolutions against their definition, written out in double.
#include "fedep/model/layer/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

std::vector<float> normals(std::size_t count, std::uint32_t which) {
  std::vector<float> out(count);
  fill_normal({.seed = 7, .step = which}, out);
  return out;
}

// Calls visit(output index, input index, weight index) for every product a convolution sums.
template <class Visit>
void visit_products(const ConvolutionShape& s, std::size_t n, const Visit& visit) {
  for (std::size_t image = 0; image < n; ++image)
    for (std::size_t oy = 0; oy < s.out_height; ++oy)
      for (std::size_t ox = 0; ox < s.out_width; ++ox)
        for (std::size_t ky = 0; ky < s.kernel; ++ky)
          for (std::size_t kx = 0; kx < s.kernel; ++kx) {
            const int iy = int(oy * s.stride + ky) - int(s.pad_top);
            const int ix = int(ox * s.stride + kx) - int(s.pad_left);
            if (iy < 0 || ix < 0 || iy >= int(s.height) || ix >= int(s.width)) continue;
            for (std::size_t i = 0; i < s.in; ++i)
              for (std::size_t o = 0; o < s.out; ++o) {
                visit(((image * s.out_height + oy) * s.out_width + ox) * s.out + o,
                      ((image * s.height + std::size_t(iy)) * s.width + std::size_t(ix)) * s.in + i,
                      ((ky * s.kernel + kx) * s.in + i) * s.out + o);
              }
          }
}

void expect_near(const std::vector<float>& came, const std::vector<double>& expected) {
  ASSERT_EQ(came.size(), expected.size());
  double scale = 0;
  for (const double e : expected) scale = std::max(scale, std::fabs(e));
  for (std::size_t i = 0; i < came.size(); ++i) {
    ASSERT_NEAR(double(came[i]), expected[i], 2e-6 * scale) << "at " << i;
  }
}

struct Case {
  std::string name;
  ConvolutionShape shape;
};

class ConvolutionOfShape : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t kImages = 5;
  const ConvolutionShape shape = GetParam().shape;
  Convolution conv{shape};
  std::vector<float> x = normals(kImages * shape.input_size(), 1);
  std::vector<float> w = normals(shape.weights(), 2);
  std::vector<float> dy = normals(kImages * shape.output_size(), 3);

  bool is_live(std::size_t coordinate) const {
    for (const Range& r : conv.live()) {
      if (coordinate >= r.begin && coordinate < r.end) return true;
    }
    return false;
  }
};

TEST_P(ConvolutionOfShape, IsTheSumOfProducts) {
  std::vector<double> expected(kImages * shape.output_size());
  visit_products(shape, kImages, [&](std::size_t out, std::size_t in, std::size_t weight) {
    expected[out] += double(x[in]) * double(w[weight]);
  });
  std::vector<float> y(expected.size(), NAN);
  conv.forward(kImages, x.data(), w.data(), y.data());
  expect_near(y, expected);
}

TEST_P(ConvolutionOfShape, HasTheTransposeAsInputGradient) {
  std::vector<double> expected(x.size());
  visit_products(shape, kImages, [&](std::size_t out, std::size_t in, std::size_t weight) {
    expected[in] += double(dy[out]) * double(w[weight]);
  });
  std::vector<float> dx(x.size(), NAN);
  conv.input_gradient(kImages, dy.data(), w.data(), dx.data());
  expect_near(dx, expected);
}

TEST_P(ConvolutionOfShape, AddsItsWeightGradientToWhatIsKept) {
  const std::vector<float> before = normals(w.size(), 4);
  std::vector<double> expected(before.begin(), before.end());
  for (std::size_t i = 0; i < w.size(); ++i) expected[i] *= is_live(i) ? 0.5 : 1.0;
  visit_products(shape, kImages, [&](std::size_t out, std::size_t in, std::size_t weight) {
    expected[weight] += double(dy[out]) * double(x[in]);
  });
  std::vector<float> dw = before;
  conv.weight_gradient(kImages, x.data(), dy.data(), 0.5f, dw.data());
  expect_near(dw, expected);
}

TEST_P(ConvolutionOfShape, OverwritesWhatItDoesNotKeepAndLeavesDeadTapsAlone) {
  std::vector<float> dw(w.size(), NAN);
  conv.weight_gradient(kImages, x.data(), dy.data(), 0.0f, dw.data());
  for (std::size_t i = 0; i < dw.size(); ++i) ASSERT_EQ(std::isnan(dw[i]), !is_live(i)) << i;
}

TEST_P(ConvolutionOfShape, AddsTheSquareOfEachExamplesGradient) {
  std::vector<double> expected(w.size(), 1.0);
  std::vector<double> one(w.size());
  for (std::size_t image = 0; image < kImages; ++image) {
    std::fill(one.begin(), one.end(), 0.0);
    visit_products(shape, 1, [&](std::size_t out, std::size_t in, std::size_t weight) {
      one[weight] += double(dy[image * shape.output_size() + out]) *
                     double(x[image * shape.input_size() + in]);
    });
    for (std::size_t i = 0; i < one.size(); ++i) expected[i] += one[i] * one[i];
  }
  std::vector<float> sum(w.size(), 1.0f);
  conv.add_squared_weight_gradient(kImages, x.data(), dy.data(), sum.data());
  expect_near(sum, expected);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvolutionOfShape,
                         testing::Values(Case{"valid", valid_convolution(8, 7, 3, 5, 3, 1)},
                                         Case{"one_channel", valid_convolution(9, 9, 1, 4, 3, 1)},
                                         Case{"stem", same_convolution(24, 24, 3, 8, 7, 2)},
                                         Case{"same", same_convolution(6, 6, 4, 6, 3, 1)},
                                         Case{"winograd", same_convolution(6, 8, 16, 32, 3, 1)},
                                         Case{"winograd_valid",
                                              valid_convolution(8, 10, 32, 16, 3, 1)},
                                         Case{"wide", same_convolution(4, 12, 4, 33, 3, 1)},
                                         Case{"six_to_three", same_convolution(6, 6, 4, 40, 3, 2)},
                                         Case{"on_three", same_convolution(3, 3, 5, 6, 3, 1)},
                                         Case{"three_to_two", same_convolution(3, 3, 5, 6, 3, 2)},
                                         Case{"on_two", same_convolution(2, 2, 8, 64, 3, 1)},
                                         Case{"two_to_one", same_convolution(2, 2, 8, 7, 3, 2)},
                                         Case{"on_one", same_convolution(1, 1, 8, 7, 3, 1)},
                                         Case{"shortcut", same_convolution(6, 6, 4, 6, 1, 2)},
                                         Case{"five_wide", same_convolution(5, 5, 2, 3, 5, 2)}),
                         [](const testing::TestParamInfo<Case>& test) { return test.param.name; });

// reference-facts.md 10.1: pads of 7x7/2 on 24 are (2, 3), of 3x3/2 on 6 (0, 1), on 3 (1, 1), on 2
// (0, 1).
TEST(SameConvolution, PadsAsTensorFlowDoes) {
  EXPECT_EQ(same_convolution(24, 24, 3, 64, 7, 2).pad_top, 2u);
  EXPECT_EQ(same_convolution(24, 24, 3, 64, 7, 2).out_height, 12u);
  EXPECT_EQ(same_convolution(6, 6, 64, 64, 3, 1).pad_top, 1u);
  EXPECT_EQ(same_convolution(6, 6, 64, 128, 3, 2).pad_top, 0u);
  EXPECT_EQ(same_convolution(3, 3, 128, 256, 3, 2).pad_top, 1u);
  EXPECT_EQ(same_convolution(2, 2, 256, 512, 3, 2).pad_top, 0u);
  EXPECT_EQ(same_convolution(2, 2, 256, 512, 3, 2).out_height, 1u);
}

TEST(Convolution, KnowsItsLiveTaps) {
  const std::size_t slice = 8 * 7;
  EXPECT_EQ(Convolution(same_convolution(2, 2, 8, 7, 3, 2)).live(),
            (std::vector<Range>{{0, 2 * slice}, {3 * slice, 5 * slice}}));
  EXPECT_EQ(Convolution(same_convolution(1, 1, 8, 7, 3, 1)).live(),
            (std::vector<Range>{{4 * slice, 5 * slice}}));
  EXPECT_EQ(Convolution(same_convolution(2, 2, 8, 7, 3, 1)).live(),
            (std::vector<Range>{{0, 9 * slice}}));
}

}  // namespace
}  // namespace fedep
