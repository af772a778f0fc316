// The networks against the same networks written plainly in double precision: values, and gradients
// by central differences. Then the laws every model keeps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "fedep/model/cnn.h"
#include "fedep/model/initial_weights.h"
#include "fedep/model/layer/elementwise.h"
#include "fedep/model/resnet18.h"
#include "fedep/model/test_model_laws.h"

namespace fedep {
namespace {

using Numbers = std::vector<double>;

// A batch of maps [n, height, width, channels].
struct Maps {
  std::size_t n, height, width, channels;
  Numbers values;

  double& at(std::size_t i, std::size_t y, std::size_t x, std::size_t c) {
    return values[((i * height + y) * width + x) * channels + c];
  }
};

Maps zeros(std::size_t n, std::size_t height, std::size_t width, std::size_t channels) {
  return {n, height, width, channels, Numbers(n * height * width * channels)};
}

// Pads such that the output has ceil(size / stride) rows, the smaller half before.
Maps plain_conv(Maps x, const double* w, std::size_t kernel, std::size_t out, int stride,
                bool same) {
  const auto extent = [&](std::size_t size) {
    return same ? (size + std::size_t(stride) - 1) / std::size_t(stride)
                : (size - kernel) / std::size_t(stride) + 1;
  };
  const auto before = [&](std::size_t size) {
    const int total = (int(extent(size)) - 1) * stride + int(kernel) - int(size);
    return same ? std::max(total, 0) / 2 : 0;
  };
  Maps y = zeros(x.n, extent(x.height), extent(x.width), out);
  for (std::size_t i = 0; i < y.n; ++i)
    for (std::size_t oy = 0; oy < y.height; ++oy)
      for (std::size_t ox = 0; ox < y.width; ++ox)
        for (std::size_t k = 0; k < kernel * kernel; ++k) {
          const int iy = int(oy) * stride + int(k / kernel) - before(x.height);
          const int ix = int(ox) * stride + int(k % kernel) - before(x.width);
          if (iy < 0 || ix < 0 || iy >= int(x.height) || ix >= int(x.width)) continue;
          for (std::size_t c = 0; c < x.channels; ++c) {
            const double v = x.at(i, std::size_t(iy), std::size_t(ix), c);
            const double* row = w + (k * x.channels + c) * out;
            double* sums = &y.at(i, oy, ox, 0);
            for (std::size_t o = 0; o < out; ++o) sums[o] += v * row[o];
          }
        }
  return y;
}

Maps plain_pool(Maps x, std::size_t window, std::size_t height, std::size_t width) {
  Maps y = zeros(x.n, height, width, x.channels);
  for (std::size_t i = 0; i < y.n; ++i)
    for (std::size_t oy = 0; oy < height; ++oy)
      for (std::size_t ox = 0; ox < width; ++ox)
        for (std::size_t c = 0; c < x.channels; ++c) {
          double best = -INFINITY;
          for (std::size_t iy = 2 * oy; iy < std::min(2 * oy + window, x.height); ++iy)
            for (std::size_t ix = 2 * ox; ix < std::min(2 * ox + window, x.width); ++ix)
              best = std::max(best, x.at(i, iy, ix, c));
          y.at(i, oy, ox, c) = best;
        }
  return y;
}

Maps relu(Maps x) {
  for (double& v : x.values) v = std::max(v, 0.0);
  return x;
}

Maps plus_bias(Maps x, const double* bias) {
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += bias[i % x.channels];
  return x;
}

Maps plain_norm(Maps x, NormKind kind) {
  const std::size_t half = x.channels / 2, area = x.height * x.width;
  const std::size_t together = kind == NormKind::per_position ? 1 : area;  // positions in a group
  for (std::size_t first = 0; first < x.n * area; first += together)
    for (std::size_t g = 0; g < 2; ++g) {
      Numbers group;
      for (std::size_t p = first; p < first + together; ++p)
        for (std::size_t c = 0; c < half; ++c)
          group.push_back(x.values[p * x.channels + g * half + c]);
      double mean = 0, variance = 0;
      for (const double v : group) mean += v / double(group.size());
      for (const double v : group) variance += (v - mean) * (v - mean) / double(group.size());
      for (std::size_t p = first; p < first + together; ++p)
        for (std::size_t c = 0; c < half; ++c) {
          double& v = x.values[p * x.channels + g * half + c];
          v = (v - mean) / std::sqrt(variance + 1e-3);
        }
    }
  return x;
}

// Finds tensors by name in a flat vector.
struct Weights {
  const Layout& layout;
  const Numbers& theta;

  const double* operator[](const std::string& name) const {
    std::size_t at = 0;
    for (const TensorShape& tensor : layout) {
      if (tensor.name == name) return theta.data() + at;
      at += tensor.size();
    }
    throw std::logic_error("no tensor " + name);
  }
};

// Factors of dropout, per example: pooled units, then hidden ones. Empty: none.
Numbers plain_cnn(const CnnShape& s, const Weights& w, const Batch& batch, const Numbers& factors) {
  Maps x{batch.size, s.height, s.width, s.channels, {batch.dense.begin(), batch.dense.end()}};
  x = relu(plus_bias(plain_conv(x, w["conv1.weight"], 3, s.first, 1, false), w["conv1.bias"]));
  x = relu(plus_bias(plain_conv(x, w["conv2.weight"], 3, s.second, 1, false), w["conv2.bias"]));
  x = plain_pool(x, 2, x.height / 2, x.width / 2);
  const std::size_t flat = x.height * x.width * x.channels, units = flat + s.hidden;
  x = {batch.size, 1, 1, flat, x.values};
  const auto drop = [&](Maps& maps, std::size_t first) {
    for (std::size_t i = 0; i < maps.values.size() && !factors.empty(); ++i) {
      maps.values[i] *= factors[i / maps.channels * units + first + i % maps.channels];
    }
  };
  drop(x, 0);
  x = relu(plus_bias(plain_conv(x, w["hidden.weight"], 1, s.hidden, 1, false), w["hidden.bias"]));
  drop(x, flat);
  return plus_bias(plain_conv(x, w["logits.weight"], 1, s.outputs, 1, false), w["logits.bias"])
      .values;
}

Numbers plain_resnet(const ResnetShape& s, const Weights& w, const Batch& batch) {
  Maps x{batch.size, s.height, s.width, s.channels, {batch.dense.begin(), batch.dense.end()}};
  x = plain_conv(x, w["initial_conv"], 7, s.group_channels[0], 2, true);
  x = plain_pool(x, 3, (x.height + 1) / 2, (x.width + 1) / 2);
  for (std::size_t group = 0; group < 4; ++group)
    for (std::size_t block = 0; block < s.blocks; ++block) {
      const std::string name =
          "group" + std::to_string(group + 1) + ".block" + std::to_string(block + 1);
      const std::size_t out = s.group_channels[group];
      const bool down = group > 0 && block == 0;
      Maps y =
          plain_conv(relu(plain_norm(x, s.norm)), w[name + ".conv1"], 3, out, down ? 2 : 1, true);
      y = plain_conv(relu(plain_norm(y, s.norm)), w[name + ".conv2"], 3, out, 1, true);
      if (down) x = plain_norm(plain_conv(x, w[name + ".shortcut"], 1, out, 2, true), s.norm);
      for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += x.values[i];
      x = y;
    }
  x = relu(plain_norm(x, s.norm));
  Maps mean = zeros(x.n, 1, 1, x.channels);
  const std::size_t area = x.height * x.width;
  for (std::size_t p = 0; p < x.n * area; ++p)
    for (std::size_t c = 0; c < x.channels; ++c)
      mean.values[p / area * x.channels + c] += x.values[p * x.channels + c] / double(area);
  return plus_bias(plain_conv(mean, w["logits.w"], 1, s.outputs, 1, false), w["logits.b"]).values;
}

double cross_entropy(const Numbers& logits, const Batch& batch, std::size_t outputs) {
  double sum = 0;
  for (std::size_t i = 0; i < batch.size; ++i) {
    double total = 0;
    for (std::size_t c = 0; c < outputs; ++c) total += std::exp(logits[i * outputs + c]);
    sum += std::log(total) - logits[i * outputs + std::size_t(batch.labels[i])];
  }
  return sum / double(batch.size);
}

// The model's logits, loss and gradient are those of `plain` (weights to logits, in double). The
// gradient is compared along a random direction within each tensor, or every third if there are
// many. In single precision a rectifier or a pool now and then decides otherwise than in double:
// that may show in a few tensors, in the third digit; the others agree to six.
void expect_same_function(Model& model, const std::vector<float>& theta, const Batch& batch,
                          const Mode& mode, const std::function<Numbers(const Numbers&)>& plain,
                          std::size_t every = 1) {
  const Numbers exact(theta.begin(), theta.end());
  const Numbers expected = plain(exact);
  std::vector<float> logits(expected.size());
  model.logits(theta, batch, mode, logits);
  for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(double(logits[i]), expected[i], 2e-5);

  const auto loss = [&](const Numbers& at) {
    return cross_entropy(plain(at), batch, model.outputs());
  };
  std::vector<float> gradient(theta.size(), 0.0f);
  EXPECT_NEAR(model.loss_gradient(theta, batch, mode, gradient), loss(exact), 1e-5);

  std::vector<double> errors;
  std::size_t begin = 0;
  for (std::size_t t = 0; t < model.layout().size(); begin += model.layout()[t++].size()) {
    if (t % every != 0) continue;
    const TensorShape& tensor = model.layout()[t];
    Stream stream({.seed = 11, .step = std::uint32_t(t)});
    const double h = 1e-6;
    Numbers up = exact, down = exact;
    double slope = 0, square = 0;
    for (std::size_t i = begin; i < begin + tensor.size(); ++i) {
      const double sign = stream.bits() % 2 == 0 ? 1.0 : -1.0;
      up[i] += sign * h;
      down[i] -= sign * h;
      slope += sign * double(gradient[i]);
      square += double(gradient[i]) * double(gradient[i]);
    }
    EXPECT_GT(square, 0) << tensor.name;
    // A random direction's slope is of the size of the gradient's norm.
    errors.push_back(std::fabs(slope - (loss(up) - loss(down)) / (2 * h)) / std::sqrt(square));
    EXPECT_LT(errors.back(), 5e-3) << tensor.name;
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 1e-5);
}

Batch images(std::size_t n, std::size_t size, std::size_t outputs) {
  Batch batch;
  batch.size = n;
  batch.dense.resize(n * size);
  fill_normal({.seed = 21}, batch.dense);
  for (std::size_t i = 0; i < n; ++i) batch.labels.push_back(std::int32_t((i * 7 + 1) % outputs));
  return batch;
}

// Initial weights and something on top: nothing is zero, not even the logits' weights.
std::vector<float> some_weights(const Model& model) {
  std::vector<float> theta(model.size()), noise(model.size());
  model.initialise(3, theta);
  fill_normal({.seed = 22}, noise);
  for (std::size_t i = 0; i < theta.size(); ++i) theta[i] += 0.02f * noise[i];
  return theta;
}

void check_cnn(const CnnShape& shape, std::size_t n, bool dropout) {
  const auto model = make_network_model(make_cnn(shape), TargetKind::label);
  const std::vector<float> theta = some_weights(*model);
  const Batch batch = images(n, shape.height * shape.width * shape.channels, shape.outputs);
  const Address address{.seed = 4, .purpose = Purpose::dropout, .step = 9};
  const std::size_t flat = (shape.height - 4) / 2 * ((shape.width - 4) / 2) * shape.second;
  ASSERT_EQ(flat % 16, 0u);
  ASSERT_EQ(shape.hidden % 16, 0u);
  Numbers factors;
  for (std::size_t i = 0; i < n && dropout; ++i) {
    std::vector<float> pooled(flat), hidden(shape.hidden);
    fill_dropout(address, 0.25, i * (flat + shape.hidden), pooled);
    fill_dropout(address, 0.5, i * (flat + shape.hidden) + flat, hidden);
    factors.insert(factors.end(), pooled.begin(), pooled.end());
    factors.insert(factors.end(), hidden.begin(), hidden.end());
  }
  const Mode mode{.dropout = dropout ? &address : nullptr};
  expect_same_function(*model, theta, batch, mode, [&](const Numbers& at) {
    return plain_cnn(shape, {model->layout(), at}, batch, factors);
  });
}

void check_resnet(const ResnetShape& shape, std::size_t n, std::size_t every = 1) {
  const auto model = make_network_model(make_resnet(shape), TargetKind::label);
  const std::vector<float> theta = some_weights(*model);
  const Batch batch = images(n, shape.height * shape.width * shape.channels, shape.outputs);
  expect_same_function(
      *model, theta, batch, {},
      [&](const Numbers& at) {
        return plain_resnet(shape, {model->layout(), at}, batch);
      },
      every);
}

const CnnShape kSmallCnn{
    .height = 12, .width = 10, .channels = 2, .outputs = 5, .first = 4, .second = 8, .hidden = 16};

TEST(Cnn, IsThePlainNetworkInDouble) {
  check_cnn(kSmallCnn, 3, false);
  check_cnn(kSmallCnn, 3, true);
}

TEST(Cnn, IsThePlainNetworkInDoubleAtFullSize) { check_cnn({}, 2, true); }

TEST(Resnet, IsThePlainNetworkInDouble) {
  for (const NormKind norm : {NormKind::per_position, NormKind::group_norm}) {
    check_resnet({.outputs = 7, .group_channels = {8, 16, 32, 64}, .norm = norm}, 4);
    check_resnet({.height = 32,
                  .width = 40,
                  .channels = 1,
                  .outputs = 3,
                  .group_channels = {4, 6, 8, 10},
                  .blocks = 1,
                  .norm = norm},
                 2);
  }
}

TEST(Resnet, IsThePlainNetworkInDoubleAtFullSize) {
  check_resnet({.norm = NormKind::per_position}, 1, 3);
}

TEST(Cnn, KeepsTheLawsOfModels) {
  const auto model = make_network_model(make_cnn(kSmallCnn), TargetKind::label);
  expect_model_laws(*model, some_weights(*model), images(4, 240, 5));
}

TEST(Resnet, KeepsTheLawsOfModels) {
  for (const NormKind norm : {NormKind::per_position, NormKind::group_norm}) {
    const auto model = make_network_model(
        make_resnet({.outputs = 7, .group_channels = {8, 16, 32, 64}, .norm = norm}),
        TargetKind::label);
    expect_model_laws(*model, some_weights(*model), images(4, 24 * 24 * 3, 7));
  }
}

TEST(InitialWeights, AreOthersInEveryTensorAndForEverySeed) {
  const auto weights = [](std::uint64_t seed, std::size_t tensor) {
    std::vector<float> out(20);
    fill_initial_weights(seed, tensor, 0.5, out);
    return out;
  };
  EXPECT_EQ(weights(1, 0), weights(1, 0));
  EXPECT_NE(weights(1, 0), weights(1, 1));
  EXPECT_NE(weights(1, 0), weights(2, 0));
}

// The same image all over: only masks tell its places apart, in the first chunk and in the next.
TEST(Cnn, HasADropoutMaskForEveryPlaceInTheBatch) {
  const auto model = make_network_model(make_cnn(kSmallCnn), TargetKind::label);
  const std::vector<float> theta = some_weights(*model);
  Batch batch = images(70, 240, 5);
  for (std::size_t i = 1; i < 70; ++i) {
    std::copy_n(batch.dense.begin(), 240, batch.dense.begin() + std::ptrdiff_t(240 * i));
  }
  const Address address{.seed = 1, .purpose = Purpose::dropout};
  std::vector<float> logits(70 * 5);
  model->logits(theta, batch, {.dropout = &address}, logits);
  const auto first = logits.begin();
  for (std::size_t i = 1; i < 70; ++i) {
    const auto here = first + std::ptrdiff_t(5 * i);
    EXPECT_FALSE(std::equal(first, first + 5, here)) << i;
  }
}

TEST(Cnn, DropoutBelongsToTheAddressAndThePlaceInTheBatch) {
  const auto model = make_network_model(make_cnn(kSmallCnn), TargetKind::label);
  const std::vector<float> theta = some_weights(*model);
  const Batch batch = images(40, 240, 5);  // more than are computed at once
  Batch first = images(40, 240, 5);
  first.size = 35;
  first.dense.resize(35 * 240);
  const Address address{.seed = 1, .purpose = Purpose::dropout},
      other{.seed = 2, .purpose = Purpose::dropout};
  std::vector<float> a(200), b(200), c(200), d(175), plain(200);
  model->logits(theta, batch, {.dropout = &address}, a);
  model->logits(theta, batch, {.dropout = &other}, b);
  model->logits(theta, batch, {.dropout = &address}, c);
  model->logits(theta, first, {.dropout = &address}, d);
  model->logits(theta, batch, {}, plain);
  EXPECT_EQ(a, c);
  EXPECT_NE(a, b);
  EXPECT_NE(a, plain);
  for (std::size_t i = 0; i < d.size(); ++i) EXPECT_NEAR(double(a[i]), double(d[i]), 1e-5);
}

}  // namespace
}  // namespace fedep
