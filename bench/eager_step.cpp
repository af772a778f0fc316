#include "bench/eager_step.h"

#include <algorithm>
#include <functional>

#include <torch/torch.h>

namespace fedep {
namespace {

namespace F = torch::nn::functional;
using torch::Tensor;
using Forward = std::function<Tensor(const std::vector<Tensor>&, const Tensor&)>;

struct Network {
  std::vector<Tensor> weights;
  Forward logits;
};

Tensor weight(const std::vector<std::int64_t>& shape, double scale = 0.05) {
  return (torch::randn(shape) * scale).requires_grad_(true);
}

Network linear(std::int64_t features, std::int64_t outputs) {
  return {
      {weight({outputs, features}, 0), weight({outputs}, 0)},
      [](const std::vector<Tensor>& w, const Tensor& x) { return torch::linear(x, w[0], w[1]); }};
}

Network cnn() {
  return {{weight({32, 1, 3, 3}), weight({32}), weight({64, 32, 3, 3}), weight({64}),
           weight({128, 9216}), weight({128}), weight({62, 128}), weight({62})},
          [](const std::vector<Tensor>& w, const Tensor& images) {
            Tensor x = torch::relu(torch::conv2d(images, w[0], w[1]));
            x = torch::relu(torch::conv2d(x, w[2], w[3]));
            x = torch::dropout(torch::max_pool2d(x, 2), 0.25, true).flatten(1);
            x = torch::dropout(torch::relu(torch::linear(x, w[4], w[5])), 0.5, true);
            return torch::linear(x, w[6], w[7]);
          }};
}

Tensor normalised(const Tensor& x) { return torch::group_norm(x, 2, {}, {}, 1e-3); }

// TensorFlow's SAME: what does not divide evenly goes after.
Tensor same_conv(const Tensor& x, const Tensor& w, std::int64_t stride) {
  const std::int64_t kernel = w.size(2);
  const std::int64_t out = (x.size(2) + stride - 1) / stride;
  const std::int64_t total = std::max<std::int64_t>((out - 1) * stride + kernel - x.size(2), 0);
  const std::int64_t low = total / 2;
  if (total == 2 * low) return torch::conv2d(x, w, {}, stride, low);
  return torch::conv2d(F::pad(x, F::PadFuncOptions({low, total - low, low, total - low})), w, {},
                       stride);
}

Network resnet18() {
  Network network;
  network.weights.push_back(weight({64, 3, 7, 7}));
  std::int64_t in = 64;
  for (const std::int64_t out : {64, 128, 256, 512}) {
    for (const int block : {0, 1}) {
      network.weights.push_back(weight({out, in, 3, 3}));
      network.weights.push_back(weight({out, out, 3, 3}));
      if (block == 0 && in != out) network.weights.push_back(weight({out, in, 1, 1}));
      in = out;
    }
  }
  network.weights.push_back(weight({100, 512}));
  network.weights.push_back(weight({100}));
  network.logits = [](const std::vector<Tensor>& w, const Tensor& images) {
    std::size_t next = 0;
    Tensor x = same_conv(images, w[next++], 2);
    x = torch::max_pool2d(F::pad(x, F::PadFuncOptions({0, 1, 0, 1})), 3, 2);
    for (int group = 0; group < 4; ++group) {
      for (int block = 0; block < 2; ++block) {
        const bool down = block == 0 && group > 0;
        Tensor y = same_conv(torch::relu(normalised(x)), w[next++], down ? 2 : 1);
        y = same_conv(torch::relu(normalised(y)), w[next++], 1);
        x = y + (down ? normalised(same_conv(x, w[next++], 2)) : x);
      }
    }
    x = torch::relu(normalised(x)).mean({2, 3});
    const Tensor& out_weight = w[next++];
    return torch::linear(x, out_weight, w[next]);
  };
  return network;
}

// [rows, features], images as [rows, channels, height, width].
Tensor input_of(std::string_view model, const Batch& rows, std::int64_t features) {
  const auto n = std::int64_t(rows.size);
  Tensor x = torch::zeros({n, features});
  if (!rows.dense.empty()) {
    std::copy(rows.dense.begin(), rows.dense.end(), x.data_ptr<float>());
  }
  for (std::size_t i = 0; i < rows.sparse.rows(); ++i) {
    for (std::size_t k = rows.sparse.offsets[i]; k < rows.sparse.offsets[i + 1]; ++k) {
      x[std::int64_t(i)][std::int64_t(rows.sparse.columns[k])] = rows.sparse.values[k];
    }
  }
  if (model == "cnn") return x.view({n, 1, 28, 28});
  if (model == "resnet18") return x.view({n, 24, 24, 3}).permute({0, 3, 1, 2}).contiguous();
  return x;
}

Tensor target_of(const Batch& rows, std::int64_t outputs) {
  const auto n = std::int64_t(rows.size);
  if (!rows.labels.empty()) {
    Tensor labels = torch::empty({n}, torch::kLong);
    std::copy(rows.labels.begin(), rows.labels.end(), labels.data_ptr<std::int64_t>());
    return labels;
  }
  Tensor tags = torch::zeros({n, outputs});
  for (std::size_t i = 0; i < rows.tags.rows(); ++i) {
    for (std::size_t k = rows.tags.offsets[i]; k < rows.tags.offsets[i + 1]; ++k) {
      tags[std::int64_t(i)][std::int64_t(rows.tags.columns[k])] = 1.0f;
    }
  }
  return tags;
}

class Peer final : public EagerPeer {
 public:
  Peer(std::string_view model, const Batch& rows, std::int64_t features, std::int64_t outputs,
       const EagerSettings& settings)
      : settings_(settings),
        network_(model == "cnn"        ? cnn()
                 : model == "resnet18" ? resnet18()
                                       : linear(features, outputs)),
        input_(input_of(model, rows, features)),
        target_(target_of(rows, outputs)),
        tags_(rows.labels.empty()) {
    for (const Tensor& w : network_.weights) {
      momentum_.push_back(torch::zeros_like(w));
      eta_.push_back(w.detach() * settings.lambda);
    }
    if (settings.prior_in_loss) {
      optimizer_ = std::make_unique<torch::optim::SGD>(
          network_.weights, torch::optim::SGDOptions(settings.lr).momentum(settings.momentum));
    }
  }

  double run(const std::vector<std::vector<std::int64_t>>& batches) override {
    double loss_sum = 0;
    for (const auto& batch : batches) loss_sum += step(batch);
    return loss_sum;
  }

 private:
  double step(const std::vector<std::int64_t>& batch) {
    const Tensor index = torch::tensor(batch, torch::kLong);
    const Tensor out = network_.logits(network_.weights, input_.index_select(0, index));
    const Tensor target = target_.index_select(0, index);
    const Tensor loss = tags_ ? torch::binary_cross_entropy_with_logits(out, target)
                              : torch::cross_entropy_loss(out, target);
    if (optimizer_) return optimizer_step(loss);
    const std::vector<Tensor> gradients = torch::autograd::grad({loss}, network_.weights);
    const torch::NoGradGuard guard;
    const double n = settings_.per_example;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      Tensor& w = network_.weights[i];
      Tensor g = gradients[i];
      g.add_(w, settings_.lambda * n).sub_(eta_[i], n);
      momentum_[i].mul_(settings_.momentum).add_(g);
      w.sub_(momentum_[i], settings_.lr);
    }
    return loss.item<double>();
  }

  double optimizer_step(const Tensor& loss) {
    Tensor objective = loss;
    for (std::size_t i = 0; i < network_.weights.size(); ++i) {
      const Tensor& w = network_.weights[i];
      const Tensor prior = 0.5 * settings_.lambda * w.square().sum() - (eta_[i] * w).sum();
      objective = objective + settings_.per_example * prior;
    }
    optimizer_->zero_grad();
    objective.backward();
    optimizer_->step();
    return loss.item<double>();
  }

  EagerSettings settings_;
  Network network_;
  Tensor input_, target_;
  bool tags_;
  std::vector<Tensor> momentum_, eta_;
  std::unique_ptr<torch::optim::SGD> optimizer_;  // if the prior is in the loss
};

}  // namespace

std::unique_ptr<EagerPeer> make_eager_peer(std::string_view model, const Batch& rows,
                                           std::size_t features, std::size_t outputs,
                                           const EagerSettings& settings) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  return std::make_unique<Peer>(model, rows, std::int64_t(features), std::int64_t(outputs),
                                settings);
}

}  // namespace fedep
