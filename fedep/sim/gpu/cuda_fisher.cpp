#include "fedep/sim/gpu/cuda_fisher.h"

#include <algorithm>
#include <utility>

#include "fedep/message/check.h"
#include "fedep/sim/chain/fisher_pass.h"

namespace fedep {
namespace {

// Minibatches that together fill a GPU, if they are not of more than so many examples of a client
// or, with weights of their own, of more than so many bytes.
constexpr std::size_t kFullRows = 100, kMostExamples = 256, kMostBytes = std::size_t(8) << 30;

// The most that goes into `all` without a rest.
std::size_t divisor_of(std::size_t all, std::size_t most) {
  while (all % most != 0) --most;
  return most;
}

}  // namespace

CudaFisher::Rows::Rows(const CudaParts& parts, const FisherRows& asked, const MakeModel& make_model)
    : layout(asked),
      count(parts.clients * asked.at_once),
      wide_model(asked.at_once > 1 ? make_model(count) : nullptr),
      model(wide_model != nullptr ? *wide_model : parts.model),
      batches(parts.data, count, parts.examples, parts.model.features()),
      draw(1),
      dropout(count),
      dropout_again(count),
      labels(count),
      weights(count) {}

gpu::DrawStreams CudaFisher::Rows::streams() {
  return {.rows = int(count),
          .at_once = layout.of == FisherRows::Of::draws ? int(layout.at_once) : 1,
          .draw = draw.data(),
          .at = batches.augment(),
          .dropout = dropout.data(),
          .dropout_again = dropout_again.data(),
          .labels = labels.data(),
          .weights = weights.data()};
}

CudaFisher::CudaFisher(const CudaParts& parts, MakeModel make_model, const LabelTape* tape)
    : parts_(parts),
      widths_(parts.clients),
      make_model_(std::move(make_model)),
      tape_(tape),
      examples_(parts.clients),
      rest_nu_(parts.clients),
      bounds_(2 * parts.clients),
      partial_(2 * gpu::kPartials * parts.clients) {}

void CudaFisher::begin(const CohortRound& round) {
  round_ = &round;
  epochs_.reset();
  loaded_ = false;
}

int CudaFisher::batches(std::size_t row, int epochs) { return int(passes(epochs)[row].size()); }

std::size_t CudaFisher::most_at_once() const {
  if (make_model_ == nullptr) return 1;
  const std::size_t weights = parts_.clients * parts_.coordinates.stride() * sizeof(float);
  return std::max<std::size_t>(
      std::min({kFullRows / parts_.clients, kMostExamples / parts_.examples, kMostBytes / weights}),
      1);
}

const std::vector<Minibatches>& CudaFisher::passes(int epochs) {
  if (epochs_ == epochs) return passes_;
  passes_ = fisher_passes(*round_, epochs);
  epochs_ = epochs;
  loaded_ = false;
  return passes_;
}

CudaFisher::Rows& CudaFisher::load(int epochs, const FisherRows& layout) {
  passes(epochs);
  if (rows_ == nullptr || rows_->layout != layout) {
    rows_.reset();  // before the next one asks for memory
    rows_ = std::make_unique<Rows>(parts_, layout, make_model_);
    loaded_ = false;
  }
  Rows& rows = *rows_;
  rows.draw.zero();
  if (loaded_) {
    rows.batches.go_to(0);
    return rows;
  }
  const CohortOrder order = fisher_order(parts_.room(), *round_, passes_, layout);
  if (rows.batches.load(order)) rows.graphs.clear();
  rows.widths = step_widths(widths_, order, order.steps(), layout.at_once);
  const std::size_t clients = round_->visits.size();
  std::vector<StreamAddress> dropout(rows.count), labels(rows.count), weights(rows.count);
  std::vector<float> examples(parts_.clients);
  for (std::size_t row = 0; row < clients * layout.at_once; ++row) {
    const std::size_t c = row / layout.at_once;
    dropout[row] = stream_address(round_->address(c, Purpose::dropout, 0));
    labels[row] = stream_address(round_->address(c, Purpose::labels, 0));
    weights[row] = stream_address(round_->address(c, Purpose::posterior, 0));
    examples[c] = float(round_->visits[c].client.examples);
  }
  rows.dropout.upload(dropout);
  rows.dropout_again.upload(dropout);
  rows.labels.upload(labels);
  rows.weights.upload(weights);
  examples_.upload(examples);
  make_once(fisher_, parts_.clients * parts_.coordinates.stride());
  loaded_ = true;
  return rows;
}

std::vector<std::int32_t> CudaFisher::labels_of_tape(const Rows& rows, std::size_t step,
                                                     int draw) const {
  const std::size_t at_once = rows.layout.at_once;
  std::vector<std::int32_t> labels(rows.count * parts_.examples);
  for (std::size_t row = 0; row < passes_.size() * at_once; ++row) {
    const std::size_t c = row / at_once;
    const int t = rows.layout.minibatch(step, row % at_once);
    if (std::size_t(t) >= passes_[c].size()) continue;
    const int own_draw = rows.layout.draw(draw, row % at_once);
    const auto drawn = tape_->at(round_->address(c, Purpose::labels, fisher_step(t, own_draw)));
    check_same_size("CudaFisher", "labels on the tape", passes_[c][std::size_t(t)].size(),
                    drawn.size());
    std::copy(drawn.begin(), drawn.end(), labels.begin() + std::ptrdiff_t(row * parts_.examples));
  }
  return labels;
}

void CudaFisher::add_squares(Rows& rows, std::size_t clients, const float* theta, std::size_t step,
                             int draw) {
  if (tape_ != nullptr) {
    const std::vector<std::int32_t> labels = labels_of_tape(rows, step, draw);
    copy_to_device(rows.batches.labels(), labels.data(), labels.size() * sizeof(std::int32_t));
  }
  CohortBatch batch = rows.batches.batch();
  batch.clients = clients * rows.layout.at_once;
  batch.dropout = rows.dropout.data();
  rows.model.add_squared_gradients(batch, theta, parts_.coordinates.stride(),
                                   tape_ == nullptr ? rows.labels.data() : nullptr,
                                   rows.dropout_again.data(),
                                   {.sum = fisher_.data(),
                                    .minibatches = rows.layout.at_once,
                                    .one_theta = rows.layout.of == FisherRows::Of::minibatches});
}

void CudaFisher::launch(Rows& rows, std::size_t width, const Captured& wanted,
                        const std::function<void()>& enqueue) {
  if (tape_ != nullptr) return enqueue();
  if (rows.captured != wanted) rows.graphs.clear();
  rows.captured = wanted;
  rows.graphs.resize(widths_.size());
  std::unique_ptr<StepGraph>& graph = rows.graphs[width];
  if (graph == nullptr) graph = std::make_unique<StepGraph>(enqueue);
  graph->launch();
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
  Rows& rows = load(epochs, {.of = FisherRows::Of::minibatches, .at_once = 1});
  fisher_.zero();
  if (std::size_t(t) < rows.widths.size()) {
    float* const stacked = chains.spare_rows();
    for (std::size_t c = 0; c < theta.size(); ++c) {
      copy_on_device(stacked + c * parts_.coordinates.stride(), theta[c].data(),
                     theta[c].size() * sizeof(float));
    }
    rows.batches.go_to(std::size_t(t));
    rows.batches.next();
    rows.draw.upload(std::vector<std::int32_t>{draw});
    gpu::begin_draw(rows.streams(), draw + 1, device_stream());
    add_squares(rows, parts_.clients, stacked, std::size_t(t), draw);
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
  Rows& rows = load(epochs, {.of = FisherRows::Of::minibatches, .at_once = most_at_once()});
  const float* const mean = chains.mean_rows();
  fisher_.zero();
  for (std::size_t step = 0; step < rows.widths.size(); ++step) {
    const std::size_t width = rows.widths[step];
    launch(rows, width, {.theta = mean, .mean = nullptr, .draws = 1}, [&] {
      rows.batches.next();
      gpu::begin_draw(rows.streams(), 1, device_stream());
      add_squares(rows, widths_[width], mean, step, 0);
    });
  }
  return copies_of(fisher_);
}

std::vector<DeviceVector> CudaFisher::running_fisher(const InferenceSettings& settings,
                                                     CudaChains& chains) {
  const std::size_t samples = std::size_t(settings.samples);
  const std::size_t at_once = divisor_of(samples, std::min(most_at_once(), samples));
  Rows& rows = load(settings.epochs, {.of = FisherRows::Of::draws, .at_once = at_once});
  const Coordinates& coordinates = parts_.coordinates;
  const CudaStream stream = device_stream();
  const float* const mean = chains.mean_rows();
  if (at_once > 1) make_once(rows.theta, rows.count * coordinates.stride());
  float* const theta = at_once > 1 ? rows.theta.data() : chains.spare_rows();
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
  const std::int32_t* const counts = rows.batches.batch().counts;
  const double beta = settings.decay;
  for (std::size_t step = 0; step < rows.widths.size(); ++step) {
    const std::size_t width = rows.widths[step], clients = widths_[width];
    rows.batches.next();
    for (int draw = 0; draw < settings.samples; draw += int(at_once)) {
      launch(rows, width, {.theta = theta, .mean = mean, .draws = settings.samples}, [&] {
        gpu::begin_draw(rows.streams(), settings.samples, stream);
        gpu::draw_weights({.rows = int(clients * at_once),
                           .at_once = int(at_once),
                           .stride = coordinates.stride(),
                           .count = counts,
                           .streams = rows.weights.data(),
                           .mean = mean,
                           .lambda = lambda_.data(),
                           .theta = theta},
                          coordinates.live_quads(), stream);
        add_squares(rows, clients, theta, step, draw);
      });
    }
    gpu::step_natural_gradient(state, coordinates.live(), counts, int(at_once), settings.samples,
                               float(beta), float(1 - beta), settings.clip_std, stream);
  }
  gpu::spread_rest(state, coordinates.dead(), stream);
  return copies_of(nu_);
}

}  // namespace fedep
