#include "fedep/sim/cuda_fisher.h"

#include <algorithm>

#include "fedep/message/check.h"
#include "fedep/sim/fisher_pass.h"

namespace fedep {

CudaFisher::CudaFisher(const CudaParts& parts, const LabelTape* tape)
    : parts_(parts),
      tape_(tape),
      batches_(parts.data, parts.clients, parts.examples, parts.model.features()),
      draw_(1),
      dropout_(parts.clients),
      dropout_again_(parts.clients),
      labels_(parts.clients),
      weights_(parts.clients),
      examples_(parts.clients),
      rest_nu_(parts.clients),
      bounds_(2 * parts.clients),
      partial_(2 * gpu::kPartials * parts.clients) {}

void CudaFisher::begin(const CohortRound& round) {
  round_ = &round;
  epochs_.reset();
}

int CudaFisher::batches(std::size_t row, int epochs) {
  load(epochs);
  return int(passes_[row].size());
}

int CudaFisher::most_batches() const {
  std::size_t most = 0;
  for (const Minibatches& pass : passes_) most = std::max(most, pass.size());
  return int(most);
}

void CudaFisher::load(int epochs) {
  if (epochs_ == epochs) return;
  const std::size_t clients = round_->visits.size();
  FisherOrder order = fisher_order(parts_, *round_, epochs);
  passes_ = std::move(order.passes);
  if (batches_.load(order.order)) {
    sum_graph_.reset();
    draw_graph_.reset();
  }
  std::vector<StreamAddress> dropout(parts_.clients), labels(parts_.clients),
      weights(parts_.clients);
  std::vector<float> examples(parts_.clients);
  for (std::size_t c = 0; c < clients; ++c) {
    dropout[c] = stream_address(round_->address(c, Purpose::dropout, 0));
    labels[c] = stream_address(round_->address(c, Purpose::labels, 0));
    weights[c] = stream_address(round_->address(c, Purpose::posterior, 0));
    examples[c] = float(round_->visits[c].client.examples);
  }
  dropout_.upload(dropout);
  dropout_again_.upload(dropout);
  labels_.upload(labels);
  weights_.upload(weights);
  examples_.upload(examples);
  draw_.zero();
  make_once(fisher_, parts_.clients * parts_.coordinates.stride());
  epochs_ = epochs;
}

gpu::DrawStreams CudaFisher::streams() {
  return {.clients = int(parts_.clients),
          .draw = draw_.data(),
          .at = batches_.augment(),
          .dropout = dropout_.data(),
          .dropout_again = dropout_again_.data(),
          .labels = labels_.data(),
          .weights = weights_.data()};
}

void CudaFisher::add_squares(const float* theta) {
  CohortBatch batch = batches_.batch();
  batch.dropout = dropout_.data();
  parts_.model.add_squared_gradients(batch, theta, parts_.coordinates.stride(), labels_.data(),
                                     dropout_again_.data(), fisher_.data());
}

void CudaFisher::add_squares_of_tape(const float* theta, int t, int draw) {
  std::vector<std::int32_t> labels(parts_.clients * parts_.examples);
  for (std::size_t c = 0; c < passes_.size(); ++c) {
    if (std::size_t(t) >= passes_[c].size()) continue;
    const auto drawn = tape_->at(round_->address(c, Purpose::labels, fisher_step(t, draw)));
    check_same_size("CudaFisher", "labels on the tape", passes_[c][std::size_t(t)].size(),
                    drawn.size());
    std::copy(drawn.begin(), drawn.end(), labels.begin() + std::ptrdiff_t(c * parts_.examples));
  }
  copy_to_device(batches_.labels(), labels.data(), labels.size() * sizeof(std::int32_t));
  CohortBatch batch = batches_.batch();
  batch.dropout = dropout_.data();
  parts_.model.add_squared_gradients(batch, theta, parts_.coordinates.stride(), nullptr,
                                     dropout_again_.data(), fisher_.data());
}

std::vector<DeviceVector> CudaFisher::copies_of(const DeviceArray<float>& rows) const {
  std::vector<DeviceVector> copies;
  for (std::size_t c = 0; c < round_->visits.size(); ++c) {
    copies.emplace_back(parts_.coordinates.size());
    copy_on_device(copies.back().data(), rows.data() + c * parts_.coordinates.stride(),
                   copies.back().size() * sizeof(float));
  }
  return copies;
}

std::vector<DeviceVector> CudaFisher::squared_gradients(const std::vector<DeviceVector>& theta,
                                                        int t, int epochs, int draw,
                                                        CudaChains& chains) {
  load(epochs);
  fisher_.zero();
  if (t < most_batches()) {
    float* const rows = chains.spare_rows();
    for (std::size_t c = 0; c < theta.size(); ++c) {
      copy_on_device(rows + c * parts_.coordinates.stride(), theta[c].data(),
                     theta[c].size() * sizeof(float));
    }
    batches_.go_to(std::size_t(t));
    batches_.next();
    draw_.upload(std::vector<std::int32_t>{draw});
    gpu::begin_draw(streams(), draw + 1, device_stream());
    if (tape_ != nullptr) {
      add_squares_of_tape(rows, t, draw);
    } else {
      add_squares(rows);
    }
  }
  return copies_of(fisher_);
}

DeviceVector CudaFisher::noise(std::size_t row, int t, int draw) const {
  DeviceVector out(parts_.coordinates.size());
  const Address address = round_->address(row, Purpose::posterior, fisher_step(t, draw));
  gpu::fill_normals(stream_address(address), out.size(), out.data(), device_stream());
  return out;
}

std::vector<DeviceVector> CudaFisher::fisher_sum(int epochs, CudaChains& chains) {
  load(epochs);
  const float* const mean = chains.mean_rows();
  fisher_.zero();
  batches_.go_to(0);
  draw_.zero();
  const auto enqueue = [&] {
    batches_.next();
    gpu::begin_draw(streams(), 1, device_stream());
    if (tape_ == nullptr) add_squares(mean);
  };
  const Captured wanted{.theta = mean, .mean = nullptr, .draws = 1};
  if (tape_ == nullptr && (sum_graph_ == nullptr || captured_sum_ != wanted)) {
    sum_graph_ = std::make_unique<StepGraph>(enqueue);
    captured_sum_ = wanted;
  }
  for (int t = 0; t < most_batches(); ++t) {
    if (tape_ == nullptr) {
      sum_graph_->launch();
    } else {
      enqueue();
      add_squares_of_tape(mean, t, 0);
    }
  }
  return copies_of(fisher_);
}

std::vector<DeviceVector> CudaFisher::running_fisher(const InferenceSettings& settings,
                                                     CudaChains& chains) {
  load(settings.epochs);
  const Coordinates& coordinates = parts_.coordinates;
  const CudaStream stream = device_stream();
  const float* const mean = chains.mean_rows();
  float* const theta = chains.spare_rows();
  make_once(nu_, fisher_.size());
  make_once(lambda_, fisher_.size());
  gpu::NaturalGradient state{.clients = int(round_->visits.size()),
                             .stride = coordinates.stride(),
                             .size = coordinates.size(),
                             .examples = examples_.data(),
                             .prior = chains.lambda_rows(),
                             .diagonal = chains.diagonal(),
                             .fisher = fisher_.data(),
                             .nu = nu_.data(),
                             .lambda = lambda_.data(),
                             .rest_nu = rest_nu_.data(),
                             .partial = partial_.data(),
                             .bounds = bounds_.data()};
  // Everywhere: weights are drawn four at a time, some of which may have no gradient.
  gpu::begin_natural_gradient(state, coordinates.all(), float(settings.initial_scale), stream);
  batches_.go_to(0);
  draw_.zero();
  const auto enqueue = [&] {
    gpu::begin_draw(streams(), settings.samples, stream);
    gpu::draw_weights(int(parts_.clients), coordinates.stride(), coordinates.live_quads(),
                      batches_.batch().counts, weights_.data(), mean, lambda_.data(), theta,
                      stream);
    if (tape_ == nullptr) add_squares(theta);
  };
  const Captured wanted{.theta = theta, .mean = mean, .draws = settings.samples};
  if (tape_ == nullptr && (draw_graph_ == nullptr || captured_draw_ != wanted)) {
    draw_graph_ = std::make_unique<StepGraph>(enqueue);
    captured_draw_ = wanted;
  }
  const double beta = settings.decay;
  for (int t = 0; t < most_batches(); ++t) {
    batches_.next();
    for (int draw = 0; draw < settings.samples; ++draw) {
      if (tape_ == nullptr) {
        draw_graph_->launch();
      } else {
        enqueue();
        add_squares_of_tape(theta, t, draw);
      }
    }
    gpu::step_natural_gradient(state, coordinates.live(), batches_.batch().counts, settings.samples,
                               float(beta), float(1 - beta), settings.clip_std, stream);
  }
  gpu::spread_rest(state, coordinates.dead(), stream);
  return copies_of(nu_);
}

}  // namespace fedep
