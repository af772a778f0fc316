#include "fedep/model/torchscript.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/script.h>
#include <torch/torch.h>

#include "fedep/message/check.h"
#include "fedep/model/layer/loss.h"

namespace fedep {
namespace {

using torch::Tensor;

// Torch draws dropout from one generator of the whole process; whoever seeds it holds this until
// done.
std::mutex& generator_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

torch::jit::Module load(const std::string& path) {
  if (path.empty()) throw InputError("model torchscript: model.path must name a TorchScript file");
  try {
    return torch::jit::load(path, torch::kCPU);
  } catch (const c10::Error& error) {
    throw InputError(fmt::format("model torchscript: {} must be a TorchScript module: {}", path,
                                 first_line(error.what_without_backtrace())));
  }
}

class TorchscriptModel final : public Model {
 public:
  TorchscriptModel(const ModelSettings& settings, const DatasetInfo& data)
      : module_(load(settings.path)), data_(data), noise_(settings.noise), path_(settings.path) {
    torch::set_num_threads(1);
    adopt_parameters();
    check_behaviour();
  }

  const Layout& layout() const override { return layout_; }
  std::size_t outputs() const override { return data_.outputs; }
  Likelihood likelihood() const override { return {data_.target, noise_}; }

  void initialise(std::uint64_t, std::span<float> theta) const override {
    std::copy(initial_.begin(), initial_.end(), theta.begin());
  }

  double loss_gradient(std::span<const float> theta, const Batch& batch, const Mode& mode,
                       std::span<float> gradient) override {
    return backward(theta, batch, mode, Scale::batch_mean, {}, [&](std::size_t at, float g) {
      gradient[at] = mode.keep == 0.0f ? g : mode.keep * gradient[at] + g;
    });
  }

  void logits(std::span<const float> theta, const Batch& batch, const Mode& mode,
              std::span<float> out) override {
    const torch::NoGradGuard guard;
    set_weights(theta);
    const Tensor result = forward(batch, mode);
    std::memcpy(out.data(), result.data_ptr<float>(), out.size_bytes());
  }

  // One example at a time; dropout masks are then those of a batch of one.
  void add_squared_gradients(std::span<const float> theta, const Batch& batch, const Mode& mode,
                             std::span<const float> tag_targets, std::span<float> sum) override {
    for (std::size_t i = 0; i < batch.size; ++i) {
      Address address = mode.dropout == nullptr ? Address{} : *mode.dropout;
      address.step += std::uint32_t(i) << 16;
      const Mode one_mode{.dropout = mode.dropout == nullptr ? nullptr : &address};
      const std::span<const float> tags =
          tag_targets.empty() ? tag_targets : tag_targets.subspan(i * outputs(), outputs());
      backward(theta, example(batch, i), one_mode, Scale::per_example, tags,
               [&](std::size_t at, float g) { sum[at] += g * g; });
    }
  }

 private:
  // Parameters become views of one flat tensor.
  void adopt_parameters() {
    std::vector<Tensor> tensors;
    for (const auto& parameter : module_.named_parameters()) {
      if (parameter.value.scalar_type() != torch::kFloat) {
        throw InputError(fmt::format("model torchscript: {}: parameter {} must be float32", path_,
                                     parameter.name));
      }
      layout_.push_back({parameter.name, parameter.value.sizes().vec()});
      tensors.push_back(parameter.value);
    }
    if (size_of(layout_) == 0) {
      throw InputError(
          fmt::format("model torchscript: {} must have parameters, but has none", path_));
    }
    flat_ = torch::empty({std::int64_t(size_of(layout_))});
    std::int64_t at = 0;
    for (Tensor& parameter : tensors) {
      const Tensor view = flat_.narrow(0, at, parameter.numel()).view(parameter.sizes());
      view.copy_(parameter.detach());
      at += parameter.numel();
      parameter.set_data(view);
      parameter.set_requires_grad(true);
      parameters_.push_back(parameter);
    }
    const float* values = flat_.data_ptr<float>();
    initial_.assign(values, values + flat_.numel());
  }

  // A trial on two examples: shape of the output, buffers that change, random numbers.
  void check_behaviour() {
    const torch::NoGradGuard guard;
    std::vector<std::int64_t> shape{2};
    shape.insert(shape.end(), data_.features.begin(), data_.features.end());
    const Tensor input = torch::full(shape, 0.5f);
    std::vector<std::pair<Tensor, Tensor>> buffers;
    for (const Tensor& buffer : module_.buffers()) buffers.emplace_back(buffer, buffer.clone());
    const std::lock_guard lock(generator_mutex());
    module_.train();
    random_ = draws(input);
    const Tensor first = call(input);
    if (first.dim() != 2 || first.size(0) != 2 || first.size(1) != std::int64_t(data_.outputs) ||
        first.scalar_type() != torch::kFloat) {
      throw InputError(fmt::format(
          "model torchscript: {}: forward must give float32 logits [2, {}] for two examples, but "
          "gives a tensor of {} elements in {} dimensions",
          path_, data_.outputs, first.numel(), first.dim()));
    }
    for (const auto& [buffer, before] : buffers) {
      if (!torch::equal(buffer, before)) {
        throw InputError(fmt::format(
            "model torchscript: {}: training must change parameters only, but changes a buffer "
            "(batch norm?)",
            path_));
      }
    }
    module_.eval();
    if (draws(input)) {
      throw InputError(fmt::format(
          "model torchscript: {}: forward must draw no random numbers in eval mode, but does",
          path_));
    }
  }

  // Whether a forward pass takes numbers from torch's generator.
  bool draws(const Tensor& input) {
    const at::Generator& generator = at::detail::getDefaultCPUGenerator();
    const Tensor before = generator.get_state();
    call(input);
    return !torch::equal(before, generator.get_state());
  }

  Tensor call(const Tensor& input) {
    try {
      return module_.forward({input}).toTensor();
    } catch (const std::exception& error) {
      throw InputError(fmt::format("model torchscript: {}: forward failed: {}", path_,
                                   first_line(error.what())));
    }
  }

  void set_weights(std::span<const float> theta) {
    check_same_size("torchscript", "theta", initial_.size(), theta.size());
    std::memcpy(flat_.data_ptr<float>(), theta.data(), theta.size_bytes());
  }

  Tensor forward(const Batch& batch, const Mode& mode) {
    check_same_size("torchscript", "dense features", batch.size * data_.feature_count(),
                    batch.dense.size());
    std::vector<std::int64_t> shape{std::int64_t(batch.size)};
    shape.insert(shape.end(), data_.features.begin(), data_.features.end());
    const Tensor input = torch::from_blob(const_cast<float*>(batch.dense.data()), shape);
    std::optional<std::lock_guard<std::mutex>> lock;
    if (mode.dropout != nullptr && random_) {
      lock.emplace(generator_mutex());
      torch::manual_seed(Stream(*mode.dropout).bits64());
    }
    module_.train(mode.dropout != nullptr);
    return call(input).contiguous();
  }

  template <class Use>
  double backward(std::span<const float> theta, const Batch& batch, const Mode& mode, Scale scale,
                  std::span<const float> tag_targets, const Use& use) {
    set_weights(theta);
    const Tensor out = forward(batch, mode);
    const std::size_t count = batch.size * outputs();
    Tensor delta = torch::empty({std::int64_t(batch.size), std::int64_t(outputs())});
    const double loss = loss_delta(likelihood(), batch, {out.data_ptr<float>(), count}, outputs(),
                                   scale, tag_targets, {delta.data_ptr<float>(), count});
    const std::vector<Tensor> gradients =
        torch::autograd::grad({out}, parameters_, {delta}, false, false, true);
    std::size_t at = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const std::size_t size = layout_[i].size();
      const Tensor gradient = gradients[i].defined() ? gradients[i].contiguous() : Tensor();
      const float* values = gradient.defined() ? gradient.data_ptr<float>() : nullptr;
      for (std::size_t j = 0; j < size; ++j) use(at + j, values == nullptr ? 0.0f : values[j]);
      at += size;
    }
    return loss;
  }

  Batch example(const Batch& batch, std::size_t i) const {
    Batch one;
    one.size = 1;
    const auto begin = batch.dense.begin() + std::ptrdiff_t(i * data_.feature_count());
    one.dense.assign(begin, begin + std::ptrdiff_t(data_.feature_count()));
    if (!batch.labels.empty()) one.labels = {batch.labels[i]};
    if (!batch.reals.empty()) one.reals = {batch.reals[i]};
    if (batch.tags.rows() > 0) {
      const auto first = batch.tags.columns.begin() + batch.tags.offsets[i];
      one.tags.columns.assign(first, batch.tags.columns.begin() + batch.tags.offsets[i + 1]);
      one.tags.offsets.push_back(std::uint32_t(one.tags.columns.size()));
    }
    return one;
  }

  torch::jit::Module module_;
  DatasetInfo data_;
  double noise_;
  std::string path_;
  Layout layout_;
  std::vector<float> initial_;
  Tensor flat_;
  std::vector<Tensor> parameters_;  // views of flat_
  bool random_ = false;             // in training
};

}  // namespace

std::unique_ptr<Model> make_torchscript(const ModelSettings& settings, const DatasetInfo& data) {
  if (data.sparse) throw InputError("model torchscript: data must have dense features");
  return std::make_unique<TorchscriptModel>(settings, data);
}

}  // namespace fedep
