#include "fedep/sim/evaluation.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "fedep/data/append_batch.h"
#include "fedep/metric/probability.h"
#include "fedep/random/stream.h"

namespace fedep {
std::vector<std::size_t> subsample(const Subsample& which, std::size_t all) {
  if (which.examples == 0 || which.examples >= all) {
    std::vector<std::size_t> everyone(all);
    std::iota(everyone.begin(), everyone.end(), std::size_t(0));
    return everyone;
  }
  Stream stream(
      {.seed = which.seed, .purpose = Purpose::evaluation, .round = std::uint32_t(which.round)});
  return sample_without_replacement(stream, all, which.examples);
}

Evaluation::Evaluation(const Dataset& data, std::unique_ptr<Model> model,
                       const EvaluationMemory& memory)
    : data_(data), model_(std::move(model)), chunk_(memory.chunk) {
  const std::size_t row = data.info().sparse ? 64 : data.info().feature_count();
  if (data.test_size() * row * sizeof(float) > memory.cache_bytes) return;
  for (std::size_t begin = 0; begin < data.test_size(); begin += chunk_) {
    cached_.emplace_back();
    data.test_batch(begin, std::min(begin + chunk_, data.test_size()), cached_.back());
  }
}

const Batch& Evaluation::batch(std::size_t chunk) {
  if (!cached_.empty()) return cached_[chunk];
  const std::size_t begin = chunk * chunk_;
  data_.test_batch(begin, std::min(begin + chunk_, data_.test_size()), scratch_);
  return scratch_;
}

Evaluation::Predictions Evaluation::predict(const std::vector<HostVector<float>>& thetas,
                                            const Batch& examples) {
  const std::size_t outputs = model_->outputs();
  logits_.resize(examples.size * outputs);
  const bool spreads = model_->target() == TargetKind::real;
  ProbabilityMean average(logits_.size()), squares(spreads ? logits_.size() : 0);
  for (const HostVector<float>& theta : thetas) {
    model_->logits(theta.span(), examples, {}, logits_);
    std::vector<double> predictions = predictions_of(model_->target(), logits_, outputs);
    if (thetas.size() == 1) return {std::move(predictions), {}};
    average.add(predictions);
    if (!spreads) continue;
    for (double& x : predictions) x *= x;
    squares.add(predictions);
  }
  Predictions out{average.value(), {}};
  if (spreads) out.spread = squares.value();
  for (std::size_t i = 0; i < out.spread.size(); ++i) {
    out.spread[i] = variance_of_draws(out.mean[i], out.spread[i], thetas.size());
  }
  return out;
}

Batch Evaluation::gather(std::span<const std::size_t> examples) {
  Batch out, one;
  for (const std::size_t example : examples) {
    if (cached_.empty()) {
      data_.test_batch(example, example + 1, one);
    } else {
      const std::size_t row = example % chunk_;
      one = rows_of(cached_[example / chunk_], row, row + 1, data_.info().feature_count());
    }
    append(one, out);
  }
  return out;
}

Metrics Evaluation::average_over(const std::vector<HostVector<float>>& thetas,
                                 const Subsample& which) {
  const auto scores = make_scores(model_->likelihood(), model_->outputs());
  const auto score = [&](const Batch& examples) {
    const Predictions predictions = predict(thetas, examples);
    scores->add(predictions.mean, predictions.spread, examples);
  };
  if (which.examples > 0 && which.examples < data_.test_size()) {
    const std::vector<std::size_t> chosen = subsample(which, data_.test_size());
    for (std::size_t begin = 0; begin < chosen.size(); begin += chunk_) {
      score(gather(std::span(chosen).subspan(begin, std::min(chunk_, chosen.size() - begin))));
    }
  } else {
    const std::size_t chunks = (data_.test_size() + chunk_ - 1) / chunk_;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) score(batch(chunk));
  }
  reliability_ = scores->reliability();
  return scores->metrics();
}

Metrics Evaluation::at(const HostVector<float>& theta, const Subsample& which) {
  return average_over({theta}, which);
}

Metrics Evaluation::marginal(const Message& q, const MarginalDraws& draws) {
  std::vector<HostVector<float>> thetas;
  for (int draw = 0; draw < draws.samples; ++draw) {
    HostVector<float> noise(q.size());
    fill_normal({.seed = draws.seed,
                 .purpose = Purpose::posterior,
                 .round = std::uint32_t(draws.round),
                 .step = std::uint32_t(draw)},
                noise.span());
    thetas.push_back(sample(q, noise));
  }
  Metrics metrics =
      average_over(thetas, {.seed = draws.seed, .round = draws.round, .examples = draws.examples});
  for (auto& [name, value] : metrics) name += "_marginal";
  return metrics;
}

std::vector<ClientMetrics> Evaluation::per_client(const HostVector<float>& theta) {
  const std::size_t features = data_.info().feature_count();
  std::map<std::size_t, std::unique_ptr<Scores>> by_client;
  const std::size_t chunks = (data_.test_size() + chunk_ - 1) / chunk_;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const Batch& examples = batch(chunk);
    const std::vector<double> predictions = predict({theta}, examples).mean;
    for (std::size_t begin = 0; begin < examples.size;) {
      const std::size_t client = data_.test_client(chunk * chunk_ + begin);
      std::size_t end = begin + 1;
      while (end < examples.size && data_.test_client(chunk * chunk_ + end) == client) ++end;
      auto& scores = by_client[client];
      if (!scores) scores = make_scores(model_->likelihood(), model_->outputs());
      const std::size_t outputs = model_->outputs();
      scores->add(std::span(predictions).subspan(begin * outputs, (end - begin) * outputs), {},
                  rows_of(examples, begin, end, features));
      begin = end;
    }
  }
  std::vector<ClientMetrics> out;
  for (const auto& [client, scores] : by_client) {
    out.push_back({data_.test_clients()[client], scores->metrics()});
  }
  return out;
}

}  // namespace fedep
