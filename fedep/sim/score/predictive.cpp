#include "fedep/sim/score/predictive.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/metric/counts.h"
#include "fedep/metric/normal_interval.h"
#include "fedep/metric/probability.h"
#include "fedep/random/stream.h"
#include "fedep/sim/rows/own_intercept.h"
#include "fedep/sim/score/scores.h"
#include "fedep/sim/score/tempered.h"

namespace fedep {
namespace {

// Sums over draws that are kept at once; more examples than fit are predicted block by block.
constexpr std::size_t kBlockNumbers = std::size_t(1) << 24;

double binary_entropy(double p) {
  const auto term = [](double x) { return x > 0 ? -x * std::log(x) : 0.0; };
  return term(p) + term(1 - p);
}

std::vector<double> entropies_of(const Model& model, const Likelihood& likelihood,
                                 std::span<const double> predictions) {
  std::vector<double> out;
  for (std::size_t begin = 0; begin < predictions.size(); begin += model.outputs()) {
    out.push_back(predictive_entropy(likelihood.target, predictions.subspan(begin, model.outputs()),
                                     likelihood.variance_at(predictions[begin])));
  }
  return out;
}

// The value below which `part` of the values lie, between the two nearest; puts values in another order.
double interpolated_quantile(std::span<double> values, double part) {
  const double place = part * double(values.size() - 1);
  const auto below = std::ptrdiff_t(place);
  const auto at = values.begin() + below;
  std::nth_element(values.begin(), at, values.end());
  if (at + 1 == values.end()) return *at;
  return std::lerp(*at, *std::min_element(at + 1, values.end()), place - double(below));
}

// Over the draws so far, for one batch.
class Average {
 public:
  explicit Average(const DrawSettings& draws)
      : with_entropy_(draws.entropy), level_(draws.level), temperature_(draws.temperature) {}

  void add(const Model& model, const Likelihood& likelihood, std::vector<double> predictions) {
    const std::size_t outputs = model.outputs(), examples = predictions.size() / outputs;
    const bool spreads = model.target() == TargetKind::real || model.target() == TargetKind::count;
    if (mean_.draws() == 0) {
      mean_ = ProbabilityMean(predictions.size());
      squares_ = ProbabilityMean(spreads ? predictions.size() : 0);
      entropy_ = ProbabilityMean(with_entropy_ ? examples : 0);
    }
    mean_.add(predictions);
    if (with_entropy_) entropy_.add(entropies_of(model, likelihood, predictions));
    if (level_ > 0) {
      std::vector<double>& kept = draws_.emplace_back(predictions);
      temper(model.target(), kept, outputs, temperature_);
    }
    if (!spreads) return;
    for (double& x : predictions) x *= x;
    squares_.add(predictions);
  }

  Predictions value() const {
    Predictions out{.mean = mean_.value(), .spread = {}, .entropy = entropy_.value()};
    if (mean_.draws() < 2) return out;  // one draw has no spread
    if (level_ > 0) find_middle(out);
    out.spread = squares_.value();
    for (std::size_t i = 0; i < out.spread.size(); ++i) {
      out.spread[i] = variance_of_draws(out.mean[i], out.spread[i], std::size_t(mean_.draws()));
    }
    return out;
  }

 private:
  void find_middle(Predictions& out) const {
    std::vector<double> of_one(draws_.size());
    for (std::size_t i = 0; i < out.mean.size(); ++i) {
      for (std::size_t draw = 0; draw < draws_.size(); ++draw) of_one[draw] = draws_[draw][i];
      out.low.push_back(interpolated_quantile(of_one, (1 - level_) / 2));
      out.high.push_back(interpolated_quantile(of_one, (1 + level_) / 2));
    }
  }

  bool with_entropy_;
  double level_, temperature_;
  std::vector<std::vector<double>> draws_;  // where a level is asked for
  ProbabilityMean mean_{0}, squares_{0}, entropy_{0};
};

// Where in its distribution a draw's intercept lies: parts of 1 that the golden ratio spreads evenly, however
// many draws there are.
double spread_evenly(int draw) {
  const double place = 0.5 + draw * (std::numbers::phi - 1);
  const double part = place - std::floor(place);
  if (part == 0.5) return 0;
  return part < 0.5 ? -deviations_of(1 - 2 * part) : deviations_of(2 * part - 1);
}

std::vector<double> predict(Model& model, std::span<const float> theta, const Batch& batch,
                            std::size_t number, const InterceptAt& intercept_at, double z) {
  std::vector<float> logits(batch.size * model.outputs());
  model.logits(theta, batch, {}, logits);
  add_own_intercepts(model, theta, number, intercept_at, z, logits);
  return predictions_of(model.target(), logits, model.outputs());
}

HostVector<float> noise_of(const Message& q, std::uint64_t seed, std::int64_t round, int index) {
  HostVector<float> noise(q.size());
  fill_normal({.seed = seed,
               .purpose = Purpose::posterior,
               .round = std::uint32_t(round),
               .step = std::uint32_t(index)},
              noise.span());
  return noise;
}

HostVector<float> draw(const Model& model, const Message& q, const DrawSettings& draws, int index) {
  HostVector<float> noise = noise_of(q, draws.seed, draws.round, index);
  // A linear model is its last layer.
  if (draws.last_layer && !extras_of(model.layout()).any()) {
    const Range range = last_layer(model.layout(), model.outputs());
    std::fill_n(noise.span().begin(), range.begin, 0.0f);
  }
  return sample(q, noise);
}

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

HostVector<float> draw_of(const Message& q, std::uint64_t seed, std::int64_t round, int index) {
  return sample(q, noise_of(q, seed, round, index));
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
    case TargetKind::count:
      return count_entropy(mean[0], std::max(0.0, variance - mean[0]));
    case TargetKind::real:
      break;
  }
  return 0.5 * std::log(2 * std::numbers::pi * std::numbers::e * variance);
}

double mutual_information(TargetKind target, const Predictions& predictions, std::size_t example,
                          std::size_t outputs, double variance) {
  const auto mean = std::span(predictions.mean).subspan(example * outputs, outputs);
  // A temperature is of the mean alone: what draws disagree in is not.
  const double total = predictions.entropy_before.empty()
                           ? predictive_entropy(target, mean, variance)
                           : predictions.entropy_before[example];
  const double information = total - predictions.entropy[example];
  return information < 0 ? 0.0 : information;  // below zero is rounding; NaN stays
}

Predictive::Predictive(Model& model, const ServerState& state, const PredictiveUse& use)
    : model_(model),
      state_(state),
      use_(use),
      point_(use.average ? state.average.mean : point_estimate(state)) {
  if (use.average && state.average.rounds == 0) {
    throw InputError(
        "the run must have kept an average of its server (phase.average), but has none here");
  }
  check_same_size("Predictive", "weights", model.size(), point_.size());
}

Predictions Predictive::point(const Batch& batch, const InterceptAt& intercept_at,
                              std::size_t number) {
  Average one(DrawSettings{.entropy = true});
  std::vector<double> predictions = predict(model_, point_.span(), batch, number, intercept_at, 0);
  temper(model_.target(), predictions, model_.outputs(), temperature(false));
  one.add(model_, likelihood_at(model_, point_.span()), std::move(predictions));
  return one.value();
}

double Predictive::temperature(bool marginal) const {
  const double fitted = state_.temperatures.of(use_.average, marginal);
  return use_.tempered && fitted > 0 ? fitted : 1;
}

void Predictive::marginal(const DrawSettings& draws, std::size_t batches, const BatchAt& batch_at,
                          const UsePredictions& use, const InterceptAt& intercept_at) {
  const Message around = use_.average ? spread_around(state_.average) : Message();
  const Message& q = use_.average ? around : state_.global;
  check_proper("marginal prediction", "posterior", q);
  const double temperature = this->temperature(true);
  if (temperature == 1) {
    return average_over_draws(model_, q, draws, batches, batch_at, use, intercept_at);
  }
  DrawSettings tempered_draws = draws;
  tempered_draws.temperature = temperature;
  average_over_draws(
      model_, q, tempered_draws, batches, batch_at,
      [&](std::size_t i, const Predictions& predictions) {
        Predictions tempered = predictions;
        if (draws.entropy) {
          tempered.entropy_before =
              entropies_of(model_, average_likelihood(model_, q), predictions.mean);
        }
        temper(model_.target(), tempered.mean, model_.outputs(), temperature);
        use(i, tempered);
      },
      intercept_at);
}

void add_own_intercepts(const Model& model, std::span<const float> theta, std::size_t number,
                        const InterceptAt& intercept_at, double z, std::span<float> logits) {
  const SharedExtras extras = extras_of(model.layout());
  if (!extras.log_site_sd) return;
  static const OwnIntercept unknown;
  const OwnIntercept* last = nullptr;
  double more = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const OwnIntercept& own = intercept_at ? intercept_at(number, i) : unknown;
    if (&own != last) {
      const InterceptGiven b = intercept_given(own, model.likelihood(), extras, theta);
      more = b.mean + z * std::sqrt(b.variance) - double(theta[extras.intercept()]);
      last = &own;
    }
    logits[i] += float(more);
  }
}

Likelihood likelihood_at(const Model& model, std::span<const float> theta) {
  return likelihood_at(model.likelihood(), extras_of(model.layout()), theta);
}

Likelihood average_likelihood(const Model& model, const Message& q) {
  const SharedExtras extras = extras_of(model.layout());
  const Likelihood known = model.likelihood();
  if (!extras.log_noise) return known;
  // E[e^2s], s normal.
  const std::size_t at = *extras.log_noise;
  return {known.target, std::exp(double(mean(q)[at]) + double(variance(q)[at]))};
}

void average_over_draws(Model& model, const Message& q, const DrawSettings& draws,
                        std::size_t batches, const BatchAt& batch_at, const UsePredictions& use,
                        const InterceptAt& intercept_at) {
  const std::size_t kept = draws.level > 0 ? std::size_t(std::max(1, draws.samples)) : 1;
  for (std::size_t begin = 0; begin < batches;) {
    std::size_t end = begin;
    for (std::size_t numbers = 0; end < batches && numbers < kBlockNumbers; ++end) {
      numbers += batch_at(end).size * model.outputs() * kept;
    }
    std::vector<Average> averages(end - begin, Average(draws));
    for (int index = 0; index < draws.samples; ++index) {
      const HostVector<float> theta = draw(model, q, draws, index);
      for (std::size_t i = begin; i < end; ++i) {
        averages[i - begin].add(
            model, likelihood_at(model, theta.span()),
            predict(model, theta.span(), batch_at(i), i, intercept_at, spread_evenly(index)));
      }
    }
    for (std::size_t i = begin; i < end; ++i) use(i, averages[i - begin].value());
    begin = end;
  }
}

}  // namespace fedep
