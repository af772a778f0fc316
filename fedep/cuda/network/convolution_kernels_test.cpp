// Single layers of a cohort against loops in double: every way in which the kernels cut a layer
// into tiles, with every kind of step.
#include "fedep/cuda/network/convolution_kernels.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/network/test_cohort_model.h"

namespace fedep {
namespace {

struct Layer {
  std::string name;
  gpu::Geometry g;
  int rows;
};

gpu::Geometry unpadded(int side, int in, int out, int kernel) {
  const int after = side - kernel + 1;
  return gpu::make_geometry(side, side, in, after, after, out, kernel, 1, 0, 0);
}
gpu::Geometry padded(int side, int in, int out, int kernel, int stride) {
  const int after = (side + stride - 1) / stride, pad = (kernel - 1) / 2;
  return gpu::make_geometry(side, side, in, after, after, out, kernel, stride, pad, pad);
}

std::vector<Layer> layers() {
  return {
      {"several_taps", unpadded(7, 32, 64, 3), 3},
      {"several_taps_in_one_part", unpadded(5, 32, 64, 3), 5},
      {"several_taps_not_whole", unpadded(6, 12, 20, 3), 4},
      {"many_rows", unpadded(26, 4, 64, 3), 32},
      {"many_rows_few_columns", unpadded(26, 4, 32, 3), 32},
      {"wide_taps", padded(6, 64, 64, 3, 1), 6},
      {"wide_taps_stride_2", padded(6, 64, 128, 3, 2), 6},
      {"narrow_taps", padded(12, 8, 16, 3, 1), 4},
      {"shortcut", padded(6, 8, 16, 1, 2), 12},
      {"four_positions", padded(2, 128, 64, 3, 1), 4},
      {"one_position", padded(1, 64, 64, 3, 1), 7},
      {"49_taps", padded(14, 4, 8, 7, 2), 3},
      {"no_fours", padded(9, 3, 5, 3, 1), 4},
      {"dense_narrow", gpu::make_dense(16, 8), 128},
      {"dense", gpu::make_dense(300, 40), 9},
      {"dense_no_fours", gpu::make_dense(33, 10), 9},
  };
}

constexpr std::size_t kClients = 3;

class ConvolutionKernels : public testing::TestWithParam<Layer> {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
    g_ = GetParam().g;
    rows_ = std::size_t(GetParam().rows);
    counts_ = {GetParam().rows, 0, GetParam().rows / 2 + 1};
    d_counts_ = DeviceArray<std::int32_t>(counts_);
    weights_ = std::size_t(g_.kernel * g_.kernel * g_.in * g_.out);
    stride_ = (weights_ + 3) / 4 * 4 + 8;
    x_ = normals(kClients * x_size() * rows_, 1, 1.0f);
    dy_ = normals(kClients * y_size() * rows_, 2, 0.1f);
    theta_ = normals(kClients * stride_, 3, 0.1f);
    d_x_ = DeviceArray<float>(x_);
    d_dy_ = DeviceArray<float>(dy_);
    d_theta_ = DeviceArray<float>(theta_);
    partial_ = DeviceArray<float>(gpu::kMostSplits * kClients * weights_);
  }

  std::size_t x_size() const { return std::size_t(g_.input_positions() * g_.in); }
  std::size_t y_size() const { return std::size_t(g_.output_positions() * g_.out); }
  gpu::CohortShape cohort() const { return {int(kClients), int(rows_), d_counts_.data()}; }
  gpu::WeightGradient operands(bool parts) {
    gpu::WeightGradient f;
    f.x = d_x_.data();
    f.dy = d_dy_.data();
    f.partial = parts ? partial_.data() : nullptr;
    return f;
  }
  static double tolerance(bool precise) { return precise ? 1e-5 : 2e-3; }

  // Calls visit(x, y, weight) for all products of one example: places among an example's inputs,
  // its outputs and a client's weights.
  template <class Visit>
  void for_each_product(const Visit& visit) const {
    const std::size_t in = std::size_t(g_.in), out = std::size_t(g_.out);
    for (int position = 0; position < g_.output_positions(); ++position) {
      for (int tap = 0; tap < g_.kernel * g_.kernel; ++tap) {
        const int row = position / g_.out_width * g_.stride - g_.pad_top + tap / g_.kernel;
        const int column = position % g_.out_width * g_.stride - g_.pad_left + tap % g_.kernel;
        if (row < 0 || column < 0 || row >= g_.height || column >= g_.width) continue;
        const std::size_t x = std::size_t(row * g_.width + column) * in;
        for (std::size_t i = 0; i < in; ++i) {
          for (std::size_t o = 0; o < out; ++o) {
            visit(x + i, std::size_t(position) * out + o, (std::size_t(tap) * in + i) * out + o);
          }
        }
      }
    }
  }

  // Of one example, added to `gradient`.
  void add_gradient(std::size_t example, std::vector<double>& gradient) const {
    const float* const x = x_.data() + example * x_size();
    const float* const dy = dy_.data() + example * y_size();
    for_each_product([&](std::size_t i, std::size_t o, std::size_t weight) {
      gradient[weight] += double(x[i]) * double(dy[o]);
    });
  }
  std::vector<bool> live() const {
    std::vector<bool> found(weights_, false);
    for (int t = 0; t < g_.taps; ++t) {
      const std::size_t size = std::size_t(g_.in * g_.out), begin = g_.tap[t] * size;
      for (std::size_t i = 0; i < size; ++i) found[begin + i] = true;
    }
    return found;
  }
  static std::vector<float> floats(const std::vector<double>& values) {
    return {values.begin(), values.end()};
  }

  gpu::Geometry g_;
  std::size_t rows_ = 0, weights_ = 0, stride_ = 0;
  std::vector<std::int32_t> counts_;
  std::vector<float> x_, dy_, theta_;
  DeviceArray<std::int32_t> d_counts_;
  DeviceArray<float> d_x_, d_dy_, d_theta_, partial_;
};

TEST_P(ConvolutionKernels, ForwardIsTheSumOverTaps) {
  const std::vector<float> bias = normals(kClients * stride_, 4, 1.0f),
                           add = normals(dy_.size(), 5, 1.0f);
  const DeviceArray<float> d_bias(bias), d_add(add);
  DeviceArray<float> y(dy_.size());
  for (const bool precise : {true, false}) {
    gpu::Forward f;
    f.x = d_x_.data();
    f.weights = d_theta_.data();
    f.stride = stride_;
    f.bias = d_bias.data();
    f.add = d_add.data();
    f.rectify_y = true;
    f.y = y.data();
    gpu::convolve(g_, cohort(), f, precise, device_stream());
    const std::vector<float> found = y.download();
    for (std::size_t c = 0; c < kClients; ++c) {
      const std::size_t first = c * rows_, size = std::size_t(counts_[c]) * y_size();
      std::vector<double> sum(size);
      for (std::size_t e = 0; e < std::size_t(counts_[c]); ++e) {
        const float* const x = x_.data() + (first + e) * x_size();
        for_each_product([&](std::size_t i, std::size_t o, std::size_t weight) {
          sum[e * y_size() + o] += double(x[i]) * double(theta_[c * stride_ + weight]);
        });
      }
      for (std::size_t i = 0; i < size; ++i) {
        sum[i] +=
            double(bias[c * stride_ + i % std::size_t(g_.out)]) + double(add[first * y_size() + i]);
        sum[i] = std::max(sum[i], 0.0);
      }
      EXPECT_LE(relative_error(std::span(found).subspan(first * y_size(), size), floats(sum)),
                tolerance(precise))
          << "client " << c << (precise ? " precise" : "");
    }
  }
}

TEST_P(ConvolutionKernels, InputGradientIsTheSumOverTaps) {
  const std::vector<float> sign = normals(x_.size(), 6, 1.0f);
  const DeviceArray<float> d_sign(sign);
  DeviceArray<float> dx(x_.size());
  for (const bool precise : {true, false}) {
    gpu::InputGradient f;
    f.dy = d_dy_.data();
    f.weights = d_theta_.data();
    f.stride = stride_;
    f.where_positive = d_sign.data();
    f.scale = 1.5f;
    f.dx = dx.data();
    gpu::input_gradient(g_, cohort(), f, precise, device_stream());
    const std::vector<float> found = dx.download();
    for (std::size_t c = 0; c < kClients; ++c) {
      const std::size_t first = c * rows_, size = std::size_t(counts_[c]) * x_size();
      std::vector<double> sum(size);
      for (std::size_t e = 0; e < std::size_t(counts_[c]); ++e) {
        const float* const dy = dy_.data() + (first + e) * y_size();
        for_each_product([&](std::size_t i, std::size_t o, std::size_t weight) {
          sum[e * x_size() + i] += double(dy[o]) * double(theta_[c * stride_ + weight]);
        });
      }
      for (std::size_t i = 0; i < size; ++i) {
        sum[i] = sign[first * x_size() + i] > 0 ? 1.5 * sum[i] : 0.0;
      }
      EXPECT_LE(relative_error(std::span(found).subspan(first * x_size(), size), floats(sum)),
                tolerance(precise))
          << "client " << c << (precise ? " precise" : "");
    }
  }
}

TEST_P(ConvolutionKernels, EveryLiveWeightMakesItsStepAndNoOtherDoes) {
  const std::vector<float> momentum = normals(theta_.size(), 7, 0.1f),
                           eta = normals(theta_.size(), 8, 1.0f), numbers{3.0f, 4.0f, 5.0f},
                           per_example{0.1f, 0.2f, 0.05f};
  std::vector<float> lambda = normals(theta_.size(), 9, 0.5f);
  for (float& x : lambda) x += 4.0f;
  const DeviceArray<float> d_eta(eta), d_numbers(numbers), d_lambda(lambda), d_per(per_example);
  DeviceArray<float> theta(theta_.size()), d_momentum(theta_.size());
  std::vector<std::vector<double>> gradients(kClients, std::vector<double>(weights_));
  for (std::size_t c = 0; c < kClients; ++c) {
    for (std::size_t e = 0; e < std::size_t(counts_[c]); ++e) {
      add_gradient(c * rows_ + e, gradients[c]);
    }
  }
  const std::vector<bool> lives = live();
  for (int variant = 0; variant < 32; ++variant) {
    const bool precise = variant & 1, parts = variant & 2, with_eta = variant & 4,
               diagonal = variant & 8, with_momentum = variant & 16;
    SCOPED_TRACE(testing::Message() << "precise, parts, eta, diagonal, momentum: " << precise
                                    << parts << with_eta << diagonal << with_momentum);
    theta.upload(theta_);
    d_momentum.upload(momentum);
    const gpu::Update u{.theta = theta.data(),
                        .momentum = d_momentum.data(),
                        .eta = with_eta ? d_eta.data() : nullptr,
                        .lambda = diagonal ? d_lambda.data() : d_numbers.data(),
                        .diagonal = diagonal,
                        .stride = stride_,
                        .per_example = d_per.data(),
                        .lr = 0.1f,
                        .mu = with_momentum ? 0.9f : 0.0f};
    gpu::update_weights(g_, cohort(), operands(parts), u, precise, device_stream());
    const std::vector<float> found = theta.download();
    for (std::size_t c = 0; c < kClients; ++c) {
      std::vector<float> moved, expected;
      for (std::size_t i = 0; i < stride_; ++i) {
        const std::size_t at = c * stride_ + i;
        if (i >= weights_ || !lives[i] || counts_[c] == 0) {
          ASSERT_EQ(found[at], theta_[at]) << "client " << c << ", weight " << i;
          continue;
        }
        const double pull = double(diagonal ? lambda[at] : numbers[c]) * double(theta_[at]) -
                            (with_eta ? double(eta[at]) : 0.0);
        const double m = (with_momentum ? 0.9 * double(momentum[at]) : 0.0) + gradients[c][i] +
                         pull * double(per_example[c]);
        moved.push_back(found[at] - theta_[at]);
        expected.push_back(float(-0.1 * m));
      }
      EXPECT_LE(relative_error(moved, expected), tolerance(precise)) << "client " << c;
    }
  }
}

TEST_P(ConvolutionKernels, SquaresAreThoseOfEveryExample) {
  const std::vector<float> before = normals(theta_.size(), 10, 0.1f);
  DeviceArray<float> sum(theta_.size());
  std::vector<std::vector<double>> expected(kClients, std::vector<double>(weights_));
  for (std::size_t c = 0; c < kClients; ++c) {
    for (std::size_t e = 0; e < std::size_t(counts_[c]); ++e) {
      std::vector<double> gradient(weights_);
      add_gradient(c * rows_ + e, gradient);
      for (std::size_t i = 0; i < weights_; ++i) {
        expected[c][i] += gradient[i] * gradient[i] / double(counts_[c]);
      }
    }
  }
  for (const bool precise : {true, false}) {
    for (const bool parts : {true, false}) {
      sum.upload(before);
      gpu::add_squares(g_, cohort(), operands(parts), {.sum = sum.data(), .stride = stride_},
                       precise, device_stream());
      const std::vector<float> found = sum.download();
      for (std::size_t c = 0; c < kClients; ++c) {
        std::vector<float> added;
        for (std::size_t i = 0; i < weights_; ++i) {
          added.push_back(found[c * stride_ + i] - before[c * stride_ + i]);
        }
        EXPECT_LE(relative_error(added, floats(expected[c])), 3 * tolerance(precise))
            << "client " << c << (precise ? " precise" : "") << (parts ? " in parts" : "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, ConvolutionKernels, testing::ValuesIn(layers()),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace fedep
