#include "fedep/sim/score/posterior_evaluation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/sim/rows/own_intercept.h"
#include "fedep/sim/score/scores.h"

namespace fedep {
namespace {

constexpr std::size_t kChunk = 500;  // examples of a batch

// What scores read of rows [begin, end) of a batch.
Batch targets_of(const Batch& batch, std::size_t begin, std::size_t end) {
  Batch out;
  out.size = end - begin;
  if (!batch.labels.empty()) {
    out.labels.assign(batch.labels.begin() + long(begin), batch.labels.begin() + long(end));
  }
  if (!batch.reals.empty()) {
    out.reals.assign(batch.reals.begin() + long(begin), batch.reals.begin() + long(end));
  }
  if (batch.tags.rows() >= end) {
    const std::uint32_t first = batch.tags.offsets[begin];
    for (std::size_t i = begin; i < end; ++i) {
      out.tags.offsets.push_back(batch.tags.offsets[i + 1] - first);
    }
    out.tags.columns.assign(batch.tags.columns.begin() + first,
                            batch.tags.columns.begin() + batch.tags.offsets[end]);
  }
  return out;
}

// The scores of a run's log, and calibration in more detail.
class Scorer {
 public:
  Scorer(const Likelihood& likelihood, std::size_t outputs)
      : target_(likelihood.target), outputs_(outputs), scores_(make_scores(likelihood, outputs)) {}

  void add(std::span<const double> mean, std::span<const double> spread, const Batch& targets) {
    examples_ += targets.size;
    scores_->add(mean, spread, targets);
    if (target_ == TargetKind::binary) risk_.add(mean, targets.labels);
    if (!has_classes()) return;
    const std::vector<Forecast> forecasts =
        target_ == TargetKind::binary ? top_class_forecasts(mean, targets.labels)
                                      : top_class_forecasts(mean, outputs_, targets.labels);
    uniform_.add(forecasts);
    equal_mass_.add(forecasts);
  }

  std::size_t examples() const { return examples_; }
  Metrics metrics() const {
    Metrics out = scores_->metrics();
    if (has_classes()) out.emplace_back("ece_equal_mass", equal_mass_.ece());
    return out;
  }
  std::optional<RiskReport> risk() const {
    return target_ == TargetKind::binary ? std::optional(risk_.report()) : std::nullopt;
  }
  std::vector<ReliabilityBin> reliability() const {
    return has_classes() ? uniform_.bins() : std::vector<ReliabilityBin>();
  }

 private:
  bool has_classes() const { return target_ == TargetKind::label || target_ == TargetKind::binary; }

  TargetKind target_;
  std::size_t outputs_;
  std::unique_ptr<Scores> scores_;
  UniformBins uniform_;
  EqualMassBins equal_mass_;
  RiskScores risk_;
  std::size_t examples_ = 0;
};

// One Scorer for all, one for each client.
class Board {
 public:
  Board(const Dataset& data, const Likelihood& likelihood, std::size_t outputs)
      : data_(data), likelihood_(likelihood), outputs_(outputs), all_(likelihood_, outputs_) {}

  // Predictions for the held-out examples from `first` on.
  void add(std::size_t first, const Batch& batch, const Predictions& predictions) {
    all_.add(predictions.mean, predictions.spread, batch);
    for (std::size_t begin = 0; begin < batch.size;) {
      const std::size_t client = data_.test_client(first + begin);
      std::size_t end = begin + 1;
      while (end < batch.size && data_.test_client(first + end) == client) ++end;
      const auto part = [&](const std::vector<double>& values) {
        return values.empty()
                   ? std::span<const double>()
                   : std::span(values).subspan(begin * outputs_, (end - begin) * outputs_);
      };
      clients_.try_emplace(client, likelihood_, outputs_)
          .first->second.add(part(predictions.mean), part(predictions.spread),
                             targets_of(batch, begin, end));
      begin = end;
    }
  }

  const Scorer& all() const { return all_; }
  const std::map<std::size_t, Scorer>& clients() const { return clients_; }

 private:
  const Dataset& data_;
  Likelihood likelihood_;
  std::size_t outputs_;
  Scorer all_;
  std::map<std::size_t, Scorer> clients_;
};

void append_marginal(const Metrics& from, Metrics& to) {
  for (const auto& [name, value] : from) to.emplace_back(name + "_marginal", value);
}

// Scores of examples that are no client's held-out ones.
UnlikenessScores unlikeness_of(const UnlikeSet& set, Model& model, Predictive& predictive,
                               const std::optional<DrawSettings>& draws, const OwnIntercepts& own) {
  std::vector<std::size_t> first;  // example of each batch
  std::size_t examples = 0;
  for (const Batch& batch : set.batches) {
    first.push_back(examples);
    examples += batch.size;
  }
  InterceptAt intercept_at;
  if (!set.clients.empty()) {
    intercept_at = [&](std::size_t i, std::size_t row) -> const OwnIntercept& {
      return own.of(set.clients[first[i] + row]);
    };
  }
  UnlikenessScores out(model);
  for (std::size_t i = 0; i < set.batches.size(); ++i) {
    out.add_point(predictive.point(set.batches[i], intercept_at, i), predictive.weights().span(),
                  set.batches[i]);
  }
  if (!draws) return out;
  predictive.marginal(
      *draws, set.batches.size(), [&](std::size_t i) -> const Batch& { return set.batches[i]; },
      [&](std::size_t i, const Predictions& predictions) {
        out.add_marginal(predictions, set.batches[i]);
      },
      intercept_at);
  return out;
}

}  // namespace

PosteriorEvaluation evaluate_posterior(const Dataset& data, Model& model, const ServerState& state,
                                       const std::optional<DrawSettings>& draws,
                                       const PredictiveUse& use,
                                       std::span<const UnlikeSet> unlike) {
  if (data.test_size() == 0) {
    throw InputError(
        fmt::format("evaluate: {} must have held-out examples, but has none", data.info().name));
  }
  const std::size_t batches = (data.test_size() + kChunk - 1) / kChunk;
  Batch batch;
  const auto batch_at = [&](std::size_t i) -> const Batch& {
    data.test_batch(i * kChunk, std::min((i + 1) * kChunk, data.test_size()), batch);
    return batch;
  };
  Predictive predictive(model, state, use);
  Board point(data, likelihood_at(model, predictive.weights().span()), model.outputs());
  Board marginal(data, draws ? average_likelihood(model, state.global) : model.likelihood(),
                 model.outputs());
  const OwnIntercepts own = own_intercepts(data, model, predictive.weights().span());
  const InterceptAt intercept_at = [&](std::size_t i, std::size_t row) -> const OwnIntercept& {
    return own.of(data.test_clients()[data.test_client(i * kChunk + row)]);
  };
  const bool selects = can_be_selective(model.target());
  if (!selects && !unlike.empty()) {
    throw InputError(
        "evaluate: unlike examples can be told apart where the outcome is a class or yes or no, "
        "but "
        "here it is not");
  }
  SelectiveScores selective(model.target(), model.outputs());
  UnlikenessScores like(model);
  for (std::size_t i = 0; i < batches; ++i) {
    const Predictions predictions = predictive.point(batch_at(i), intercept_at, i);
    point.add(i * kChunk, batch, predictions);
    if (selects) selective.add_point(predictions, batch);
    if (!unlike.empty()) like.add_point(predictions, predictive.weights().span(), batch);
  }
  std::optional<DrawSettings> with_entropy = draws;
  if (draws) {
    with_entropy->entropy = selects;
    predictive.marginal(
        *with_entropy, batches, batch_at,
        [&](std::size_t i, const Predictions& predictions) {
          marginal.add(i * kChunk, batch_at(i), predictions);
          if (selects) selective.add_marginal(predictions, batch);
          if (!unlike.empty()) like.add_marginal(predictions, batch);
        },
        intercept_at);
  }
  PosteriorEvaluation out{.examples = point.all().examples(),
                          .metrics = point.all().metrics(),
                          .point = point.all().reliability(),
                          .marginal = {},
                          .clients = {},
                          .risk = point.all().risk()};
  if (selects) out.selective = selective.report();
  for (const UnlikeSet& set : unlike) {
    out.detection.push_back(
        detection_of(like, unlikeness_of(set, model, predictive, with_entropy, own), set.name));
  }
  if (draws) {
    append_marginal(marginal.all().metrics(), out.metrics);
    out.marginal = marginal.all().reliability();
    out.marginal_risk = marginal.all().risk();
  }
  for (const auto& [client, scorer] : point.clients()) {
    ClientEvaluation row{data.test_clients()[client], scorer.examples(), scorer.metrics(),
                         scorer.risk()};
    if (draws) {
      const Scorer& over_draws = marginal.clients().at(client);
      append_marginal(over_draws.metrics(), row.metrics);
      row.marginal_risk = over_draws.risk();
    }
    out.clients.push_back(std::move(row));
  }
  return out;
}

}  // namespace fedep
