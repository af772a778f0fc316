#include "fedep/cuda/network/cohort_torchscript.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <torch/script.h>
#include <torch/torch.h>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/device/step_graph.h"
#include "fedep/cuda/device/torch_on_gpu.h"
#include "fedep/cuda/network/cohort_network.h"
#include "fedep/cuda/network/gradient_kernels.h"
#include "fedep/cuda/network/layer_kernels.h"
#include "fedep/message/error.h"
#include "fedep/model/torchscript.h"

namespace fedep {
namespace {

using torch::Tensor;

constexpr std::size_t kTrialRows = 64;  // at most, of the batch that tries a module out

// Of several lines, TorchScript's interpreter has the reason in its last.
std::string reason_in(std::string_view text) {
  constexpr std::string_view kMark = "RuntimeError: ";
  if (const std::size_t at = text.rfind(kMark); at != text.npos) {
    text.remove_prefix(at + kMark.size());
  }
  return std::string(text.substr(0, text.find('\n')));
}

class CohortTorchscript final : public CohortModel {
 public:
  CohortTorchscript(const ModelSettings& settings, const DatasetInfo& data,
                    const CohortCapacity& capacity)
      : data_(data),
        path_(settings.path),
        capacity_{capacity.clients, std::max<std::size_t>(capacity.rows, 2), capacity.precision},
        torch_(capacity.precision == ProductPrecision::tf32),
        logits_(capacity_.rows * data.outputs),
        drawn_(capacity_.rows),
        one_(1) {
    drawn_.zero();
    const std::unique_ptr<Model> host = make_torchscript(settings, data);  // with all its checks
    layout_ = host->layout();
    work([&] {
      module_ = torch::jit::load(path_, device());
      for (const auto& parameter : module_.named_parameters()) {
        parameters_.push_back(parameter.value);
        parameters_.back().set_requires_grad(true);
      }
      module_.eval();
    });
    try {
      try_out(*host);
    } catch (const RunError& error) {
      throw InputError(error.what());
    }
  }

  std::size_t size() const override { return size_of(layout_); }
  std::size_t features() const override { return data_.feature_count(); }
  std::size_t outputs() const override { return data_.outputs; }

  void train_step(const CohortBatch& batch, const CohortChain& chain, double* loss) override {
    const auto scale =
        chain.loss_times_batch ? gpu::DeltaScale::batch_sum : gpu::DeltaScale::batch_mean;
    check(batch);
    work([&] {
      for (std::size_t c = 0; c < batch.clients; ++c) {
        use_weights(chain.theta + c * chain.stride);
        const Tensor out = forward(examples(batch, c), batch.rows, row(batch.dropout, c), 0);
        const std::vector<Tensor> gradients =
            backward(out, {1, int(batch.rows), batch.counts + c}, batch.labels + c * batch.rows,
                     scale, loss + c);
        for_each_tensor(gradients, [&](const float* gradient, std::size_t begin, std::size_t n) {
          gpu::update_from_gradient(gradient, n, int(c), batch.counts + c, update_of(chain, begin),
                                    device_stream());
        });
      }
    });
  }

  void logits(const CohortBatch& batch, const float* theta, std::size_t stride,
              float* out) override {
    check(batch);
    work([&] {
      const torch::NoGradGuard guard;
      for (std::size_t c = 0; c < batch.clients; ++c) {
        use_weights(theta + c * stride);
        logits_of(out + c * batch.rows * outputs(), batch.rows)
            .copy_(forward(examples(batch, c), batch.rows, row(batch.dropout, c), 0));
      }
    });
  }

  // One example at a time; dropout masks are then those of a batch of one, addressed as on a CPU.
  void add_squared_gradients(const CohortBatch& batch, const float* theta, std::size_t stride,
                             const StreamAddress* draws, const StreamAddress* second_dropout,
                             const CohortSquares& squares) override {
    check(batch);
    work([&] {
      for (std::size_t c = 0; c < batch.clients; ++c) {
        const std::size_t row_of_sum = c / squares.minibatches;
        use_weights(theta + (squares.one_theta ? row_of_sum : c) * stride);
        const std::int32_t* const count = batch.counts + c;
        const std::int32_t* labels = batch.labels + c * batch.rows;
        if (draws != nullptr) {
          draw_labels(batch, c, draws + c);
          labels = drawn_.data();
        }
        const StreamAddress* const dropout =
            row(second_dropout != nullptr ? second_dropout : batch.dropout, c);
        for (std::size_t i = 0; i < batch.rows; ++i) {
          gpu::count_example(int(i), count, one_.data(), device_stream());
          const Tensor out =
              forward(examples(batch, c) + i * features(), 1, dropout, std::uint32_t(i) << 16);
          const std::vector<Tensor> gradients =
              backward(out, {1, 1, one_.data()}, labels + i, gpu::DeltaScale::per_example, nullptr);
          for_each_tensor(gradients, [&](const float* gradient, std::size_t begin, std::size_t n) {
            gpu::add_squared_gradient(gradient, n, int(i), count,
                                      squares.sum + row_of_sum * stride + begin, device_stream());
          });
        }
      }
    });
  }

 private:
  // Torch's errors become ours.
  void work(const std::function<void()>& what) {
    try {
      const TorchOnGpu::Entered entered(torch_);
      what();
    } catch (const InputError&) {
      throw;
    } catch (const RunError&) {
      throw;
    } catch (const std::exception& error) {
      cudaGetLastError();  // the next call starts clean
      throw RunError(
          fmt::format("model torchscript: {}: on the GPU: {}", path_, reason_in(error.what())));
    }
  }

  void check(const CohortBatch& batch) const {
    if (batch.clients > capacity_.clients || batch.rows > capacity_.rows) {
      throw InputError(fmt::format(
          "cohort model: a batch must be at most {} clients of {} examples, but is {} of {}",
          capacity_.clients, capacity_.rows, batch.clients, batch.rows));
    }
  }

  static const StreamAddress* row(const StreamAddress* streams, std::size_t c) {
    return streams == nullptr ? nullptr : streams + c;
  }
  const float* examples(const CohortBatch& batch, std::size_t c) const {
    return batch.features + c * batch.rows * features();
  }
  at::Device device() const { return {c10::DeviceType::CUDA, torch_.device()}; }
  Tensor view(const float* values, at::IntArrayRef shape) const {
    return at::for_blob(const_cast<float*>(values), shape)
        .options(at::TensorOptions().dtype(at::kFloat).device(device()))
        .target_device(device())
        .make_tensor();
  }
  Tensor logits_of(float* values, std::size_t rows) const {
    return view(values, {std::int64_t(rows), std::int64_t(outputs())});
  }

  // use(gradient or null, where the tensor begins among the weights, its size)
  template <class Use>
  void for_each_tensor(const std::vector<Tensor>& gradients, const Use& use) const {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < layout_.size(); ++i) {
      const Tensor& gradient = gradients[i];
      use(gradient.defined() ? gradient.const_data_ptr<float>() : nullptr, begin,
          layout_[i].size());
      begin += layout_[i].size();
    }
  }

  // Nothing is copied: the module's parameters look at these weights from now on.
  void use_weights(const float* theta) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].set_data(view(theta, layout_[i].shape));
      theta += layout_[i].size();
    }
  }

  Tensor forward(const float* inputs, std::size_t rows, const StreamAddress* dropout,
                 std::uint32_t steps) {
    if (dropout != nullptr && random_) torch_.seed(dropout, steps);
    if (training_ != (dropout != nullptr)) module_.train(training_ = dropout != nullptr);
    std::vector<std::int64_t> shape{std::int64_t(rows)};
    shape.insert(shape.end(), data_.features.begin(), data_.features.end());
    return module_.forward({view(inputs, shape)}).toTensor();
  }

  // Of our loss at these logits; undefined for parameters that they do not depend on.
  std::vector<Tensor> backward(const Tensor& out, const gpu::CohortShape& cohort,
                               const std::int32_t* labels, gpu::DeltaScale scale, double* loss) {
    Tensor delta = logits_of(logits_.data(), std::size_t(cohort.rows));
    {
      const torch::NoGradGuard guard;
      delta.copy_(out);
    }
    gpu::softmax_delta(int(outputs()), cohort, labels, scale, logits_.data(), loss,
                       device_stream());
    std::vector<Tensor> gradients =
        torch::autograd::grad({out}, parameters_, {delta}, std::nullopt, false, true);
    for (Tensor& gradient : gradients) {
      if (gradient.defined()) gradient = gradient.contiguous();
    }
    return gradients;
  }

  void draw_labels(const CohortBatch& batch, std::size_t c, const StreamAddress* stream) {
    const torch::NoGradGuard guard;
    logits_of(logits_.data(), batch.rows)
        .copy_(forward(examples(batch, c), batch.rows, row(batch.dropout, c), 0));
    gpu::draw_labels(int(outputs()), {1, int(batch.rows), batch.counts + c}, stream, logits_.data(),
                     drawn_.data(), device_stream());
  }

  // Also lets torch make what must be there before work is captured: handles, workspaces, threads.
  void try_out(const Model& host) {
    const std::size_t rows = std::min(capacity_.rows, kTrialRows);
    std::vector<float> weights(size()), inputs(rows * features(), 0.5f);
    host.initialise(0, weights);
    DeviceArray<float> theta{std::span<const float>(weights)}, momentum(weights.size()), prior(1),
        x{std::span<const float>(inputs)}, out(rows * outputs());
    DeviceArray<std::int32_t> labels(rows), counts(1);
    DeviceArray<StreamAddress> dropout(1);
    DeviceArray<double> loss(1);
    momentum.zero();
    prior.zero();
    labels.zero();
    dropout.zero();
    loss.zero();
    counts.upload(std::vector<std::int32_t>{std::int32_t(rows)});
    const CohortBatch batch{1, rows, x.data(), labels.data(), counts.data(), dropout.data()};
    const auto first_row = [&] {
      logits(batch, theta.data(), 0, out.data());
      std::vector<float> all = out.download();
      all.resize(outputs());
      return all;
    };
    first_row();
    random_ = torch_.drew();
    const std::vector<float> before = first_row();
    std::fill(inputs.begin() + std::ptrdiff_t(features()), inputs.end(), 0.25f);
    x.upload(inputs);
    const std::vector<float> after = first_row();
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (std::abs(before[i] - after[i]) <= 1e-3f * std::abs(before[i]) + 1e-5f) continue;
      throw InputError(
          fmt::format("model torchscript: {}: on the GPU examples of a batch must not affect one "
                      "another, but do (batch norm?); use --device cpu",
                      path_));
    }
    const CohortChain chain{.theta = theta.data(),
                            .momentum = momentum.data(),
                            .stride = size(),
                            .lambda = prior.data(),
                            .per_example = prior.data()};
    train_step(batch, chain, loss.data());
    const StepGraph captured([&] { train_step(batch, chain, loss.data()); });
  }

  DatasetInfo data_;
  std::string path_;
  CohortCapacity capacity_;
  Layout layout_;
  TorchOnGpu torch_;
  torch::jit::Module module_;
  std::vector<Tensor> parameters_;
  bool training_ = false;      // the module's mode
  bool random_ = false;        // it draws numbers in training
  DeviceArray<float> logits_;  // [rows, outputs] of one client, then their derivative
  DeviceArray<std::int32_t> drawn_, one_;
};

}  // namespace

std::unique_ptr<CohortModel> make_cohort_torchscript(const ModelSettings& settings,
                                                     const DatasetInfo& data,
                                                     const CohortCapacity& capacity) {
  return std::make_unique<CohortTorchscript>(settings, data, capacity);
}

}  // namespace fedep
