// A chain's vectors, whose memory the thread's next chain uses again. Threads that draw all their
// memory from one heap hand each other what the other's cache still holds, and a small model's chain
// then waits for lines longer than it computes.
//
//   KeptVector theta;
//   theta.assign(mean.begin(), mean.end());
//   model.loss_gradient(theta, batch, mode, gradient);   // a range, as std::vector is
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace fedep {

class KeptVector {
 public:
  KeptVector() = default;
  KeptVector(const KeptVector&) = delete;
  KeptVector& operator=(const KeptVector&) = delete;
  ~KeptVector();

  // As std::vector's.
  void resize(std::size_t size);
  void assign(std::size_t size, float value);
  template <class Iterator>
  void assign(Iterator first, Iterator last) {
    take();
    values_.assign(first, last);
  }

  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  float* begin() { return data(); }
  const float* begin() const { return data(); }
  float* end() { return data() + size(); }
  const float* end() const { return data() + size(); }
  float& operator[](std::size_t i) { return values_[i]; }
  float operator[](std::size_t i) const { return values_[i]; }

  std::vector<float> copy() const { return values_; }

 private:
  void take();

  std::vector<float> values_;
  bool taken_ = false;
};

}  // namespace fedep
