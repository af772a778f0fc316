// The peer of the built-in models: one client-step (batch, forward, backward, momentum SGD) as a
// careful user of eager libtorch would write it, on one thread. Prints milliseconds per step.
//
//   fedep_bench_eager [linear_small|linear_large|cnn|resnet18|stackoverflow ...]
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <algorithm>
#include <ctime>

#include <torch/torch.h>

namespace {

namespace F = torch::nn::functional;
using torch::Tensor;
using Forward = std::function<Tensor(const std::vector<Tensor>&, const Tensor&)>;

struct Peer {
  std::string name;
  std::vector<Tensor> weights;
  Tensor input;
  Tensor target;
  Forward logits;
  bool tags = false;
};

Tensor weight(const std::vector<std::int64_t>& shape) {
  return (torch::randn(shape) * 0.05).requires_grad_(true);
}

Peer linear(const std::string& name, std::int64_t batch, std::int64_t features,
            std::int64_t outputs, bool tags) {
  Peer peer{name,
            {weight({outputs, features}), weight({outputs})},
            torch::randn({batch, features}),
            tags ? torch::zeros({batch, outputs}) : torch::randint(outputs, {batch}, torch::kLong),
            {},
            tags};
  peer.logits = [](const std::vector<Tensor>& w, const Tensor& x) {
    return torch::linear(x, w[0], w[1]);
  };
  return peer;
}

Peer cnn() {
  Peer peer{"cnn",
            {weight({32, 1, 3, 3}), weight({32}), weight({64, 32, 3, 3}), weight({64}),
             weight({128, 9216}), weight({128}), weight({62, 128}), weight({62})},
            torch::rand({20, 1, 28, 28}),
            torch::randint(62, {20}, torch::kLong),
            {}};
  peer.logits = [](const std::vector<Tensor>& w, const Tensor& images) {
    Tensor x = torch::relu(torch::conv2d(images, w[0], w[1]));
    x = torch::relu(torch::conv2d(x, w[2], w[3]));
    x = torch::dropout(torch::max_pool2d(x, 2), 0.25, true).flatten(1);
    x = torch::dropout(torch::relu(torch::linear(x, w[4], w[5])), 0.5, true);
    return torch::linear(x, w[6], w[7]);
  };
  return peer;
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

Peer resnet18() {
  Peer peer{
      "resnet18", {}, torch::randn({20, 3, 24, 24}), torch::randint(100, {20}, torch::kLong), {}};
  peer.weights.push_back(weight({64, 3, 7, 7}));
  std::int64_t in = 64;
  for (const std::int64_t out : {64, 128, 256, 512}) {
    for (const int block : {0, 1}) {
      peer.weights.push_back(weight({out, in, 3, 3}));
      peer.weights.push_back(weight({out, out, 3, 3}));
      if (block == 0 && in != out) peer.weights.push_back(weight({out, in, 1, 1}));
      in = out;
    }
  }
  peer.weights.push_back(weight({100, 512}));
  peer.weights.push_back(weight({100}));
  peer.logits = [](const std::vector<Tensor>& w, const Tensor& images) {
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
  return peer;
}

// Gradient of the mean loss plus a diagonal prior's, momentum 0.9, in place.
void step(Peer& peer, std::vector<Tensor>& momentum, const std::vector<Tensor>& eta,
          const std::vector<Tensor>& lambda) {
  const Tensor out = peer.logits(peer.weights, peer.input);
  const Tensor loss = peer.tags ? torch::binary_cross_entropy_with_logits(out, peer.target)
                                : torch::cross_entropy_loss(out, peer.target);
  const std::vector<Tensor> gradients = torch::autograd::grad({loss}, peer.weights);
  const torch::NoGradGuard guard;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Tensor g = gradients[i];
    g.addcmul_(lambda[i], peer.weights[i], 0.01).sub_(eta[i], 0.01);
    momentum[i].mul_(0.9).add_(g);
    peer.weights[i].sub_(momentum[i], 1e-4);
  }
}

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  std::vector<Peer> peers{linear("linear_small", 20, 100, 100, false),
                          linear("linear_large", 20, 1728, 100, false), cnn(), resnet18(),
                          linear("stackoverflow", 100, 10000, 500, true)};
  for (Peer& peer : peers) {
    if (argc > 1 && std::find(argv + 1, argv + argc, peer.name) == argv + argc) continue;
    std::vector<Tensor> momentum, eta, lambda;
    for (const Tensor& w : peer.weights) {
      momentum.push_back(torch::zeros_like(w));
      eta.push_back(torch::zeros_like(w));
      lambda.push_back(torch::ones_like(w));
    }
    for (int i = 0; i < 3; ++i) step(peer, momentum, eta, lambda);
    std::vector<double> times;
    const double start = cpu_seconds();
    while (times.size() < 5 || (cpu_seconds() - start < 2.0 && times.size() < 2000)) {
      const double before = cpu_seconds();
      step(peer, momentum, eta, lambda);
      times.push_back(cpu_seconds() - before);
    }
    std::sort(times.begin(), times.end());
    std::printf("%-14s median %8.3f ms  best %8.3f ms\n", peer.name.c_str(),
                1e3 * times[times.size() / 2], 1e3 * times[0]);
  }
}
