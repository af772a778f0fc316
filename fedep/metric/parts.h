// What an accumulator of scores holds, part by part, so that processes that saw different examples can
// send each other what they have and add it up. Sums are exact (exact_sum.h), so that the result has
// the same bits whoever saw which.
//
//   PartsWriter mine;
//   scores.parts(mine);                 // mine.bytes() travels
//   PartsAdder others(bytes);
//   scores.parts(others);               // as if this one had seen those examples too
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fedep/metric/exact_sum.h"

namespace fedep {

class Parts {
 public:
  virtual ~Parts() = default;

  virtual void count(std::int64_t& number) = 0;
  virtual void sum(ExactSum& sum) = 0;
  // Scores with their labels, in any order.
  virtual void scored(std::vector<std::pair<double, std::int32_t>>& list) = 0;
};

class PartsWriter final : public Parts {
 public:
  void count(std::int64_t& number) override;
  void sum(ExactSum& sum) override;
  void scored(std::vector<std::pair<double, std::int32_t>>& list) override;

  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Of bytes that a PartsWriter of the same kind of accumulator wrote. Throws RunError for others.
class PartsAdder final : public Parts {
 public:
  explicit PartsAdder(std::span<const std::byte> bytes) : left_(bytes) {}

  void count(std::int64_t& number) override;
  void sum(ExactSum& sum) override;
  void scored(std::vector<std::pair<double, std::int32_t>>& list) override;

  bool is_done() const { return left_.empty(); }

 private:
  template <class T>
  T next();

  std::span<const std::byte> left_;
};

}  // namespace fedep
