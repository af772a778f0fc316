#include "fedep/metric/tags.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/metric/parts.h"
#include "fedep/metric/probability.h"

namespace fedep {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

TagMetrics::TagMetrics(std::size_t tags, double threshold, std::size_t k)
    : counts_(tags), threshold_(threshold), k_(k) {
  check_positive("TagMetrics", "number of tags", static_cast<double>(tags));
  check_in("TagMetrics", "threshold", threshold, 0, 1);
  check_positive("TagMetrics", "k", static_cast<double>(k));
}

void TagMetrics::add(std::span<const double> probabilities, std::span<const std::uint32_t> offsets,
                     std::span<const std::uint32_t> columns) {
  check(probabilities, offsets, columns);
  const std::size_t size = offsets.size() - 1;
  for (std::size_t i = 0; i < size; ++i) {
    const auto row = probabilities.subspan(i * counts_.size(), counts_.size());
    const auto tags = columns.subspan(offsets[i], offsets[i + 1] - offsets[i]);
    for (std::size_t t = 0; t < row.size(); ++t) counts_[t].predicted += row[t] > threshold_;
    for (const std::uint32_t t : tags) {
      ++counts_[t].actual;
      counts_[t].true_positive += row[t] > threshold_;
    }
    hits_ += hits_at_k(row, tags);
    nll_.add(row_nll(row, tags));
  }
  count_ += static_cast<std::int64_t>(size);
}

void TagMetrics::merge(const TagMetrics& other) {
  check_same_size("TagMetrics::merge", "tags", counts_.size(), other.counts_.size());
  if (threshold_ != other.threshold_ || k_ != other.k_) {
    fail("TagMetrics::merge", "threshold and k", fmt::format("{} and {}", threshold_, k_),
         fmt::format("{} and {}", other.threshold_, other.k_));
  }
  for (std::size_t t = 0; t < counts_.size(); ++t) {
    counts_[t].true_positive += other.counts_[t].true_positive;
    counts_[t].predicted += other.counts_[t].predicted;
    counts_[t].actual += other.counts_[t].actual;
  }
  count_ += other.count_;
  hits_ += other.hits_;
  nll_.add(other.nll_);
}

void TagMetrics::parts(Parts& parts) {
  for (Counts& tag : counts_) {
    parts.count(tag.true_positive);
    parts.count(tag.predicted);
    parts.count(tag.actual);
  }
  parts.count(count_);
  parts.count(hits_);
  parts.sum(nll_);
}

double TagMetrics::precision() const {
  const Counts all = pooled();
  return count_ == 0 ? kNan : ratio(all.true_positive, all.predicted);
}

double TagMetrics::recall() const {
  const Counts all = pooled();
  return count_ == 0 ? kNan : ratio(all.true_positive, all.actual);
}

double TagMetrics::micro_f1() const {
  const Counts all = pooled();
  return count_ == 0 ? kNan : ratio(2 * all.true_positive, all.predicted + all.actual);
}

double TagMetrics::macro_f1() const {
  if (count_ == 0) return kNan;
  double sum = 0;
  for (const Counts& tag : counts_) sum += ratio(2 * tag.true_positive, tag.predicted + tag.actual);
  return sum / static_cast<double>(counts_.size());
}

double TagMetrics::recall_at_k() const {
  return count_ == 0 ? kNan : ratio(hits_, pooled().actual);
}

double TagMetrics::nll() const {
  return nll_.value() / (static_cast<double>(count_) * static_cast<double>(counts_.size()));
}

TagMetrics::Counts TagMetrics::pooled() const {
  Counts sum;
  for (const Counts& tag : counts_) {
    sum.true_positive += tag.true_positive;
    sum.predicted += tag.predicted;
    sum.actual += tag.actual;
  }
  return sum;
}

void TagMetrics::check(std::span<const double> probabilities,
                       std::span<const std::uint32_t> offsets,
                       std::span<const std::uint32_t> columns) const {
  constexpr std::string_view kWhere = "TagMetrics::add";
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != columns.size() ||
      !std::is_sorted(offsets.begin(), offsets.end())) {
    fail(kWhere, "offsets", fmt::format("ascending from 0 to {}", columns.size()),
         offsets.empty() ? "empty" : fmt::format("from {} to {}", offsets.front(), offsets.back()));
  }
  check_same_size(kWhere, "probabilities", (offsets.size() - 1) * counts_.size(),
                  probabilities.size());
  check_probabilities(kWhere, probabilities);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    for (std::size_t j = offsets[i]; j < offsets[i + 1]; ++j) {
      if (columns[j] >= counts_.size()) {
        fail(kWhere, "tag", fmt::format("in 0..{}", counts_.size() - 1),
             fmt::format("{}", columns[j]));
      }
      if (j > offsets[i] && columns[j] <= columns[j - 1]) {
        fail(kWhere, "tags of an example", "ascending",
             fmt::format("{} after {}", columns[j], columns[j - 1]));
      }
    }
  }
}

// Σ over tags of −log p or −log(1 − p). One logarithm for many factors: the product is taken as far
// as it stays a normal number, which saves most of the time of an evaluation.
double TagMetrics::row_nll(std::span<const double> row, std::span<const std::uint32_t> tags) const {
  double sum = 0;
  double product = 1;
  auto next = tags.begin();
  for (std::size_t t = 0; t < row.size(); ++t) {
    const bool applies = next != tags.end() && *next == t;
    if (applies) ++next;
    product *= std::clamp(applies ? row[t] : 1 - row[t], kSmallestProbability, 1.0);
    if (product < 0x1p-900) {
      sum -= std::log(product);
      product = 1;
    }
  }
  return sum - std::log(product);
}

std::int64_t TagMetrics::hits_at_k(std::span<const double> row,
                                   std::span<const std::uint32_t> tags) const {
  std::vector<std::size_t> top;  // descending in probability, at most k
  top.reserve(k_ + 1);
  for (std::size_t t = 0; t < row.size(); ++t) {
    if (std::isnan(row[t]) || (top.size() == k_ && row[t] <= row[top.back()])) continue;
    const auto at = std::find_if(top.begin(), top.end(),
                                 [&](std::size_t other) { return row[t] > row[other]; });
    top.insert(at, t);
    if (top.size() > k_) top.pop_back();
  }
  return std::count_if(top.begin(), top.end(), [&](std::size_t t) {
    return std::binary_search(tags.begin(), tags.end(), static_cast<std::uint32_t>(t));
  });
}

}  // namespace fedep
