// From a model's outputs to probabilities, all in double: softmax, sigmoid, and the mean over draws
// of a posterior (a marginalised prediction averages probabilities, never logits; Guo+23 Sec. 3.3).
//
//   ProbabilityMean mean(batch.size * classes);
//   for (const auto& theta : draws) {
//     model.logits(theta, batch, {}, logits);
//     mean.add(softmax(logits, classes));
//   }
//   metrics.add(mean.value(), batch.labels);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fedep {

// Below this a probability counts as this much in a log likelihood, so that one certain and wrong
// answer costs 36 nats instead of infinity. 2^-52, the machine epsilon, as scikit-learn's log_loss
// has it.
inline constexpr double kSmallestProbability = 0x1p-52;

// −log p, p first brought into [kSmallestProbability, 1]. NaN stays NaN.
double negative_log(double probability);

// [n, classes] -> [n, classes]. A row whose largest logit is not finite, or that has a NaN, becomes
// NaN.
std::vector<double> softmax(std::span<const float> logits, std::size_t classes);

double sigmoid(double logit);
std::vector<double> sigmoid(std::span<const float> logits);

// The first of the largest; nothing if an element is NaN or there is none.
std::optional<std::size_t> largest(std::span<const double> row);

// The mean of equally many probabilities per draw, added in the order of the draws.
class ProbabilityMean {
 public:
  explicit ProbabilityMean(std::size_t size) : sum_(size) {}

  void add(std::span<const double> probabilities);

  std::int64_t draws() const { return draws_; }
  std::vector<double> value() const;  // NaN without a draw

 private:
  std::vector<double> sum_;
  std::int64_t draws_ = 0;
};

// What every metric asks of its input; throw InputError. NaN passes (a run that diverged is still
// logged, with metrics that do not exist), and a millionth outside [0, 1] does (float32 rounding).
void check_probabilities(std::string_view function, std::span<const double> probabilities);
void check_classes(std::string_view function, std::span<const double> probabilities,
                   std::size_t classes, std::span<const std::int32_t> labels);
void check_binary(std::string_view function, std::span<const double> probabilities,
                  std::span<const std::int32_t> labels);

}  // namespace fedep
