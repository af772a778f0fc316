#include "fedep/sim/predictive.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/random/stream.h"
#include "fedep/sim/scores.h"

namespace fedep {
namespace {

// Sums over draws that are kept at once; more examples than fit are predicted block by block.
constexpr std::size_t kBlockNumbers = std::size_t(1) << 24;

double binary_entropy(double p) {
  const auto term = [](double x) { return x > 0 ? -x * std::log(x) : 0.0; };
  return term(p) + term(1 - p);
}

// Running sums over draws for one batch.
struct Sums {
  std::size_t draws = 0;
  std::vector<double> mean, squares, entropy;

  void add(const Likelihood& likelihood, std::size_t outputs,
           const std::vector<double>& predictions) {
    const std::size_t n = predictions.size() / outputs;
    if (draws++ == 0) {
      mean.assign(predictions.size(), 0.0);
      entropy.assign(n, 0.0);
      if (likelihood.target == TargetKind::real) squares.assign(predictions.size(), 0.0);
    }
    for (std::size_t i = 0; i < predictions.size(); ++i) mean[i] += predictions[i];
    for (std::size_t i = 0; i < squares.size(); ++i) squares[i] += predictions[i] * predictions[i];
    for (std::size_t i = 0; i < n; ++i) {
      const auto prediction = std::span(predictions).subspan(i * outputs, outputs);
      entropy[i] += predictive_entropy(likelihood.target, prediction, likelihood.variance());
    }
  }

  Predictions average() && {
    const double count = double(draws);
    for (std::vector<double>* sums : {&mean, &squares, &entropy}) {
      for (double& x : *sums) x /= count;
    }
    if (draws < 2) squares.clear();  // one draw has no spread
    for (std::size_t i = 0; i < squares.size(); ++i) {
      squares[i] = variance_of_draws(mean[i], squares[i], draws);
    }
    return {std::move(mean), std::move(squares), std::move(entropy)};
  }
};

}  // namespace

Range last_layer(const Layout& layout, std::size_t outputs) {
  const auto makes_outputs = [&](const TensorShape& tensor) {
    return std::find(tensor.shape.begin(), tensor.shape.end(), std::int64_t(outputs)) !=
           tensor.shape.end();
  };
  if (layout.empty() || !makes_outputs(layout.back())) {
    throw InputError(fmt::format(
        "last layer: the model's last tensor must have an extent of {} outputs, but {} has none",
        outputs, layout.empty() ? "a model without tensors" : layout.back().name));
  }
  const std::size_t end = size_of(layout);
  std::size_t begin = end - layout.back().size();
  if (layout.size() > 1) {
    const TensorShape& before = layout[layout.size() - 2];
    const bool one_is_bias = (before.shape.size() == 1) != (layout.back().shape.size() == 1);
    if (one_is_bias && makes_outputs(before)) begin -= before.size();
  }
  return {begin, end};
}

double predictive_entropy(TargetKind target, std::span<const double> mean, double variance) {
  double entropy = 0;
  switch (target) {
    case TargetKind::label:
      for (const double p : mean) entropy -= p > 0 ? p * std::log(p) : 0.0;
      return entropy;
    case TargetKind::binary:
    case TargetKind::tags:
      for (const double p : mean) entropy += binary_entropy(p);
      return entropy;
    case TargetKind::real:
      break;
  }
  return 0.5 * std::log(2 * std::numbers::pi * std::numbers::e * variance);
}

Predictive::Predictive(Model& model, const ServerState& state)
    : model_(model), state_(state), point_(point_estimate(state)) {
  check_same_size("Predictive", "weights", model.size(), point_.size());
}

Predictions Predictive::point(const Batch& batch) {
  Sums sums;
  sums.add(model_.likelihood(), model_.outputs(), predict(point_.span(), batch));
  return std::move(sums).average();
}

void Predictive::marginal(const DrawSettings& draws, std::size_t batches, const BatchAt& batch_at,
                          const Use& use) {
  check_proper("marginal prediction", "posterior", state_.global);
  for (std::size_t begin = 0; begin < batches;) {
    std::size_t end = begin;
    for (std::size_t numbers = 0; end < batches && numbers < kBlockNumbers; ++end) {
      numbers += batch_at(end).size * model_.outputs();
    }
    std::vector<Sums> sums(end - begin);
    for (int index = 0; index < draws.samples; ++index) {
      const HostVector<float> theta = draw(draws, index);
      for (std::size_t i = begin; i < end; ++i) {
        sums[i - begin].add(model_.likelihood(), model_.outputs(),
                            predict(theta.span(), batch_at(i)));
      }
    }
    for (std::size_t i = begin; i < end; ++i) use(i, std::move(sums[i - begin]).average());
    begin = end;
  }
}

std::vector<double> Predictive::predict(std::span<const float> theta, const Batch& batch) {
  logits_.resize(batch.size * model_.outputs());
  model_.logits(theta, batch, {}, logits_);
  return predictions_of(model_.target(), logits_, model_.outputs());
}

HostVector<float> Predictive::draw(const DrawSettings& draws, int index) const {
  HostVector<float> noise(state_.global.size());
  fill_normal({.seed = draws.seed,
               .purpose = Purpose::posterior,
               .round = std::uint32_t(draws.round),
               .step = std::uint32_t(index)},
              noise.span());
  if (draws.last_layer) {
    const Range range = last_layer(model_.layout(), model_.outputs());
    std::fill_n(noise.span().begin(), range.begin, 0.0f);
  }
  return sample(state_.global, noise);
}

}  // namespace fedep
