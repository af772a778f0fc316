#include "fedep/model/layer/loss.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/message/log_gamma.h"
#include "fedep/model/layer/exponential.h"
#include "fedep/model/layer/vector_width.h"
#include "fedep/random/poisson.h"

namespace fedep {
namespace {

// Copies up to kBlock floats into a block, the rest of it `otherwise`; and back. Whole blocks have
// a length that the compiler sees.
[[gnu::always_inline]] inline void read_block(const float* from, std::size_t count, float otherwise,
                                              FloatBlock& block) {
  if (count >= kBlock) {
    std::memcpy(&block, from, sizeof(FloatBlock));
    return;
  }
  float part[kBlock];
  for (std::size_t i = 0; i < kBlock; ++i) part[i] = i < count ? from[i] : otherwise;
  std::memcpy(&block, part, sizeof(FloatBlock));
}
[[gnu::always_inline]] inline void write_block(const FloatBlock& block, std::size_t count,
                                               float* to) {
  if (count >= kBlock) {
    std::memcpy(to, &block, sizeof(FloatBlock));
    return;
  }
  float part[kBlock];
  std::memcpy(part, &block, sizeof(FloatBlock));
  for (std::size_t i = 0; i < count; ++i) to[i] = part[i];
}

// Which element meets which when a block is folded in half, four times.
constexpr WordBlock kFolds[] = {{8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7},
                                {4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11},
                                {2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13},
                                {1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14}};

[[gnu::always_inline]] inline float sum_of(FloatBlock& block) {
  for (const WordBlock& fold : kFolds) block += __builtin_shuffle(block, fold);
  return block[0];
}
[[gnu::always_inline]] inline float largest_of(FloatBlock& block) {
  for (const WordBlock& fold : kFolds) {
    const FloatBlock other = __builtin_shuffle(block, fold);
    block = other > block ? other : block;
  }
  return block[0];
}

struct Softmax {
  float top, sum;  // log Σ e^z = top + log(sum)
};

// row = scale softmax(row)
Softmax softmax_in_place(float* row, std::size_t count, float scale) {
  return at_full_width([=]() __attribute__((always_inline)) {
    FloatBlock tops = FloatBlock{} + row[0], sums = {}, z;
    for (std::size_t i = 0; i < count; i += kBlock) {
      read_block(row + i, count - i, row[0], z);
      tops = z > tops ? z : tops;
    }
    const float top = largest_of(tops);
    for (std::size_t i = 0; i < count; i += kBlock) {
      read_block(row + i, count - i, -1e30f, z);  // whose exponential is 0
      z -= top;
      exponentiate<FloatBlock, WordBlock>(z);
      sums += z;
      write_block(z, count - i, row + i);
    }
    const float sum = sum_of(sums);
    const float factor = scale / sum;
    for (std::size_t i = 0; i < count; ++i) row[i] *= factor;
    return Softmax{top, sum};
  });
}

void check_labels(const Batch& batch, std::size_t classes) {
  check_same_size("loss_delta", "labels", batch.size, batch.labels.size());
  for (const std::int32_t y : batch.labels) {
    if (y < 0 || std::size_t(y) >= classes) {
      fail("loss_delta", "a label", fmt::format("in [0, {})", classes), fmt::format("{}", y));
    }
  }
}

double label_delta(const Batch& batch, std::size_t outputs, float scale, std::span<float> delta) {
  check_labels(batch, outputs);
  double sum = 0;
  for (std::size_t i = 0; i < batch.size; ++i) {
    const std::span<float> row = delta.subspan(i * outputs, outputs);
    const std::size_t y = std::size_t(batch.labels[i]);
    const double at_label = double(row[y]);
    const Softmax softmax = softmax_in_place(row.data(), outputs, scale);
    sum += double(softmax.top) + std::log(double(softmax.sum)) - at_label;
    row[y] -= scale;
  }
  return sum;
}

double binary_delta(const Batch& batch, float scale, std::span<float> delta) {
  check_labels(batch, 2);
  std::vector<float> y(batch.labels.begin(), batch.labels.end());
  return logistic_delta(delta, y, scale);
}

double tags_delta(const Batch& batch, std::size_t outputs, float scale,
                  std::span<const float> tag_targets, std::span<float> delta) {
  const float per_tag = scale / float(outputs);
  if (!tag_targets.empty()) {
    check_same_size("loss_delta", "tag_targets", batch.size * outputs, tag_targets.size());
    return logistic_delta(delta, tag_targets, per_tag) / double(outputs);
  }
  check_same_size("loss_delta", "tags", batch.size, batch.tags.rows());
  std::vector<float> y(outputs, 0.0f);
  double sum = 0;
  for (std::size_t i = 0; i < batch.size; ++i) {
    const std::size_t first = batch.tags.offsets[i], last = batch.tags.offsets[i + 1];
    for (std::size_t k = first; k < last; ++k) {
      const std::uint32_t tag = batch.tags.columns[k];
      if (tag >= outputs) {
        fail("loss_delta", "a tag", fmt::format("in [0, {})", outputs), fmt::format("{}", tag));
      }
      y[tag] = batch.tags.values.empty() ? 1.0f : batch.tags.values[k];
    }
    sum += logistic_delta(delta.subspan(i * outputs, outputs), y, per_tag);
    for (std::size_t k = first; k < last; ++k) y[batch.tags.columns[k]] = 0.0f;
  }
  return sum / double(outputs);
}

double real_delta(const Batch& batch, double variance, float scale, std::span<float> delta) {
  check_same_size("loss_delta", "reals", batch.size, batch.reals.size());
  const float per_variance = float(double(scale) / variance);
  double sum = 0;
  for (std::size_t i = 0; i < batch.size; ++i) {
    const float error = delta[i] - batch.reals[i];
    sum += 0.5 * double(error) * double(error);
    delta[i] = error * per_variance;
  }
  return sum / variance;
}

double count_delta(const Batch& batch, float scale, std::span<float> delta) {
  check_same_size("loss_delta", "reals", batch.size, batch.reals.size());
  double sum = 0;
  for (std::size_t i = 0; i < batch.size; ++i) {
    const double z = double(delta[i]), y = double(batch.reals[i]);
    const double mean = std::exp(std::min(z, 80.0));  // of which a float still has the derivative
    sum += mean - y * z + log_factorial(y);
    delta[i] = float(double(scale) * (mean - y));
  }
  return sum;
}

// A draw from softmax of the row, by inversion of its distribution function.
std::size_t draw_categorical(std::span<const float> logits, double uniform,
                             std::vector<float>& scratch) {
  scratch.assign(logits.begin(), logits.end());
  softmax_in_place(scratch.data(), scratch.size(), 1.0f);
  double below = 0;
  for (std::size_t c = 0; c + 1 < scratch.size(); ++c) {
    below += double(scratch[c]);
    if (uniform < below) return c;
  }
  return scratch.size() - 1;
}

double sigmoid(double z) { return 1.0 / (1.0 + std::exp(-z)); }

}  // namespace

double logistic_delta(std::span<float> z, std::span<const float> y, float scale) {
  assert(z.size() == y.size());
  const std::size_t size = z.size();
  float* const out = z.data();
  const float* const targets = y.data();
  return at_full_width([=]() __attribute__((always_inline)) {
    // Σ log(1 + e^-|z|) is the log of a product; of so many blocks it stays below 2^32 in a float,
    // and over the block below 2^512 in a double.
    constexpr std::size_t kChunk = 32 * kBlock;
    double sum = 0;
    for (std::size_t begin = 0; begin < size; begin += kChunk) {
      FloatBlock product = FloatBlock{} + 1.0f, terms = {};
      const std::size_t end = begin + kChunk < size ? begin + kChunk : size;
      for (std::size_t i = begin; i < end; i += kBlock) {
        FloatBlock a, target;
        read_block(out + i, size - i, -1e30f, a);  // whose loss is 0
        read_block(targets + i, size - i, 0.0f, target);
        const FloatBlock positive = a > 0.0f ? a : FloatBlock{};
        FloatBlock e = a > 0.0f ? -a : a;
        exponentiate<FloatBlock, WordBlock>(e);  // e^-|z|
        const FloatBlock sigma = (a > 0.0f ? FloatBlock{} + 1.0f : e) / (e + 1.0f);
        product *= e + 1.0f;
        terms += positive - target * a;
        write_block((sigma - target) * scale, size - i, out + i);
      }
      double products = 1;
      for (std::size_t i = 0; i < kBlock; ++i) products *= double(product[i]);
      sum += double(sum_of(terms)) + std::log(products);
    }
    return sum;
  });
}

double loss_delta(const Likelihood& likelihood, const Batch& batch, std::span<const float> logits,
                  std::size_t outputs, Scale scale, std::span<const float> tag_targets,
                  std::span<float> delta) {
  assert(logits.size() == batch.size * outputs && delta.size() == logits.size());
  if (batch.size == 0) return 0;
  if (delta.data() != logits.data()) std::copy(logits.begin(), logits.end(), delta.begin());
  const double n = double(batch.size);
  const float factor = scale == Scale::batch_mean ? float(1.0 / n) : 1.0f;
  switch (likelihood.target) {
    case TargetKind::label:
      return label_delta(batch, outputs, factor, delta) / n;
    case TargetKind::binary:
      return binary_delta(batch, factor, delta) / n;
    case TargetKind::tags:
      return tags_delta(batch, outputs, factor, tag_targets, delta) / n;
    case TargetKind::real:
      return real_delta(batch, likelihood.variance(), factor, delta) / n;
    case TargetKind::count:
      return count_delta(batch, factor, delta) / n;
  }
  return 0;
}

DrawnTargets sample_labels(const Likelihood& likelihood, std::span<const float> logits,
                           std::size_t outputs, const Address& address, LabelSampler sampler) {
  assert(outputs > 0 && logits.size() % outputs == 0);
  const TargetKind target = likelihood.target;
  if (sampler == LabelSampler::softmax_index && target != TargetKind::tags &&
      target != TargetKind::label) {
    throw InputError("sample_labels: softmax_index needs several outputs: labels or tags");
  }
  const std::size_t rows = logits.size() / outputs;
  Stream stream(address);
  DrawnTargets drawn;
  std::vector<float> scratch;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::span<const float> row = logits.subspan(i * outputs, outputs);
    if (target == TargetKind::label) {
      drawn.labels.push_back(std::int32_t(draw_categorical(row, stream.uniform(), scratch)));
    } else if (target == TargetKind::binary) {
      drawn.labels.push_back(stream.uniform() < sigmoid(double(row[0])) ? 1 : 0);
    } else if (target == TargetKind::real) {
      drawn.reals.push_back(row[0] + float(likelihood.noise * stream.normal()));
    } else if (target == TargetKind::count) {
      drawn.reals.push_back(float(draw_poisson(stream, std::exp(double(row[0])))));
    } else if (sampler == LabelSampler::softmax_index) {
      const std::size_t index = draw_categorical(row, stream.uniform(), scratch);
      drawn.tag_targets.insert(drawn.tag_targets.end(), outputs, float(index));
    }
  }
  if (target == TargetKind::tags && sampler == LabelSampler::model) {
    drawn.tag_targets.resize(logits.size());
    fill_uniform(address, drawn.tag_targets);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const float e = exponential(-std::fabs(logits[i]));
      const float sigma = (logits[i] < 0 ? e : 1.0f) / (1.0f + e);
      drawn.tag_targets[i] = drawn.tag_targets[i] < sigma ? 1.0f : 0.0f;
    }
  }
  return drawn;
}

}  // namespace fedep
