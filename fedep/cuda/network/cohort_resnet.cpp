#include "fedep/cuda/network/cohort_resnet.h"

#include <algorithm>

#include "fedep/cuda/network/cohort_network.h"
#include "fedep/cuda/network/layer_kernels.h"
#include "fedep/model/resnet18.h"

namespace fedep {
namespace {

// A norm: its output, which its derivative needs, and after a rectifier, as a convolution takes it.
struct NormLayer {
  gpu::NormShape shape;
  bool round = false;  // what is rectified, to TF32
  DeviceArray<float> y, rectified, inverse_std;

  NormLayer(NormKind kind, int positions, int channels, std::size_t n, bool with_rectifier,
            bool precise)
      : round(!precise) {
    shape.positions = positions;
    shape.channels = channels;
    shape.per_position = kind == NormKind::per_position;
    y = zeros(n * std::size_t(positions * channels));
    if (with_rectifier) rectified = zeros(y.size());
    inverse_std = zeros(n * 2 * std::size_t(shape.per_position ? positions : 1));
  }
  void forward(int n, const float* x) {
    gpu::normalise(shape, n, x, y.data(), rectified.data(), round, inverse_std.data(),
                   device_stream());
  }
  void backward(int n, bool through_rectifier, const float* dy, const float* base,
                float* dx) const {
    gpu::normalise_backward(shape, n, y.data(), inverse_std.data(), through_rectifier, dy, base, dx,
                            device_stream());
  }
};

struct ConvLayer {
  gpu::Geometry g;
  std::size_t offset = 0;  // of its weights

  std::size_t output_size() const { return std::size_t(g.output_positions() * g.out); }
  std::size_t input_size() const { return std::size_t(g.input_positions() * g.in); }
};

// Room that passes over all blocks take turns in.
struct Scratch {
  DeviceArray<float> first, second;
  DeviceArray<float> partial;  // of weights' gradients, whose kernels run one after another
};

class CohortBlock {
 public:
  CohortBlock(std::size_t height, std::size_t width, std::size_t in, std::size_t out,
              std::size_t stride, NormKind norm, bool precise, std::size_t n, std::size_t& offset)
      : conv1_{geometry_of(same_convolution(height, width, in, out, 3, stride)), 0},
        conv2_{geometry_of(same_convolution(std::size_t(conv1_.g.out_height),
                                            std::size_t(conv1_.g.out_width), out, out, 3, 1)),
               0},
        norm1_(norm, int(height * width), int(in), n, true, precise),
        norm2_(norm, conv1_.g.output_positions(), int(out), n, true, precise),
        out_(zeros(n * conv2_.output_size())),
        d_middle_(zeros(n * conv2_.output_size())),
        d_in_(zeros(n * conv1_.input_size())) {
    conv1_.offset = offset;
    offset += 9 * in * out;
    conv2_.offset = offset;
    offset += 9 * out * out;
    if (in == out && stride == 1) return;
    shortcut_.push_back({geometry_of(same_convolution(height, width, in, out, 1, stride)), offset});
    offset += in * out;
    shortcut_norm_.emplace_back(norm, conv1_.g.output_positions(), int(out), n, false, precise);
    d_shortcut_ = zeros(n * conv2_.output_size());
  }

  const gpu::Geometry& last() const { return conv2_.g; }
  std::size_t largest() const { return std::max(conv1_.input_size(), conv2_.output_size()); }
  // Weights of its largest convolution whose gradient may be summed in parts.
  std::size_t split_weights() const {
    std::size_t most = 0;
    for (const gpu::Geometry* g : {&conv1_.g, &conv2_.g}) {
      if (gpu::gradient_splits(*g, 1) > 1)
        most = std::max(most, std::size_t(g->weight_rows * g->out));
    }
    return most;
  }

  const float* forward(const gpu::CohortShape& cohort, const CohortTheta& weights, const float* x,
                       bool precise, Scratch& scratch) {
    const int n = cohort.clients * cohort.rows;
    const CudaStream stream = device_stream();
    gpu::Forward f;
    f.stride = weights.stride;
    const float* carried = x;
    if (!shortcut_.empty()) {
      f.x = x;
      f.weights = weights.theta + shortcut_[0].offset;
      f.y = scratch.second.data();
      gpu::convolve(shortcut_[0].g, cohort, f, precise, stream);
      shortcut_norm_[0].forward(n, scratch.second.data());
      carried = shortcut_norm_[0].y.data();
    }
    norm1_.forward(n, x);
    f.x = norm1_.rectified.data();
    f.x_is_tf32 = true;
    f.weights = weights.theta + conv1_.offset;
    f.y = scratch.first.data();
    gpu::convolve(conv1_.g, cohort, f, precise, stream);
    norm2_.forward(n, scratch.first.data());
    f.x = norm2_.rectified.data();
    f.weights = weights.theta + conv2_.offset;
    f.add = carried;
    f.y = out_.data();
    gpu::convolve(conv2_.g, cohort, f, precise, stream);
    return out_.data();
  }

  // `d` is the derivative of the output; gives back that of x.
  const float* backward(const gpu::CohortShape& cohort, const CohortTheta& weights, const float* x,
                        const float* d, const CohortSink& sink, bool precise, Scratch& scratch) {
    const int n = cohort.clients * cohort.rows;
    const CudaStream stream = device_stream();
    gpu::InputGradient b;
    b.stride = weights.stride;
    b.dy = d;
    b.weights = weights.theta + conv2_.offset;
    b.dx = scratch.first.data();
    gpu::input_gradient(conv2_.g, cohort, b, precise, stream);
    sink.weights(conv2_.g, cohort, operands(norm2_.rectified.data(), true, d, scratch),
                 conv2_.offset);
    norm2_.backward(n, true, scratch.first.data(), nullptr, d_middle_.data());
    b.dy = d_middle_.data();
    b.weights = weights.theta + conv1_.offset;
    gpu::input_gradient(conv1_.g, cohort, b, precise, stream);
    sink.weights(conv1_.g, cohort,
                 operands(norm1_.rectified.data(), true, d_middle_.data(), scratch), conv1_.offset);
    const float* carried = d;
    if (!shortcut_.empty()) {
      shortcut_norm_[0].backward(n, false, d, nullptr, d_shortcut_.data());
      b.dy = d_shortcut_.data();
      b.weights = weights.theta + shortcut_[0].offset;
      b.dx = scratch.second.data();
      gpu::input_gradient(shortcut_[0].g, cohort, b, precise, stream);
      sink.weights(shortcut_[0].g, cohort, operands(x, false, d_shortcut_.data(), scratch),
                   shortcut_[0].offset);
      carried = scratch.second.data();
    }
    norm1_.backward(n, true, scratch.first.data(), carried, d_in_.data());
    return d_in_.data();
  }

 private:
  static gpu::WeightGradient operands(const float* x, bool is_tf32, const float* dy,
                                      Scratch& scratch) {
    gpu::WeightGradient f;
    f.partial = scratch.partial.data();
    f.x = x;
    f.x_is_tf32 = is_tf32;
    f.dy = dy;
    return f;
  }

  ConvLayer conv1_, conv2_;
  NormLayer norm1_, norm2_;
  std::vector<ConvLayer> shortcut_;  // none or one
  std::vector<NormLayer> shortcut_norm_;
  DeviceArray<float> out_, d_middle_, d_in_, d_shortcut_;
};

class CohortResnet final : public CohortNetwork {
 public:
  CohortResnet(const ResnetChannels& channels, NormKind norm, const DatasetInfo& data,
               const CohortCapacity& capacity)
      : precise_(capacity.precision == ProductPrecision::float32),
        outputs_(data.outputs),
        features_(data.feature_count()) {
    const std::size_t n = capacity.clients * capacity.rows;
    const auto extent = [&](std::size_t i) { return std::size_t(data.features.at(i)); };
    stem_.g = geometry_of(same_convolution(extent(0), extent(1), extent(2), channels[0], 7, 2));
    patches_layer_ = gpu::make_patches(stem_.g);
    check_extent(patches_layer_, capacity.rows);  // all other maps are smaller
    const auto pooled = same_convolution(std::size_t(stem_.g.out_height),
                                         std::size_t(stem_.g.out_width), 1, 1, 3, 2);
    pool_ = {stem_.g.out_height,
             stem_.g.out_width,
             stem_.g.out,
             3,
             2,
             int(pooled.out_height),
             int(pooled.out_width),
             int(pooled.pad_top),
             int(pooled.pad_left)};
    std::size_t height = pooled.out_height, width = pooled.out_width, in = channels[0], largest = 0,
                split = 0;
    for (std::size_t group = 0; group < channels.size(); ++group) {
      for (std::size_t block = 0; block < 2; ++block) {
        const std::size_t stride = group > 0 && block == 0 ? 2 : 1;
        blocks_.emplace_back(height, width, in, channels[group], stride, norm, precise_, n, size_);
        height = std::size_t(blocks_.back().last().out_height);
        width = std::size_t(blocks_.back().last().out_width);
        in = channels[group];
        largest = std::max(largest, blocks_.back().largest());
        split = std::max(split, blocks_.back().split_weights());
      }
    }
    stem_.offset = size_;
    size_ += 49 * extent(2) * channels[0];
    at_bias_ = size_;
    size_ += outputs_;
    at_weight_ = size_;
    size_ += in * outputs_;
    final_norm_.emplace_back(norm, int(height * width), int(in), n, false, precise_);
    logits_layer_ = gpu::make_dense(int(in), int(outputs_));
    const std::size_t stem_size = stem_.output_size();
    stem_out_ = zeros(n * stem_size);
    d_stem_ = zeros(n * stem_size);
    const std::size_t pooled_size =
        std::size_t(pool_.out_height * pool_.out_width * pool_.channels);
    pooled_ = zeros(n * pooled_size);
    source_ = DeviceArray<std::uint8_t>(n * pooled_size);
    source_.zero();
    mean_ = zeros(n * in);
    d_mean_ = zeros(n * in);
    d_last_ = zeros(n * std::size_t(height * width) * in);
    scratch_.first = zeros(n * largest);
    scratch_.second = zeros(n * largest);
    patches_ = zeros(n * std::size_t(stem_.g.output_positions() * patches_layer_.in));
    split = std::max(split, std::size_t(patches_layer_.weight_rows * patches_layer_.out));
    scratch_.partial = zeros(gpu::kMostSplits * capacity.clients * split);
  }

  std::size_t size() const override { return size_; }
  std::size_t features() const override { return features_; }
  std::size_t outputs() const override { return outputs_; }

  void forward(const gpu::CohortShape& cohort, const CohortTheta& weights, const float* images,
               const CohortDropout&, float* logits) override {
    const int n = cohort.clients * cohort.rows;
    const CudaStream stream = device_stream();
    gpu::Forward f;
    f.stride = weights.stride;
    gpu::copy_out_patches(stem_.g, n, images, patches_.data(), stream);
    f.x = patches_.data();
    f.weights = weights.theta + stem_.offset;
    f.y = stem_out_.data();
    gpu::convolve(patches_layer_, cohort, f, precise_, stream);
    gpu::max_pool(pool_, n, stem_out_.data(), pooled_.data(), source_.data(), stream);
    const float* x = pooled_.data();
    inputs_.clear();
    for (CohortBlock& block : blocks_) {
      inputs_.push_back(x);
      x = block.forward(cohort, weights, x, precise_, scratch_);
    }
    NormLayer& norm = final_norm_[0];
    norm.forward(n, x);
    gpu::mean_rectified(norm.shape.positions, norm.shape.channels, n, norm.y.data(), mean_.data(),
                        stream);
    f.x = mean_.data();
    f.weights = weights.theta + at_weight_;
    f.bias = weights.theta + at_bias_;
    f.y = logits;
    gpu::convolve(logits_layer_, cohort, f, precise_, stream);
  }

  void backward(const gpu::CohortShape& cohort, const CohortTheta& weights, const float*,
                const float* delta, const CohortSink& sink) override {
    const int n = cohort.clients * cohort.rows;
    const CudaStream stream = device_stream();
    gpu::InputGradient b;
    b.stride = weights.stride;
    b.dy = delta;
    b.weights = weights.theta + at_weight_;
    b.dx = d_mean_.data();
    gpu::input_gradient(logits_layer_, cohort, b, precise_, stream);
    gpu::WeightGradient w;
    w.x = mean_.data();
    w.dy = delta;
    sink.weights(logits_layer_, cohort, w, at_weight_);
    sink.bias(1, int(outputs_), cohort, delta, at_bias_);
    const NormLayer& norm = final_norm_[0];
    gpu::spread_mean(norm.shape.positions, norm.shape.channels, n, d_mean_.data(),
                     scratch_.first.data(), stream);
    norm.backward(n, true, scratch_.first.data(), nullptr, d_last_.data());
    const float* d = d_last_.data();
    for (std::size_t i = blocks_.size(); i-- > 0;) {
      d = blocks_[i].backward(cohort, weights, inputs_[i], d, sink, precise_, scratch_);
    }
    gpu::max_pool_backward(pool_, n, d, source_.data(), d_stem_.data(), stream);
    w.x = patches_.data();
    w.dy = d_stem_.data();
    w.partial = scratch_.partial.data();
    sink.weights(patches_layer_, cohort, w, stem_.offset);
  }

 private:
  bool precise_;
  std::size_t outputs_, features_, size_ = 0, at_bias_ = 0, at_weight_ = 0;
  ConvLayer stem_;
  gpu::PoolShape pool_;
  std::vector<CohortBlock> blocks_;
  std::vector<NormLayer> final_norm_;  // one
  gpu::Geometry patches_layer_;        // the stem, on rows
  gpu::Geometry logits_layer_;
  std::vector<const float*> inputs_;  // of the blocks, in the last forward pass
  Scratch scratch_;
  DeviceArray<float> patches_, stem_out_, d_stem_, pooled_, mean_, d_mean_, d_last_;
  DeviceArray<std::uint8_t> source_;
};

}  // namespace

std::unique_ptr<CohortModel> make_cohort_resnet18(const ModelSettings& settings,
                                                  const DatasetInfo& data,
                                                  const CohortCapacity& capacity) {
  return make_network_cohort(
      std::make_unique<CohortResnet>(kResnet18Channels, settings.norm, data, capacity), capacity);
}

std::unique_ptr<CohortModel> make_cohort_resnet_small(const ModelSettings& settings,
                                                      const DatasetInfo& data,
                                                      const CohortCapacity& capacity) {
  return make_network_cohort(
      std::make_unique<CohortResnet>(kResnetSmallChannels, settings.norm, data, capacity),
      capacity);
}

}  // namespace fedep
