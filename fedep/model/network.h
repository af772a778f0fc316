// What the networks (cnn, resnet18) have to say for themselves; make_network_model() makes a Model
// of it. A network sees images [n, height, width, channels] and keeps what its backward pass needs.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "fedep/model/layer/convolution.h"
#include "fedep/model/model.h"

namespace fedep {

// Where a backward pass leaves what it finds of the weights: sums of gradients, or of squared
// gradients per example. Offsets are into the flat vector.
class GradientSink {
 public:
  static GradientSink gradients(float keep, std::span<float> out) { return {keep, false, out}; }
  static GradientSink squares(std::span<float> sum) { return {1.0f, true, sum}; }

  void convolution(Convolution& conv, std::size_t n, const float* x, const float* dy,
                   std::size_t offset) const;
  void dense(std::size_t n, std::size_t in, std::size_t out, const float* x, const float* dy,
             std::size_t offset) const;
  void bias(std::size_t n, std::size_t positions, std::size_t channels, const float* dy,
            std::size_t offset) const;

 private:
  GradientSink(float keep, bool squares, std::span<float> out)
      : keep_(keep), squares_(squares), out_(out) {}

  float keep_;
  bool squares_;
  std::span<float> out_;
};

class Network {
 public:
  virtual ~Network() = default;

  virtual const Layout& layout() const = 0;
  virtual std::size_t input_size() const = 0;
  virtual std::size_t outputs() const = 0;
  virtual void initialise(std::uint64_t seed, std::span<float> theta) const = 0;
  virtual std::vector<Range> live() const = 0;

  // Writes [n, outputs] to `logits`. The images are examples first .. first + n of their batch.
  virtual void forward(const float* theta, std::size_t n, const float* images, const Mode& mode,
                       std::size_t first, float* logits) = 0;
  // After forward() on the same images, for the derivative `delta` of its logits.
  virtual void backward(const float* theta, std::size_t n, const float* images, const float* delta,
                        const GradientSink& sink) = 0;
};

std::unique_ptr<Model> make_network_model(std::unique_ptr<Network> network,
                                          const Likelihood& likelihood);

}  // namespace fedep
