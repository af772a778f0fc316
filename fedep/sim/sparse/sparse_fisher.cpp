#include "fedep/sim/sparse/sparse_fisher.h"

#include <algorithm>
#include <cmath>

#include "fedep/inference/elements.h"
#include "fedep/model/layer/loss.h"
#include "fedep/model/layer/vector_width.h"
#include "fedep/sim/chain/fisher_pass.h"

namespace fedep {
namespace {

// The batches of a pass, one at a time: which rows each touches, and its squared gradients there.
class TouchedSquares {
 public:
  TouchedSquares(SparseLinear& model, const ChainInput& input) : model_(model), input_(input) {}

  void load(int t, std::span<const std::uint32_t> examples) {
    t_ = t;
    const Address augmentation = visit_address(input_.visit, Purpose::augment, fisher_step(t, 0));
    input_.data.train_batch(input_.client, examples,
                            input_.settings.augment ? &augmentation : nullptr, batch_);
    model_.touched_rows(batch_, touched_);
  }

  // Rows of the batch, the bias as the last one, and where each begins in the weights.
  std::size_t rows() const { return touched_.size() + 1; }
  std::size_t begin_of(std::size_t k) const {
    const std::size_t width = model_.outputs();
    return k < touched_.size() ? touched_[k] * width : model_.size() - width;
  }

  // to[rows, width] += the batch's mean squared gradient, with labels of this draw from the model.
  // Of theta, only those rows are read.
  void add(std::span<const float> theta, int draw, std::span<float> to) {
    logits_.resize(batch_.size * model_.outputs());
    model_.logits(theta, batch_, {}, logits_);
    const Address address = visit_address(input_.visit, Purpose::labels, fisher_step(t_, draw));
    DrawnTargets drawn = sample_labels(model_.likelihood(), logits_, model_.outputs(), address,
                                       input_.settings.label_sampler);
    if (input_.settings.tape != nullptr) input_.settings.tape->record(address, drawn.labels);
    if (!drawn.labels.empty()) batch_.labels = std::move(drawn.labels);
    if (!drawn.reals.empty()) batch_.reals = std::move(drawn.reals);
    block_.assign(to.size(), 0.0f);
    model_.add_squared_row_gradients(theta, batch_, touched_, drawn.tag_targets, block_);
    const float mean = 1.0f / float(batch_.size);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += mean * block_[i];
  }

 private:
  SparseLinear& model_;
  const ChainInput& input_;
  int t_ = 0;
  Batch batch_;
  std::vector<std::uint32_t> touched_;
  std::vector<float> logits_, block_;
};

// Standard normals of coordinates [begin, begin + out.size()) of an address; `room` is scratch.
void fill_normal_from(const Address& address, std::size_t begin, std::vector<float>& room,
                      std::span<float> out) {
  const std::size_t before = begin % 4;
  if (before == 0) {
    fill_normal(address, out, begin);
    return;
  }
  room.resize(before + out.size());
  fill_normal(address, room, begin - before);
  std::copy_n(room.begin() + std::ptrdiff_t(before), out.size(), out.begin());
}

// Clips a batch's squares to mean ± width std over all `size` coordinates, of which `squares` are
// those that may differ from zero (see clip_to_spread). Returns what zero becomes.
float clip_squares(double width, std::size_t size, std::span<float> squares) {
  if (width <= 0) return 0.0f;
  double total = 0, of_squares = 0;
  for (const float x : squares) {
    total += double(x);
    of_squares += double(x) * double(x);
  }
  const double average = total / double(size);
  const double spread = std::sqrt(std::max(0.0, of_squares / double(size) - average * average));
  const float low = float(average - width * spread), high = float(average + width * spread);
  for (float& x : squares) x = std::clamp(x, low, high);
  return std::max(0.0f, low);
}

// ν, row by row; a row may lag behind.
class RunningSquares {
 public:
  RunningSquares(std::size_t size, std::size_t width, const InferenceSettings& settings)
      : nu_(size),
        width_(width),
        start_(settings.initial_scale),
        beta_(settings.decay),
        steps_of_(size / width, kNever) {}

  // The row that begins at `begin`, after all steps so far.
  std::span<float> row(std::size_t begin) {
    const std::span<float> values = nu_.span().subspan(begin, width_);
    std::size_t& steps = steps_of_[begin / width_];
    if (steps == kNever) {
      std::fill(values.begin(), values.end(), float(untouched()));
    } else if (steps < now()) {
      // Without squares of its own, ν - A shrinks by β in a step, A as below.
      const float factor = float(std::pow(beta_, double(now() - steps)));
      const float then = float(alone_[steps]), since = float(alone_.back());
      for (float& x : values) x = since + factor * (x - then);
    }
    steps = now();
    return values;
  }

  // Ends a step in which touched rows got ν ← β ν + (1-β) F by update(), and all others (1-β) rest.
  void end_step(float rest) {
    alone_.push_back(beta_ * alone_.back() + (1 - beta_) * double(rest));
  }
  void update(std::size_t begin, std::span<const float> squares) {
    const std::span<float> values = row(begin);
    const float keep = float(beta_), take = float(1 - beta_);
    for (std::size_t i = 0; i < width_; ++i)
      values[i] = natural_step(keep, values[i], take, squares[i]);
    steps_of_[begin / width_] = now() + 1;
  }

  HostVector<float> all() && {
    for (std::size_t begin = 0; begin < nu_.size(); begin += width_) row(begin);
    return std::move(nu_);
  }

 private:
  static constexpr std::size_t kNever = ~std::size_t(0);

  std::size_t now() const { return alone_.size() - 1; }
  double untouched() const { return alone_.back() + std::pow(beta_, double(now())) * start_; }

  HostVector<float> nu_;
  std::size_t width_;
  double start_, beta_;
  std::vector<std::size_t> steps_of_;  // that a row has seen
  std::vector<double> alone_{0.0};     // A: what ν = 0 would have become by each step, untouched
};

}  // namespace

HostVector<float> sum_sparse_squares(SparseLinear& model, const ChainInput& input,
                                     const Minibatches& pass, const HostVector<float>& theta) {
  const std::size_t width = model.outputs();
  HostVector<float> sum(model.size());
  TouchedSquares squares(model, input);
  std::vector<float> block;
  for (std::size_t t = 0; t < pass.size(); ++t) {
    squares.load(int(t), pass[t]);
    block.assign(squares.rows() * width, 0.0f);
    squares.add(theta.span(), 0, block);
    for (std::size_t k = 0; k < squares.rows(); ++k) {
      float* to = sum.span().data() + squares.begin_of(k);
      for (std::size_t i = 0; i < width; ++i) to[i] += block[k * width + i];
    }
  }
  return sum;
}

HostVector<float> sparse_running_squares(SparseLinear& model, const ChainInput& input,
                                         const Minibatches& pass, const HostVector<float>& mean,
                                         const InferenceSettings& settings) {
  const std::size_t width = model.outputs();
  const float n = float(input.visit.client.examples);
  const float decay = float(input.settings.client.weight_decay) * n;
  const std::span<const float> cavity = input.visit.cavity.lambda_span();
  const Reach* const reach = input.visit.reach;
  RunningSquares nu(model.size(), width, settings);
  TouchedSquares squares(model, input);
  // Only rows of the batch at hand are set.
  const auto theta = std::make_unique_for_overwrite<float[]>(model.size());
  std::vector<float> root, fisher, room;
  for (std::size_t t = 0; t < pass.size(); ++t) {
    squares.load(int(t), pass[t]);
    root.resize(squares.rows() * width);
    for (std::size_t k = 0; k < squares.rows(); ++k) {
      const std::size_t begin = squares.begin_of(k);
      const float* const now = nu.row(begin).data();
      const float* const others = cavity.data() + (cavity.size() == 1 ? 0 : begin);
      const std::size_t stride = cavity.size() == 1 ? 0 : 1;
      float* const to = root.data() + k * width;
      for (std::size_t i = 0; i < width; ++i) {
        to[i] = std::sqrt(n * now[i] + (others[i * stride] + decay));
      }
    }
    fisher.assign(root.size(), 0.0f);
    for (int draw = 0; draw < settings.samples; ++draw) {
      const Address address =
          visit_address(input.visit, Purpose::posterior, fisher_step(int(t), draw));
      for (std::size_t k = 0; k < squares.rows(); ++k) {
        const std::size_t begin = squares.begin_of(k);
        float* const to = theta.get() + begin;
        // A weight's noise is its own, whatever others are in the visit.
        fill_normal_from(address, reach == nullptr ? begin : reach->place(begin), room,
                         {to, width});
        const float *const middle = mean.span().data() + begin, *const by = root.data() + k * width;
        at_full_width([=]() __attribute__((always_inline)) {
          for (std::size_t i = 0; i < width; ++i) to[i] = middle[i] + to[i] / by[i];
        });
      }
      squares.add({theta.get(), model.size()}, draw, fisher);
    }
    for (float& x : fisher) x /= float(settings.samples);
    const float rest = clip_squares(settings.clip_std, model.size(), fisher);
    for (std::size_t k = 0; k < squares.rows(); ++k) {
      nu.update(squares.begin_of(k), std::span(fisher).subspan(k * width, width));
    }
    nu.end_step(rest);
  }
  return std::move(nu).all();
}

}  // namespace fedep
