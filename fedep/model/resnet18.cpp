#include "fedep/model/resnet18.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "fedep/model/blas.h"
#include "fedep/model/image_shape.h"
#include "fedep/model/initial_weights.h"
#include "fedep/model/layer/elementwise.h"
#include "fedep/model/layer/norm.h"
#include "fedep/model/layer/pool.h"
#include "fedep/model/layer/residual_block.h"

namespace fedep {
namespace {

class Resnet final : public Network {
 public:
  explicit Resnet(const ResnetShape& s)
      : shape_(s),
        stem_(same_convolution(s.height, s.width, s.channels, s.group_channels[0], 7, 2)),
        pool_(same_max_pool(stem_.shape().out_height, stem_.shape().out_width, s.group_channels[0],
                            3, 2)),
        blocks_(make_blocks()),
        final_norm_(s.norm, blocks_.back().last_shape().positions(), s.group_channels[3]) {
    const ConvolutionShape& stem = stem_.shape();
    at_stem_ = size_of(layout_);
    layout_.push_back({"initial_conv",
                       {std::int64_t(stem.kernel), std::int64_t(stem.kernel), std::int64_t(stem.in),
                        std::int64_t(stem.out)}});
    at_bias_ = size_of(layout_);
    layout_.push_back({"logits.b", {std::int64_t(s.outputs)}});
    at_weight_ = size_of(layout_);
    layout_.push_back({"logits.w", {std::int64_t(features()), std::int64_t(s.outputs)}});
  }

  const Layout& layout() const override { return layout_; }
  std::size_t input_size() const override { return stem_.shape().input_size(); }
  std::size_t outputs() const override { return shape_.outputs; }

  std::vector<Range> live() const override {
    std::vector<Range> ranges;
    for (const ResidualBlock& block : blocks_) block.add_live(ranges);
    for (const Range& range : stem_.live()) {
      ranges.push_back({at_stem_ + range.begin, at_stem_ + range.end});
    }
    ranges.push_back({at_bias_, size_of(layout_)});
    std::vector<Range> merged;
    for (const Range& range : ranges) {
      if (!merged.empty() && merged.back().end == range.begin) {
        merged.back().end = range.end;
      } else {
        merged.push_back(range);
      }
    }
    return merged;
  }

  // Convolutions at scale 1 / sqrt(fan-in), dead taps too; logits zero.
  void initialise(std::uint64_t seed, std::span<float> theta) const override {
    std::size_t at = 0;
    for (std::size_t i = 0; i < layout_.size(); ++i) {
      const TensorShape& tensor = layout_[i];
      const double fan_in = double(tensor.size()) / double(tensor.shape.back());
      const double scale = tensor.shape.size() == 4 ? 1.0 / std::sqrt(fan_in) : 0.0;
      fill_initial_weights(seed, i, scale, theta.subspan(at, tensor.size()));
      at += tensor.size();
    }
  }

  void forward(const float* theta, std::size_t n, const float* images, const Mode&, std::size_t,
               float* logits) override {
    reserve(n);
    stem_.forward(n, images, theta + at_stem_, stem_out_.data());
    pool_.forward(n, stem_out_.data(), pooled_.data());
    const float* x = pooled_.data();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      inputs_[i] = x;
      x = blocks_[i].forward(theta, n, x);
    }
    final_norm_.forward(n, x, norm_out_.data(), relu_.data());
    average_positions(n);
    multiply(matrix(mean_.data(), n, features()), matrix(theta + at_weight_, features(), outputs()),
             logits, outputs());
    add_bias(theta + at_bias_, n, outputs(), logits);
  }

  void backward(const float* theta, std::size_t n, const float* images, const float* delta,
                const GradientSink& sink) override {
    sink.dense(n, features(), outputs(), mean_.data(), delta, at_weight_);
    sink.bias(n, 1, outputs(), delta, at_bias_);
    multiply(matrix(delta, n, outputs()),
             transposed(matrix(theta + at_weight_, features(), outputs())), d_mean_.data(),
             features());
    spread_positions(n);
    std::fill_n(d_.data(), n * last_size(), 0.0f);
    final_norm_.add_backward(n, norm_out_.data(), true, scratch_.data(), d_.data());
    for (std::size_t i = blocks_.size(); i-- > 0;) {
      blocks_[i].backward(theta, n, inputs_[i], sink, d_, scratch_);
    }
    pool_.backward(n, d_.data(), scratch_.data());
    sink.convolution(stem_, n, images, scratch_.data(), at_stem_);
  }

 private:
  std::vector<ResidualBlock> make_blocks() {
    std::vector<ResidualBlock> blocks;
    const ConvolutionShape pooled =
        same_convolution(stem_.shape().out_height, stem_.shape().out_width, 1, 1, 3, 2);
    std::size_t height = pooled.out_height, width = pooled.out_width;
    std::size_t in = shape_.group_channels[0];
    for (std::size_t group = 0; group < shape_.group_channels.size(); ++group) {
      for (std::size_t block = 0; block < shape_.blocks; ++block) {
        const std::string name =
            "group" + std::to_string(group + 1) + ".block" + std::to_string(block + 1);
        blocks.emplace_back(height, width, in, shape_.group_channels[group],
                            group > 0 && block == 0 ? 2 : 1, shape_.norm, name, layout_);
        const ConvolutionShape& last = blocks.back().last_shape();
        height = last.out_height;
        width = last.out_width;
        in = last.out;
      }
    }
    return blocks;
  }

  std::size_t features() const { return shape_.group_channels[3]; }
  std::size_t last_size() const { return blocks_.back().last_shape().output_size(); }

  void average_positions(std::size_t n) {
    const std::size_t positions = last_size() / features();
    if (positions == 1) {
      std::copy_n(relu_.data(), n * features(), mean_.data());
      return;
    }
    const float share = 1.0f / float(positions);
    for (std::size_t i = 0; i < n; ++i) {
      float* mean = mean_.data() + i * features();
      bias_gradient(relu_.data() + i * last_size(), positions, features(), 0.0f, mean);
      for (std::size_t c = 0; c < features(); ++c) mean[c] *= share;
    }
  }

  // The transpose of average_positions(), into scratch_.
  void spread_positions(std::size_t n) {
    const std::size_t positions = last_size() / features();
    const float share = 1.0f / float(positions);
    for (std::size_t row = 0; row < n * positions; ++row) {
      const float* d_mean = d_mean_.data() + row / positions * features();
      float* d = scratch_.data() + row * features();
      for (std::size_t c = 0; c < features(); ++c) d[c] = d_mean[c] * share;
    }
  }

  void reserve(std::size_t n) {
    if (n <= capacity_) return;
    capacity_ = n;
    std::size_t largest = stem_.shape().output_size();
    for (ResidualBlock& block : blocks_) {
      block.reserve(n);
      largest =
          std::max({largest, block.first_shape().input_size(), block.last_shape().output_size()});
    }
    stem_out_.resize(n * stem_.shape().output_size());
    pooled_.resize(n * pool_.output_size());
    for (std::vector<float>* maps : {&norm_out_, &relu_}) maps->resize(n * last_size());
    for (std::vector<float>* rows : {&mean_, &d_mean_}) rows->resize(n * features());
    for (std::vector<float>* maps : {&d_, &scratch_}) maps->resize(n * largest);
    inputs_.resize(blocks_.size());
  }

  ResnetShape shape_;
  Layout layout_;  // filled in the flat vector's order: blocks, initial_conv, logits
  Convolution stem_;
  MaxPool pool_;
  std::vector<ResidualBlock> blocks_;
  Norm final_norm_;
  std::size_t at_stem_ = 0, at_bias_ = 0, at_weight_ = 0;  // in the flat vector

  std::size_t capacity_ = 0;
  std::vector<const float*> inputs_;  // of the blocks
  std::vector<float> stem_out_, pooled_, norm_out_, relu_, mean_;
  std::vector<float> d_mean_, d_, scratch_;
};

ResnetShape shape_for(std::string_view name, const ResnetChannels& group_channels,
                      const DatasetInfo& data) {
  const auto [height, width, channels] = image_shape(name, data, 1);
  return {.height = height,
          .width = width,
          .channels = channels,
          .outputs = data.outputs,
          .group_channels = group_channels};
}

std::unique_ptr<Model> model_of(ResnetShape shape, const ModelSettings& settings,
                                TargetKind target) {
  shape.norm = settings.norm;
  return make_network_model(make_resnet(shape), {target, settings.noise});
}

StepWork work_of(const ResnetShape& shape) {
  const ResnetChannels& channels = shape.group_channels;
  StepWork work;
  const ConvolutionShape stem =
      same_convolution(shape.height, shape.width, shape.channels, channels[0], 7, 2);
  work.add_convolution(stem);
  const ConvolutionShape pool = same_convolution(stem.out_height, stem.out_width, 1, 1, 3, 2);
  work.add_pool(stem.output_size(), pool.positions() * channels[0]);
  std::size_t height = pool.out_height, width = pool.out_width, in = channels[0];
  for (std::size_t group = 0; group < channels.size(); ++group) {
    for (std::size_t block = 0; block < shape.blocks; ++block) {
      const std::size_t stride = group > 0 && block == 0 ? 2 : 1, out = channels[group];
      const ConvolutionShape first = same_convolution(height, width, in, out, 3, stride);
      work.add_norm(first.input_size());
      work.add_convolution(first);
      work.add_norm(first.output_size());
      work.add_convolution(same_convolution(first.out_height, first.out_width, out, out, 3, 1));
      if (stride != 1 || in != out) {
        work.add_convolution(same_convolution(height, width, in, out, 1, stride));
        work.add_norm(first.output_size());
      }
      height = first.out_height;
      width = first.out_width;
      in = out;
    }
  }
  work.add_norm(height * width * in);
  work.add_dense(in, shape.outputs);
  return work;
}

}  // namespace

std::unique_ptr<Network> make_resnet(const ResnetShape& shape) {
  return std::make_unique<Resnet>(shape);
}

std::unique_ptr<Model> resnet18_model(const ModelSettings& settings, const DatasetInfo& data) {
  return model_of(shape_for("resnet18", kResnet18Channels, data), settings, data.target);
}

std::unique_ptr<Model> resnet_small_model(const ModelSettings& settings, const DatasetInfo& data) {
  return model_of(shape_for("resnet_small", kResnetSmallChannels, data), settings, data.target);
}

std::optional<StepWork> resnet18_work(const DatasetInfo& data) {
  return work_of(shape_for("resnet18", kResnet18Channels, data));
}

std::optional<StepWork> resnet_small_work(const DatasetInfo& data) {
  return work_of(shape_for("resnet_small", kResnetSmallChannels, data));
}

}  // namespace fedep
