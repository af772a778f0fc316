#include "fedep/cuda/network/cohort_model.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "fedep/cuda/network/cohort_network.h"
#include "fedep/cuda/network/layer_kernels.h"
#include "fedep/message/error.h"

namespace fedep {

gpu::Geometry geometry_of(const ConvolutionShape& s) {
  return gpu::make_geometry(int(s.height), int(s.width), int(s.in), int(s.out_height),
                            int(s.out_width), int(s.out), int(s.kernel), int(s.stride),
                            int(s.pad_top), int(s.pad_left));
}

void check_extent(const gpu::Geometry& g, std::size_t rows) {
  // Examples × positions, below which weight_product.cu's quotients by floats are exact.
  constexpr std::size_t kMostSummed = (std::size_t(1) << 22) - 1;
  constexpr std::size_t kMostFloats = std::numeric_limits<int>::max();  // of a client's maps
  const std::size_t positions = std::size_t(g.output_positions());
  if (positions > std::size_t(gpu::kMostPositions)) {
    throw InputError(
        fmt::format("cohorts on the GPU have maps of at most {} positions, but these images make "
                    "one of {}x{}; use --device cpu",
                    gpu::kMostPositions, g.out_height, g.out_width));
  }
  const std::size_t map = std::max(std::size_t(g.input_positions()) * std::size_t(g.in),
                                   positions * std::size_t(g.out));
  const std::size_t most = std::min(kMostSummed / positions, kMostFloats / map);
  if (rows > most) {
    throw InputError(fmt::format(
        "batches on the GPU must be at most {} examples with this model, but are {}", most, rows));
  }
}

DeviceArray<float> zeros(std::size_t size) {
  DeviceArray<float> array(size);
  array.zero();
  return array;
}

gpu::Update update_of(const CohortChain& c, std::size_t offset) {
  gpu::Update u;
  u.theta = c.theta + offset;
  u.momentum = c.momentum + offset;
  u.eta = c.eta == nullptr ? nullptr : c.eta + offset;
  u.lambda = c.diagonal ? c.lambda + offset : c.lambda;
  u.diagonal = c.diagonal;
  u.stride = c.stride;
  u.per_example = c.per_example;
  u.lr = c.lr;
  u.mu = c.mu;
  u.rate = c.rate;
  return u;
}

gpu::SquaredSum CohortSink::squares_at(std::size_t offset) const {
  gpu::SquaredSum there = squares_;
  there.sum += offset;
  return there;
}

void CohortSink::weights(const gpu::Geometry& g, const gpu::CohortShape& cohort,
                         const gpu::WeightGradient& f, std::size_t offset) const {
  side_.follow_main();
  if (chain_ != nullptr) {
    gpu::update_weights(g, cohort, f, update_of(*chain_, offset), precise_, side_.stream());
  } else {
    gpu::add_squares(g, cohort, f, squares_at(offset), precise_, side_.stream());
  }
}

void CohortSink::bias(int positions, int out, const gpu::CohortShape& cohort, const float* dy,
                      std::size_t offset) const {
  side_.follow_main();
  if (chain_ != nullptr) {
    gpu::update_bias(positions, out, cohort, dy, update_of(*chain_, offset), side_.stream());
  } else {
    gpu::add_bias_squares(positions, out, cohort, dy, squares_at(offset), side_.stream());
  }
}

namespace {

class NetworkCohortModel final : public CohortModel {
 public:
  NetworkCohortModel(std::unique_ptr<CohortNetwork> network, const CohortCapacity& capacity)
      : network_(std::move(network)),
        capacity_(capacity),
        logits_(capacity.clients * capacity.rows * network_->outputs()),
        drawn_(capacity.clients * capacity.rows) {
    drawn_.zero();
  }

  std::size_t size() const override { return network_->size(); }
  std::size_t features() const override { return network_->features(); }
  std::size_t outputs() const override { return network_->outputs(); }

  void train_step(const CohortBatch& batch, const CohortChain& chain, double* loss) override {
    const gpu::CohortShape cohort = shape_of(batch);
    const CohortTheta weights{chain.theta, chain.stride};
    network_->forward(cohort, weights, batch.features, {batch.dropout}, logits_.data());
    const auto scale =
        chain.loss_times_batch ? gpu::DeltaScale::batch_sum : gpu::DeltaScale::batch_mean;
    gpu::softmax_delta(int(outputs()), cohort, batch.labels, scale, logits_.data(), loss,
                       device_stream());
    const CohortSink sink(chain, precise(), side_);
    network_->backward(cohort, weights, batch.features, logits_.data(), sink);
    sink.join();
  }

  void logits(const CohortBatch& batch, const float* theta, std::size_t stride,
              float* out) override {
    network_->forward(shape_of(batch), {theta, stride}, batch.features, {batch.dropout}, out);
  }

  void add_squared_gradients(const CohortBatch& batch, const float* theta, std::size_t stride,
                             const StreamAddress* draws, const StreamAddress* second_dropout,
                             const CohortSquares& squares) override {
    gpu::CohortShape cohort = shape_of(batch);
    check_minibatches(batch, squares);
    if (squares.one_theta) cohort.sharing = int(squares.minibatches);
    const std::int32_t* labels = batch.labels;
    network_->forward(cohort, {theta, stride}, batch.features, {batch.dropout}, logits_.data());
    if (draws != nullptr) {
      gpu::draw_labels(int(outputs()), cohort, draws, logits_.data(), drawn_.data(),
                       device_stream());
      labels = drawn_.data();
    }
    if (second_dropout != nullptr && network_->has_dropout()) {
      network_->forward(cohort, {theta, stride}, batch.features, {second_dropout}, logits_.data());
    }
    gpu::softmax_delta(int(outputs()), cohort, labels, gpu::DeltaScale::per_example, logits_.data(),
                       nullptr, device_stream());
    gpu::SquaredSum to;
    to.sum = squares.sum;
    to.stride = stride;
    to.minibatches = int(squares.minibatches);
    const CohortSink sink(to, precise(), side_);
    network_->backward(cohort, {theta, stride}, batch.features, logits_.data(), sink);
    sink.join();
  }

 private:
  bool precise() const { return capacity_.precision == ProductPrecision::float32; }

  // Kernels count the floats of all minibatches of a client in ints; images are the largest maps of
  // those models that have more than a thousand positions.
  void check_minibatches(const CohortBatch& batch, const CohortSquares& squares) const {
    const std::size_t most = std::size_t(std::numeric_limits<int>::max()) / features();
    if (squares.minibatches < 1 || batch.clients % squares.minibatches != 0 ||
        batch.rows * squares.minibatches > most) {
      throw InputError(
          fmt::format("cohort model: minibatches of a client must divide {} rows and have at most "
                      "{} examples together, but are {} of {}",
                      batch.clients, most, squares.minibatches, batch.rows));
    }
  }

  gpu::CohortShape shape_of(const CohortBatch& batch) const {
    if (batch.clients > capacity_.clients || batch.rows > capacity_.rows) {
      throw InputError(fmt::format(
          "cohort model: a batch must be at most {} clients of {} examples, but is {} of {}",
          capacity_.clients, capacity_.rows, batch.clients, batch.rows));
    }
    gpu::CohortShape cohort;
    cohort.clients = int(batch.clients);
    cohort.rows = int(batch.rows);
    cohort.counts = batch.counts;
    cohort.planned = int(capacity_.clients);
    return cohort;
  }

  std::unique_ptr<CohortNetwork> network_;
  CohortCapacity capacity_;
  DeviceArray<float> logits_;
  DeviceArray<std::int32_t> drawn_;
  SideStream side_;
};

}  // namespace

std::unique_ptr<CohortModel> make_network_cohort(std::unique_ptr<CohortNetwork> network,
                                                 const CohortCapacity& capacity) {
  return std::make_unique<NetworkCohortModel>(std::move(network), capacity);
}

}  // namespace fedep
