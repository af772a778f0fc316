#include "fedep/page/report/posterior_spread.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "fedep/message/check.h"
#include "fedep/message/full_precision.h"

namespace fedep {
namespace {

constexpr std::string_view kEta = "eta.";
constexpr std::string_view kLambda = "lambda";
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::int64_t number_in(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  std::int64_t value = 0;
  const std::string text = found == file.metadata.end() ? "" : found->second;
  const auto [stopped, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || stopped != text.data() + text.size()) {
    throw InputError(fmt::format("{}: metadata must have a whole number {}, but has \"{}\"",
                                 file.origin, key, text));
  }
  return value;
}

// Standard deviations of the coordinates that have one, ascending.
std::vector<double> deviations(std::span<const float> lambda) {
  std::vector<double> out;
  out.reserve(lambda.size());
  for (const float precision : lambda) {
    if (precision > 0 && std::isfinite(precision)) out.push_back(1 / std::sqrt(double(precision)));
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Each weight's own precision where there is a matrix: one over its variance, 0 of an improper one.
std::vector<float> marginal_precisions(const SafetensorsFile& checkpoint, std::int64_t weights) {
  const Packed<HostVector<float>> lambda{HostVector<float>(checkpoint.get<float>(kLambda))};
  const auto d = std::size_t(weights);
  check_same_size(checkpoint.origin, std::string(kLambda), packed_size(d), lambda.elements.size());
  std::vector<float> out(d, 0.0f);
  if (!is_positive_definite(lambda, d)) return out;
  const HostVector<float> variances = inverse_diagonal(lambda, d);
  for (std::size_t i = 0; i < d; ++i) out[i] = 1 / variances[i];
  return out;
}

// Tensors' names and precisions, of `marginal` where there are some.
std::vector<std::pair<std::string, std::span<const float>>> layers_of(
    const SafetensorsFile& checkpoint, std::span<const float> marginal) {
  std::vector<std::pair<std::string, std::span<const float>>> out;
  const std::string_view prefix = marginal.empty() ? "lambda." : kEta;
  std::size_t begin = 0;
  for (const Tensor& tensor : checkpoint.tensors) {
    if (!tensor.name.starts_with(prefix)) continue;
    const std::vector<float>& own = checkpoint.get<float>(tensor.name);
    out.emplace_back(tensor.name.substr(prefix.size()),
                     marginal.empty() ? std::span(own) : marginal.subspan(begin, own.size()));
    begin += own.size();
  }
  return out;
}

std::vector<double> log_edges(double low, double high) {
  if (high <= low * (1 + 1e-9)) {  // all the same: a bin around it
    low *= 0.99;
    high *= 1.01;
  }
  std::vector<double> edges;
  for (std::size_t i = 0; i <= kSpreadBins; ++i) {
    edges.push_back(low * std::pow(high / low, double(i) / double(kSpreadBins)));
  }
  edges.front() = low;
  edges.back() = high;
  return edges;
}

std::vector<std::int64_t> count_in(const std::vector<double>& edges,
                                   const std::vector<double>& sorted) {
  std::vector<std::int64_t> counts(kSpreadBins, 0);
  for (const double value : sorted) {
    const auto above = std::upper_bound(edges.begin() + 1, edges.end() - 1, value);
    ++counts[std::size_t(above - edges.begin()) - 1];
  }
  return counts;
}

}  // namespace

PosteriorSpread posterior_spread(const SafetensorsFile& checkpoint) {
  PosteriorSpread spread{.round = number_in(checkpoint, "round"), .edges = {}, .layers = {}};
  for (const Tensor& tensor : checkpoint.tensors) {
    if (!tensor.name.starts_with(kEta)) continue;
    std::int64_t size = 1;
    for (const std::int64_t extent : tensor.shape) size *= extent;
    spread.weights += size;
  }
  const bool has_matrix = checkpoint.has(kLambda) && !checkpoint.tensor(kLambda).shape.empty();
  if (checkpoint.has(kLambda) && !has_matrix) {
    const std::vector<float>& lambda = checkpoint.get<float>(kLambda);
    const std::vector<double> there = deviations(lambda);
    spread.isotropic = true;
    spread.deviation = there.empty() ? kNan : there.front();
    return spread;
  }
  std::vector<std::vector<double>> by_layer;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  const std::vector<float> marginal =
      has_matrix ? marginal_precisions(checkpoint, spread.weights) : std::vector<float>();
  for (const auto& [name, lambda] : layers_of(checkpoint, marginal)) {
    std::vector<double> sorted = deviations(lambda);
    spread.layers.push_back({.name = name,
                             .weights = std::int64_t(lambda.size()),
                             .improper = std::int64_t(lambda.size() - sorted.size()),
                             .low = sorted.empty() ? kNan : sorted.front(),
                             .median = sorted.empty() ? kNan : sorted[sorted.size() / 2],
                             .high = sorted.empty() ? kNan : sorted.back(),
                             .counts = {}});
    if (!sorted.empty()) {
      low = std::min(low, sorted.front());
      high = std::max(high, sorted.back());
    }
    by_layer.push_back(std::move(sorted));
  }
  if (spread.layers.empty()) {
    throw InputError(
        fmt::format("{}: checkpoint must have precisions lambda, but has none", checkpoint.origin));
  }
  if (high > 0) spread.edges = log_edges(low, high);
  for (std::size_t i = 0; i < by_layer.size(); ++i) {
    spread.layers[i].counts = spread.edges.empty() ? std::vector<std::int64_t>(kSpreadBins, 0)
                                                   : count_in(spread.edges, by_layer[i]);
  }
  return spread;
}

std::int64_t PosteriorSpread::improper() const {
  if (isotropic) return std::isnan(deviation) ? weights : 0;
  std::int64_t out = 0;
  for (const LayerSpread& layer : layers) out += layer.improper;
  return out;
}

}  // namespace fedep
