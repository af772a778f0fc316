#include "fedep/sim/gpu/cuda_evaluation.h"

#include <algorithm>

#include "fedep/cuda/device/device_data.h"
#include "fedep/cuda/device/parallel_for.h"
#include "fedep/cuda/round/fisher_kernels.h"
#include "fedep/metric/exact_sum.h"
#include "fedep/sim/score/scores.h"
#include "fedep/sim/score/tempered.h"

namespace fedep {
namespace {

constexpr std::size_t kChunk = 2500;

}  // namespace

CudaEvaluation::CudaEvaluation(const Dataset& data, const Recipe& recipe,
                               ProductPrecision precision)
    : data_(data),
      recipe_(recipe),
      size_(data.test_size()),
      chunk_(std::clamp<std::size_t>(size_, 1, kChunk)),
      model_(make_cohort_model(recipe.model, data.info(),
                               {.clients = 1, .rows = chunk_, .precision = precision})),
      theta_(model_->size()),
      logits_(chunk_ * model_->outputs()),
      labels_(chunks() * chunk_),
      counts_(std::max<std::size_t>(chunks(), 1)),
      probabilities_(size_ * model_->outputs()),
      scores_(size_) {
  const std::size_t features = model_->features(), slots = chunks() * chunk_;
  cached_ = slots * features * sizeof(float) <= device_memory_free() / 8;
  features_ = DeviceArray<float>((cached_ ? slots : chunk_) * features);
  features_.zero();
  labels_.zero();
  std::vector<std::int32_t> counts(counts_.size());
  std::vector<Batch> batches(chunks());
  parallel_for(chunks(), [&](std::size_t i) {
    data.test_batch(i * chunk_, std::min((i + 1) * chunk_, size_), batches[i]);
    counts[i] = std::int32_t(batches[i].size);
    if (!cached_) batches[i].dense = {};
  });
  counts_.upload(counts);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const Batch& batch = batches[i];
    copy_to_device(labels_.data() + i * chunk_, batch.labels.data(),
                   batch.labels.size() * sizeof(std::int32_t));
    copy_to_device(features_.data() + i * chunk_ * features, batch.dense.data(),
                   (cached_ ? batch.dense.size() : 0) * sizeof(float));
  }
}

void CudaEvaluation::predict_chunk(std::size_t chunk, const float* features, const float* theta,
                                   bool first) {
  const CohortBatch batch{.clients = 1,
                          .rows = chunk_,
                          .features = features,
                          .labels = labels_.data() + chunk * chunk_,
                          .counts = counts_.data() + chunk,
                          .dropout = nullptr};
  const std::size_t begin = chunk * chunk_, count = std::min(chunk_, size_ - begin);
  const std::size_t outputs = model_->outputs();
  model_->logits(batch, theta, 0, logits_.data());
  gpu::add_softmax(count, int(outputs), logits_.data(), first,
                   probabilities_.data() + begin * outputs, device_stream());
}

void CudaEvaluation::predict(const float* theta, bool first) {
  if (size_ == 0) return;
  copy_on_device(theta_.data(), theta, theta_.size() * sizeof(float));
  if (!cached_) {
    Batch batch;
    for (std::size_t i = 0; i < chunks(); ++i) {
      data_.test_batch(i * chunk_, std::min((i + 1) * chunk_, size_), batch);
      copy_to_device(features_.data(), batch.dense.data(), batch.dense.size() * sizeof(float));
      predict_chunk(i, features_.data(), theta_.data(), first);
    }
    return;
  }
  std::unique_ptr<StepGraph>& graph = first ? first_draw_ : next_draw_;
  if (graph == nullptr) {
    graph = std::make_unique<StepGraph>([&] {
      for (std::size_t i = 0; i < chunks(); ++i) {
        predict_chunk(i, features_.data() + i * chunk_ * model_->features(), theta_.data(), first);
      }
    });
  }
  graph->launch();
}

// sim/score/scores' for labels, from what the GPU says about each example.
Metrics CudaEvaluation::scores(int draws, const Subsample& which, double temperature) {
  if (temperature != 1) return tempered_scores(draws, which, temperature);
  gpu::score_examples(size_, int(model_->outputs()), probabilities_.data(), double(draws),
                      labels_.data(), scores_.data(), device_stream());
  const std::vector<gpu::ExampleScore> examples = scores_.download();
  std::int64_t correct = 0;
  ExactSum nll, brier;
  std::vector<Forecast> forecasts;
  const std::vector<std::size_t> chosen = subsample(which, size_);
  forecasts.reserve(chosen.size());
  for (const std::size_t i : chosen) {
    const gpu::ExampleScore& example = examples[i];
    correct += example.correct;
    nll.add(example.nll);
    brier.add(example.brier);
    forecasts.push_back({example.confidence, example.correct != 0});
  }
  UniformBins bins;
  bins.add(forecasts);
  bins_ = bins.bins();
  const double n = double(chosen.size());
  return {{"accuracy", double(correct) / n},
          {"nll", nll.value() / n},
          {"ece", bins.ece()},
          {"brier", brier.value() / n}};
}

std::vector<double> CudaEvaluation::probabilities(int draws) const {
  std::vector<double> values = probabilities_.download();
  for (double& value : values) value /= double(draws);
  return values;
}

std::vector<std::int32_t> CudaEvaluation::labels() const {
  std::vector<std::int32_t> values = labels_.download();
  values.resize(size_);
  return values;
}

Metrics CudaEvaluation::tempered_scores(int draws, const Subsample& which, double temperature) {
  std::vector<double> all = probabilities(draws);
  const std::vector<std::int32_t> all_labels = labels();
  const std::size_t outputs = model_->outputs();
  temper(TargetKind::label, all, outputs, temperature);
  Batch batch;
  std::vector<double> chosen;
  for (const std::size_t i : subsample(which, size_)) {
    batch.labels.push_back(all_labels[i]);
    chosen.insert(chosen.end(), all.begin() + std::ptrdiff_t(i * outputs),
                  all.begin() + std::ptrdiff_t((i + 1) * outputs));
  }
  batch.size = batch.labels.size();
  const auto scores = make_scores(TargetKind::label, outputs);
  scores->add(chosen, {}, batch);
  bins_ = scores->reliability();
  return scores->metrics();
}

TemperatureLosses CudaEvaluation::losses(int draws) const {
  TemperatureLosses losses;
  losses.add_classes(probabilities(draws), model_->outputs(), labels());
  return losses;
}

Metrics CudaEvaluation::at(const DeviceVector& theta, const Subsample& which, double temperature) {
  predict(theta.data(), true);
  return scores(1, which, temperature);
}

TemperatureLosses CudaEvaluation::losses_at(const DeviceVector& theta) {
  predict(theta.data(), true);
  return losses(1);
}

TemperatureLosses CudaEvaluation::losses_marginal(const DeviceMessage& q,
                                                  const MarginalDraws& draws) {
  predict_draws(q, draws);
  return losses(draws.samples);
}

void CudaEvaluation::predict_draws(const DeviceMessage& q, const MarginalDraws& draws) {
  for (int draw = 0; draw < draws.samples; ++draw) {
    DeviceVector noise(q.size());
    gpu::fill_normals(stream_address({.seed = draws.seed,
                                      .purpose = Purpose::posterior,
                                      .round = std::uint32_t(draws.round),
                                      .step = std::uint32_t(draw)}),
                      noise.size(), noise.data(), device_stream());
    const DeviceVector theta = sample(q, noise);
    predict(theta.data(), draw == 0);
  }
}

Metrics CudaEvaluation::marginal(const DeviceMessage& q, const MarginalDraws& draws,
                                 double temperature) {
  predict_draws(q, draws);
  Metrics metrics =
      scores(draws.samples, {.seed = draws.seed, .round = draws.round, .examples = draws.examples},
             temperature);
  for (auto& [name, value] : metrics) name += "_marginal";
  return metrics;
}

}  // namespace fedep
