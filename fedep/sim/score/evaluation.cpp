#include "fedep/sim/score/evaluation.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "fedep/algorithm/algorithm.h"
#include "fedep/data/append_batch.h"
#include "fedep/metric/parts.h"
#include "fedep/random/stream.h"
#include "fedep/sim/ranks/ranks.h"
#include "fedep/sim/rows/own_intercept.h"
#include "fedep/sim/score/tempered.h"

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

bool is_marginal_due(const Recipe& recipe, const ServerState& state, bool last) {
  const EvaluateSettings& settings = recipe.evaluate;
  if (settings.samples <= 0 || state.phase < 0) return false;
  const auto& phase = recipe.phases[std::size_t(state.phase)];
  if (find_algorithm(phase.algorithm).point_estimate) return false;
  return last || (settings.marginal_every > 0 && state.round % settings.marginal_every == 0);
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

InterceptAt Evaluation::intercepts(const Batches& batches, const OwnIntercepts& own) const {
  return [this, &batches, &own](std::size_t number, std::size_t row) -> const OwnIntercept& {
    return own.of(data_.test_clients()[data_.test_client(batches.example(number, row))]);
  };
}

std::vector<double> Evaluation::predict(const HostVector<float>& theta, const Batch& examples,
                                        const Batches& among, std::size_t number,
                                        const OwnIntercepts& own) {
  logits_.resize(examples.size * model_->outputs());
  model_->logits(theta.span(), examples, {}, logits_);
  add_own_intercepts(*model_, theta.span(), number, intercepts(among, own), 0, logits_);
  return predictions_of(model_->target(), logits_, model_->outputs());
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

Evaluation::Batches Evaluation::chosen(const Subsample& which) {
  const auto batches_of = [&](std::size_t examples) { return (examples + chunk_ - 1) / chunk_; };
  if (which.examples == 0 || which.examples >= data_.test_size()) {
    return {batches_of(data_.test_size()),
            [this](std::size_t i) -> const Batch& { return batch(i); },
            [this](std::size_t i, std::size_t row) { return i * chunk_ + row; }};
  }
  const std::vector<std::size_t> all = subsample(which, data_.test_size());
  return {batches_of(which.examples),
          [this, all](std::size_t i) -> const Batch& {
            const std::size_t begin = i * chunk_;
            scratch_ = gather(std::span(all).subspan(begin, std::min(chunk_, all.size() - begin)));
            return scratch_;
          },
          [this, all](std::size_t i, std::size_t row) { return all[i * chunk_ + row]; }};
}

// Whole batches, so that a prediction has the same bits whoever makes it.
Evaluation::Batches Evaluation::shared(Batches all) const {
  if (ranks_ == nullptr) return all;
  const std::size_t first = ranks_->rank(), step = ranks_->size();
  const std::size_t count = all.count > first ? (all.count - first - 1) / step + 1 : 0;
  return {count,
          [at = std::move(all.at), first, step](std::size_t i) -> const Batch& {
            return at(first + i * step);
          },
          [example = std::move(all.example), first, step](std::size_t i, std::size_t row) {
            return example(first + i * step, row);
          }};
}

template <class Sums>
void Evaluation::add_others(Sums& sums) const {
  if (ranks_ == nullptr) return;
  PartsWriter mine;
  sums.parts(mine);
  const std::vector<Bytes> all = ranks_->gather(mine.bytes());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (rank == ranks_->rank()) continue;
    PartsAdder theirs(all[rank]);
    sums.parts(theirs);
  }
}

Metrics Evaluation::metrics_of(const Scores& scores) {
  reliability_ = scores.reliability();
  return scores.metrics();
}

Metrics Evaluation::at(const HostVector<float>& theta, const Subsample& which, double temperature) {
  const auto scores = make_scores(likelihood_at(*model_, theta.span()), model_->outputs());
  const Batches batches = shared(chosen(which));
  const OwnIntercepts own = own_intercepts(data_, *model_, theta.span());
  for (std::size_t i = 0; i < batches.count; ++i) {
    const Batch& examples = batches.at(i);
    std::vector<double> predictions = predict(theta, examples, batches, i, own);
    temper(model_->target(), predictions, model_->outputs(), temperature);
    scores->add(predictions, {}, examples);
  }
  add_others(*scores);
  return metrics_of(*scores);
}

// Where clients' own intercepts are known at q's mean.
OwnIntercepts Evaluation::own_intercepts_of(const Message& q) const {
  if (!extras_of(model_->layout()).log_site_sd) return {};
  return own_intercepts(data_, *model_, mean(q).span());
}

TemperatureLosses Evaluation::losses_at(const HostVector<float>& theta) {
  TemperatureLosses losses;
  const Batches batches = shared(chosen({}));
  const OwnIntercepts own = own_intercepts(data_, *model_, theta.span());
  for (std::size_t i = 0; i < batches.count; ++i) {
    const Batch& examples = batches.at(i);
    add_losses(model_->target(), predict(theta, examples, batches, i, own), model_->outputs(),
               examples, losses);
  }
  add_others(losses);
  return losses;
}

TemperatureLosses Evaluation::losses_marginal(const Message& q, const MarginalDraws& draws) {
  TemperatureLosses losses;
  const Batches batches = shared(chosen({}));
  const OwnIntercepts own = own_intercepts_of(q);
  average_over_draws(
      *model_, q, {.seed = draws.seed, .round = draws.round, .samples = draws.samples},
      batches.count, batches.at,
      [&](std::size_t i, const Predictions& predictions) {
        add_losses(model_->target(), predictions.mean, model_->outputs(), batches.at(i), losses);
      },
      intercepts(batches, own));
  add_others(losses);
  return losses;
}

Metrics Evaluation::marginal(const Message& q, const MarginalDraws& draws, double temperature) {
  const auto scores = make_scores(average_likelihood(*model_, q), model_->outputs());
  const OwnIntercepts own = own_intercepts_of(q);
  const Batches batches =
      shared(chosen({.seed = draws.seed, .round = draws.round, .examples = draws.examples}));
  average_over_draws(
      *model_, q, {.seed = draws.seed, .round = draws.round, .samples = draws.samples},
      batches.count, batches.at,
      [&](std::size_t i, const Predictions& predictions) {
        std::vector<double> mean = predictions.mean;
        temper(model_->target(), mean, model_->outputs(), temperature);
        scores->add(mean, predictions.spread, batches.at(i));
      },
      intercepts(batches, own));
  add_others(*scores);
  Metrics metrics = metrics_of(*scores);
  for (auto& [name, value] : metrics) name += "_marginal";
  return metrics;
}

std::vector<ClientMetrics> Evaluation::per_client(const HostVector<float>& theta) {
  const std::size_t features = data_.info().feature_count();
  const OwnIntercepts own = own_intercepts(data_, *model_, theta.span());
  const Batches batches = chosen({});
  std::map<std::size_t, std::unique_ptr<Scores>> by_client;
  const std::size_t chunks = (data_.test_size() + chunk_ - 1) / chunk_;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const Batch& examples = batch(chunk);
    const std::vector<double> predictions = predict(theta, examples, batches, chunk, own);
    for (std::size_t begin = 0; begin < examples.size;) {
      const std::size_t client = data_.test_client(chunk * chunk_ + begin);
      std::size_t end = begin + 1;
      while (end < examples.size && data_.test_client(chunk * chunk_ + end) == client) ++end;
      auto& scores = by_client[client];
      const std::size_t outputs = model_->outputs();
      if (!scores) scores = make_scores(likelihood_at(*model_, theta.span()), outputs);
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
