#include "fedep/sim/gpu/cuda_chains.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "fedep/cuda/round/moment_kernels.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

// Steps in one launch, at most: between launches the GPU rests for microseconds.
constexpr std::size_t kMostSteps = 8;

}  // namespace

CudaChains::CudaChains(const CudaParts& parts)
    : parts_(parts),
      batches_(parts.data, parts.clients, parts.examples, parts.model.features()),
      theta_(parts.clients * parts.coordinates.stride()),
      momentum_(parts.clients * parts.coordinates.stride()),
      per_example_(parts.clients),
      sigma_(parts.clients),
      loss_(parts.clients),
      epoch_steps_(parts.clients),
      langevin_(parts.clients),
      widths_(parts.clients) {
  theta_.zero();
  momentum_.zero();
}

gpu::ChainRows CudaChains::rows(std::size_t clients) {
  const ChainSettings& settings = round_->settings;
  return {.clients = int(clients),
          .stride = parts_.coordinates.stride(),
          .theta = theta_.data(),
          .momentum = momentum_.data(),
          .eta = with_eta_ ? eta_.data() : nullptr,
          .lambda = lambda_.data(),
          .diagonal = diagonal_,
          .per_example = per_example_.data(),
          .lr = float(settings.client.optimizer.lr),
          .mu = float(settings.client.optimizer.momentum),
          .rate = settings.scheduled ? rate_.data() : nullptr,
          .sum = settings.averages ? sum_.data() : nullptr,
          .mean = mean_.data(),
          .squares = settings.keeps_variance ? squares_.data() : nullptr};
}

void CudaChains::begin(const CohortRound& round, const DeviceVector& start, bool with_eta) {
  round_ = &round;
  const ChainSettings& settings = round.settings;
  const std::size_t clients = round.visits.size(), size = parts_.coordinates.size();
  check_same_size("CudaChains", "start", size, start.size());
  steps_.assign(clients, 0);
  losses_.clear();
  samples_ = kept_ = waiting_sampled_ = waiting_ = epochs_run_ = 0;
  if (settings.scheduled) make_once(rate_, parts_.clients);
  if (settings.averages) make_once(sum_, theta_.size());

  std::vector<float> per_example(parts_.clients), sigma(parts_.clients);
  std::vector<StreamAddress> langevin(parts_.clients);
  const double mu = settings.client.optimizer.momentum, lr = settings.client.optimizer.lr;
  for (std::size_t c = 0; c < clients; ++c) {
    const std::size_t n = round.visits[c].client.examples;
    per_example[c] = n > 0 ? float(1 / double(n)) : 0.0f;
    // sim/chain/chain.cpp says why this is the noise.
    sigma[c] = float(std::sqrt(2 * (1 - mu) * double(per_example[c]) / lr));
    langevin[c] = stream_address(round.address(c, Purpose::langevin, 0));
  }
  per_example_.upload(per_example);
  sigma_.upload(sigma);
  langevin_.upload(langevin);
  loss_.zero();
  start_rows(start, with_eta);
  ChainOrder order = chain_order(parts_.room(), round);
  own_batches_ = std::move(order.own_batches);
  stretches_.clear();
  for (const std::size_t width : step_widths(widths_, order.order, order.epoch_length)) {
    if (stretches_.empty() || stretches_.back().width != width) stretches_.push_back({width});
    ++stretches_.back().steps;
  }
  std::vector<std::int32_t> epoch_steps(parts_.clients);
  std::copy(own_batches_.begin(), own_batches_.end(), epoch_steps.begin());
  epoch_steps_.upload(epoch_steps);
  epoch_length_ = order.epoch_length;
  if (settings.scheduled) {
    if (rates_.size() < order.rates.size()) rates_ = DeviceArray<float>(order.rates.size());
    copy_to_device(rates_.data(), order.rates.data(), order.rates.size() * sizeof(float));
  }
  if (batches_.load(order.order)) stale_ = true;
  drop_stale_graphs();
  for (const Stretch& stretch : stretches_) capture(stretch);
  timer_.start();
}

void CudaChains::start_rows(const DeviceVector& start, bool with_eta) {
  const std::vector<CohortVisit>& visits = round_->visits;
  const std::size_t size = parts_.coordinates.size();
  with_eta_ = with_eta;
  diagonal_ = std::any_of(visits.begin(), visits.end(),
                          [](const CohortVisit& visit) { return !visit.cavity.isotropic(); });
  if (with_eta) make_once(eta_, theta_.size());
  make_once(lambda_, diagonal_ ? theta_.size() : parts_.clients);
  make_once(cavity_etas_, parts_.clients);
  make_once(cavity_lambdas_, parts_.clients);
  make_once(decays_, parts_.clients);
  std::vector<const float*> etas(parts_.clients), lambdas(parts_.clients);
  std::vector<float> numbers(parts_.clients), decays(parts_.clients);
  std::vector<DeviceVector> written_out;  // cavities that have a number where others have vectors
  for (std::size_t c = 0; c < visits.size(); ++c) {
    const DeviceMessage& cavity = visits[c].cavity;
    decays[c] = float(round_->settings.client.weight_decay * double(visits[c].client.examples));
    if (with_eta || diagonal_) check_same_size("CudaChains", "cavity", size, cavity.size());
    if (with_eta) etas[c] = cavity.eta().data();
    if (!diagonal_) {
      numbers[c] = cavity.lambda_scalar() + decays[c];
    } else if (cavity.isotropic()) {
      lambdas[c] = written_out.emplace_back(cavity.lambda_full()).data();
    } else {
      lambdas[c] = cavity.lambda_vector().data();
    }
  }
  if (!diagonal_) lambda_.upload(numbers);
  cavity_etas_.upload(etas);
  cavity_lambdas_.upload(lambdas);
  decays_.upload(decays);
  gpu::start_chains(rows(visits.size()),
                    {.size = size,
                     .theta = start.data(),
                     .eta = with_eta ? cavity_etas_.data() : nullptr,
                     .lambda = diagonal_ ? cavity_lambdas_.data() : nullptr,
                     .added = decays_.data(),
                     .eta_rows = eta_.data(),
                     .lambda_rows = lambda_.data()},
                    device_stream());
}

void CudaChains::enqueue_step(std::size_t clients) {
  const ChainSettings& settings = round_->settings;
  const gpu::ChainRows first = rows(clients);
  const CohortChain chain{.theta = first.theta,
                          .momentum = first.momentum,
                          .stride = first.stride,
                          .eta = first.eta,
                          .lambda = first.lambda,
                          .diagonal = first.diagonal,
                          .per_example = first.per_example,
                          .lr = first.lr,
                          .mu = first.mu,
                          .loss_times_batch = settings.client.loss_times_batch,
                          .rate = first.rate};
  batches_.next();
  if (settings.scheduled) {
    gpu::take_rates(rates_.data(), int(parts_.clients), batches_.step(), rate_.data(),
                    device_stream());
  }
  CohortBatch batch = batches_.batch();
  batch.clients = clients;
  parts_.model.train_step(batch, chain, loss_.data());
  const CudaStream stream = device_stream();
  const Coordinates& coordinates = parts_.coordinates;
  if (settings.langevin) {
    gpu::step_without_data(first, coordinates.dead(), batch.counts, stream);
    gpu::add_langevin(first, coordinates.size(), batch.counts, langevin_.data(), batches_.dropout(),
                      sigma_.data(), stream);
  }
  if (settings.averages) {
    gpu::add_to_sum(first, settings.langevin ? coordinates.all() : coordinates.live(), batch.counts,
                    stream);
  }
}

void CudaChains::drop_stale_graphs() {
  const ChainSettings& settings = round_->settings;
  const gpu::ChainRows all = rows(parts_.clients);
  const Captured wanted{.eta = all.eta,
                        .lambda = all.lambda,
                        .sum = all.sum,
                        .rates = settings.scheduled ? rates_.data() : nullptr,
                        .diagonal = diagonal_,
                        .averages = settings.averages,
                        .langevin = settings.langevin,
                        .loss_times_batch = settings.client.loss_times_batch,
                        .lr = all.lr,
                        .mu = all.mu};
  if (!stale_ && wanted == captured_) return;
  graphs_ = std::vector<Graphs>(widths_.size());
  captured_ = wanted;
  stale_ = false;
}

// `many` grows with the longest stretch there was.
void CudaChains::capture(const Stretch& stretch) {
  Graphs& graphs = graphs_[stretch.width];
  const auto steps = [&](std::size_t times) {
    const auto enqueue = [&] { enqueue_step(widths_[stretch.width]); };
    return std::make_unique<StepGraph>(enqueue, int(times));
  };
  if (graphs.one == nullptr) graphs.one = steps(1);
  const std::size_t wanted = std::min(stretch.steps, kMostSteps);
  if (wanted <= graphs.many_steps) return;
  graphs.many = steps(wanted);
  graphs.many_steps = wanted;
}

void CudaChains::launch(const Stretch& stretch) {
  const Graphs& graphs = graphs_[stretch.width];
  std::size_t left = stretch.steps;
  for (; left >= graphs.many_steps; left -= graphs.many_steps) graphs.many->launch();
  for (; left > 0; --left) graphs.one->launch();
}

void CudaChains::run_epoch(int) {
  const ChainSettings& settings = round_->settings;
  if (settings.averages) sum_.zero();
  for (const Stretch& stretch : stretches_) launch(stretch);
  for (std::size_t c = 0; c < steps_.size(); ++c) steps_[c] += own_batches_[c];
  timer_.stop();
  ++epochs_run_;
  if (!settings.langevin) ++waiting_;
}

void CudaChains::accumulate_moments() {
  const ChainSettings& settings = round_->settings;
  make_once(mean_, theta_.size());
  if (settings.keeps_variance) make_once(squares_, theta_.size());
  const bool waits = !settings.langevin && waiting_ == 1;
  if (!waits) catch_up();
  const gpu::ChainRows own = rows(steps_.size());
  const gpu::Chunks live = parts_.coordinates.live();
  ++samples_;
  // Without squares there are no passes to save.
  if (waits && settings.keeps_variance && kept_ < room_for_samples()) {
    gpu::keep_sample(own, live, epoch_steps_.data(), kept_samples_.data(), kept_, device_stream());
    ++kept_;
  } else {
    gpu::add_samples(own, waits ? live : parts_.coordinates.all(), epoch_steps_.data(),
                     kept_samples_.data(), kept_, true, samples_ - kept_, device_stream());
    kept_ = 0;
  }
  if (waits) {
    waiting_ = 0;
    ++waiting_sampled_;
  }
}

// How many samples may wait: none where memory is short.
int CudaChains::room_for_samples() {
  if (!most_kept_) {
    const std::size_t floats =
        gpu::kMostKept * parts_.clients * gpu::kept_stride(parts_.coordinates.live());
    most_kept_ = 2 * floats * sizeof(float) < device_memory_free() ? gpu::kMostKept : 0;
    if (*most_kept_ > 0) make_once(kept_samples_, floats);
  }
  return *most_kept_;
}

gpu::RateTable CudaChains::rates_from(int epoch) const {
  if (!round_->settings.scheduled) return {};
  return {.rates = rates_.data(),
          .epoch_length = int(epoch_length_),
          .clients = int(parts_.clients),
          .first_epoch = epoch};
}

// Brings moments and coordinates without gradients up to date.
void CudaChains::catch_up() {
  const gpu::ChainRows own = rows(steps_.size());
  if (kept_ > 0) {
    gpu::add_samples(own, parts_.coordinates.live(), epoch_steps_.data(), kept_samples_.data(),
                     kept_, false, samples_ - kept_ + 1, device_stream());
  }
  if (waiting_sampled_ > 0) {
    gpu::coast(own, parts_.coordinates.dead(), waiting_sampled_, epoch_steps_.data(),
               samples_ - waiting_sampled_ + 1, device_stream(),
               rates_from(epochs_run_ - waiting_ - waiting_sampled_));
  }
  if (waiting_ > 0) {
    gpu::coast(own, parts_.coordinates.dead(), waiting_, epoch_steps_.data(), 0, device_stream(),
               rates_from(epochs_run_ - waiting_));
  }
  kept_ = waiting_sampled_ = waiting_ = 0;
}

DeviceVector CudaChains::copy_of_row(const DeviceArray<float>& rows, std::size_t row) const {
  DeviceVector out(parts_.coordinates.size());
  copy_on_device(out.data(), rows.data() + row * parts_.coordinates.stride(),
                 out.size() * sizeof(float));
  return out;
}

DeviceVector CudaChains::iterate(std::size_t row) {
  catch_up();
  return copy_of_row(theta_, row);
}

DeviceVector CudaChains::epoch_average(std::size_t row) {
  if (own_batches_[row] == 0) return iterate(row);
  catch_up();
  return copy_of_row(sum_, row) / float(own_batches_[row]);
}

const float* CudaChains::mean_rows() {
  catch_up();
  return samples_ == 0 ? theta_.data() : mean_.data();
}

DeviceVector CudaChains::mean(std::size_t row) {
  catch_up();
  return copy_of_row(samples_ == 0 ? theta_ : mean_, row);
}

DeviceVector CudaChains::variance(std::size_t row) {
  if (samples_ < 2 || squares_.size() == 0) {
    fail("chain", "samples with second moments", "at least 2", fmt::format("{}", samples_));
  }
  catch_up();
  return copy_of_row(squares_, row) / float(samples_ - 1);
}

std::vector<DeviceMessage> CudaChains::sample_moments(const InferenceSettings& settings) {
  const std::size_t clients = steps_.size(), size = parts_.coordinates.size();
  if (samples_ < 2 || squares_.size() == 0) {
    fail("chain", "samples with second moments", "at least 2", fmt::format("{}", samples_));
  }
  catch_up();
  std::vector<DeviceVector> eta, lambda;
  std::vector<float*> etas(parts_.clients), lambdas(parts_.clients);
  std::vector<const float*> cavities(parts_.clients);
  std::vector<float> numbers(parts_.clients), added(parts_.clients);
  for (std::size_t c = 0; c < clients; ++c) {
    const CohortVisit& visit = round_->visits[c];
    eta.emplace_back(size);
    lambda.emplace_back(size);
    etas[c] = eta.back().data();
    lambdas[c] = lambda.back().data();
    added[c] = float(settings.alpha * double(visit.client.examples));
    if (visit.cavity.isotropic()) {
      numbers[c] = visit.cavity.lambda_scalar();
    } else {
      cavities[c] = visit.cavity.lambda_vector().data();
    }
  }
  make_once(partial_, 3 * gpu::kMomentPartials * parts_.clients);
  make_once(bounds_, 3 * parts_.clients);
  make_once(added_, parts_.clients);
  make_once(numbers_, parts_.clients);
  make_once(etas_, parts_.clients);
  make_once(lambdas_, parts_.clients);
  make_once(cavities_, parts_.clients);
  added_.upload(added);
  numbers_.upload(numbers);
  etas_.upload(etas);
  lambdas_.upload(lambdas);
  cavities_.upload(cavities);
  const double r = settings.shrinkage;
  gpu::sample_moments({.clients = int(clients),
                       .stride = parts_.coordinates.stride(),
                       .size = size,
                       .mean = mean_.data(),
                       .squares = squares_.data(),
                       .samples_less_one = float(samples_ - 1),
                       .one_less_shrinkage = float(1 - r),
                       .shrinkage = float(r),
                       .clip_width = settings.clip_std,
                       .rescale = settings.rescale,
                       .cavity = cavities_.data(),
                       .cavity_number = numbers_.data(),
                       .added = added_.data(),
                       .partial = partial_.data(),
                       .bounds = bounds_.data()},
                      etas_.data(), lambdas_.data(), device_stream());
  std::vector<DeviceMessage> tilted;
  for (std::size_t c = 0; c < clients; ++c) {
    tilted.emplace_back(std::move(eta[c]), std::move(lambda[c]));
  }
  return tilted;
}

double CudaChains::loss_sum(std::size_t row) {
  if (losses_.empty()) losses_ = loss_.download();
  return losses_[row];
}

}  // namespace fedep
