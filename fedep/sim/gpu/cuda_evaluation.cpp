#include "fedep/sim/gpu/cuda_evaluation.h"

#include <algorithm>

#include "fedep/cuda/device/device_data.h"
#include "fedep/cuda/device/parallel_for.h"
#include "fedep/cuda/round/fisher_kernels.h"
#include "fedep/metric/exact_sum.h"

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

// sim/scores' for labels, from what the GPU says about each example.
Metrics CudaEvaluation::scores(int draws, const Subsample& which) {
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

Metrics CudaEvaluation::at(const DeviceVector& theta, const Subsample& which) {
  predict(theta.data(), true);
  return scores(1, which);
}

Metrics CudaEvaluation::marginal(const DeviceMessage& q, const MarginalDraws& draws) {
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
  Metrics metrics =
      scores(draws.samples, {.seed = draws.seed, .round = draws.round, .examples = draws.examples});
  for (auto& [name, value] : metrics) name += "_marginal";
  return metrics;
}

Metrics CudaEvaluation::evaluate(const ServerState& state, const DeviceMessage& global,
                                 const DeviceVector& point, bool last) {
  const EvaluateSettings& settings = recipe_.evaluate;
  const Subsample which{
      .seed = recipe_.seed, .round = state.round, .examples = std::size_t(settings.examples)};
  Metrics metrics = at(point, which);
  reliability_ = {.point = bins_, .marginal = {}};
  if (is_marginal_due(recipe_, state, last) && is_proper(global)) {
    const Metrics drawn = marginal(global, {.seed = recipe_.seed,
                                            .round = state.round,
                                            .samples = settings.samples,
                                            .examples = which.examples});
    metrics.insert(metrics.end(), drawn.begin(), drawn.end());
    reliability_.marginal = bins_;
  }
  return metrics;
}

}  // namespace fedep
