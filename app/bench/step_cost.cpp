#include "app/bench/step_cost.h"

#include <array>
#include <memory>

#include "fedep/model/cnn.h"
#include "fedep/model/layer/convolution.h"
#include "fedep/model/registry.h"

namespace fedep {
namespace {

// Positions that a kernel of this size meets along one axis, over all outputs.
std::size_t pairs(std::size_t size, std::size_t outputs, std::size_t kernel, std::size_t stride,
                  std::size_t pad) {
  std::size_t count = 0;
  for (std::size_t out = 0; out < outputs; ++out) {
    for (std::size_t tap = 0; tap < kernel; ++tap) {
      const std::size_t at = out * stride + tap;
      count += at >= pad && at - pad < size;
    }
  }
  return count;
}

void add_convolution(const ConvolutionShape& s, StepCost& cost) {
  cost.multiply_adds += pairs(s.height, s.out_height, s.kernel, s.stride, s.pad_top) *
                        pairs(s.width, s.out_width, s.kernel, s.stride, s.pad_left) * s.in * s.out;
  // Forward, derivative of the input, derivative of the weights: each touches both sides.
  cost.activations += 3 * (s.input_size() + s.output_size());
}

void add_dense(std::size_t in, std::size_t out, StepCost& cost) {
  cost.multiply_adds += in * out;
  cost.activations += 3 * (in + out);
}

// Read and written forward; read twice and written backward.
void add_norm(std::size_t size, StepCost& cost) { cost.activations += 5 * size; }

void add_resnet(const std::array<std::size_t, 4>& channels, const DatasetInfo& data,
                StepCost& cost) {
  const auto extent = [&](std::size_t i) { return std::size_t(data.features[i]); };
  const ConvolutionShape stem =
      same_convolution(extent(0), extent(1), extent(2), channels[0], 7, 2);
  add_convolution(stem, cost);
  const ConvolutionShape pool = same_convolution(stem.out_height, stem.out_width, 1, 1, 3, 2);
  cost.activations += 2 * (stem.output_size() + pool.positions() * channels[0]);
  std::size_t height = pool.out_height, width = pool.out_width, in = channels[0];
  for (std::size_t group = 0; group < channels.size(); ++group) {
    for (std::size_t block = 0; block < 2; ++block) {
      const std::size_t stride = group > 0 && block == 0 ? 2 : 1, out = channels[group];
      const ConvolutionShape first = same_convolution(height, width, in, out, 3, stride);
      add_norm(first.input_size(), cost);
      add_convolution(first, cost);
      add_norm(first.output_size(), cost);
      add_convolution(same_convolution(first.out_height, first.out_width, out, out, 3, 1), cost);
      if (stride != 1 || in != out) {
        add_convolution(same_convolution(height, width, in, out, 1, stride), cost);
        add_norm(first.output_size(), cost);
      }
      height = first.out_height;
      width = first.out_width;
      in = out;
    }
  }
  add_norm(height * width * in, cost);
  add_dense(in, data.outputs, cost);
}

void add_cnn(const DatasetInfo& data, StepCost& cost) {
  const CnnShape s{.height = std::size_t(data.features[0]),
                   .width = std::size_t(data.features[1]),
                   .channels = std::size_t(data.features[2]),
                   .outputs = data.outputs};
  add_convolution(valid_convolution(s.height, s.width, s.channels, s.first, 3, 1), cost);
  add_convolution(valid_convolution(s.height - 2, s.width - 2, s.first, s.second, 3, 1), cost);
  const std::size_t pooled = (s.height - 4) / 2 * ((s.width - 4) / 2) * s.second;
  cost.activations += 2 * ((s.height - 4) * (s.width - 4) * s.second + pooled);
  add_dense(pooled, s.hidden, cost);
  add_dense(s.hidden, s.outputs, cost);
}

}  // namespace

StepCost step_cost(const ModelSettings& settings, const DatasetInfo& data) {
  StepCost cost;
  const std::unique_ptr<Model> model = make_model(settings, data);
  cost.weights = model->size();
  for (const Range& range : model->live()) cost.live_weights += range.end - range.begin;
  cost.counted = true;
  if (settings.name == "resnet18") {
    add_resnet({64, 128, 256, 512}, data, cost);
  } else if (settings.name == "resnet_small") {
    add_resnet({8, 16, 32, 64}, data, cost);
  } else if (settings.name == "cnn") {
    add_cnn(data, cost);
  } else if (settings.name == "linear" && !data.sparse) {
    add_dense(data.feature_count(), data.outputs, cost);
  } else {
    cost.counted = false;
  }
  return cost;
}

}  // namespace fedep
