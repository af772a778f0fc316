#include "fedep/sim/score/scores.h"

#include <algorithm>
#include <cmath>

#include "fedep/metric/calibration.h"
#include "fedep/metric/classification.h"
#include "fedep/metric/counts.h"
#include "fedep/metric/exact_sum.h"
#include "fedep/metric/parts.h"
#include "fedep/metric/probability.h"
#include "fedep/metric/ranking.h"
#include "fedep/metric/regression.h"
#include "fedep/metric/tags.h"

namespace fedep {
namespace {

class LabelScores final : public Scores {
 public:
  explicit LabelScores(std::size_t classes) : classes_(classes), metrics_(classes) {}

  void add(std::span<const double> predictions, std::span<const double>,
           const Batch& batch) override {
    metrics_.add(predictions, batch.labels);
    bins_.add(top_class_forecasts(predictions, classes_, batch.labels));
  }
  void parts(Parts& parts) override {
    metrics_.parts(parts);
    bins_.parts(parts);
  }
  Metrics metrics() const override {
    return {{"accuracy", metrics_.accuracy()},
            {"nll", metrics_.nll()},
            {"ece", bins_.ece()},
            {"brier", metrics_.brier()}};
  }
  std::vector<ReliabilityBin> reliability() const override { return bins_.bins(); }

 private:
  std::size_t classes_;
  ClassificationMetrics metrics_;
  UniformBins bins_;
};

class BinaryScores final : public Scores {
 public:
  void add(std::span<const double> predictions, std::span<const double>,
           const Batch& batch) override {
    metrics_.add(predictions, batch.labels);
    ranking_.add(predictions, batch.labels);
    bins_.add(top_class_forecasts(predictions, batch.labels));
  }
  void parts(Parts& parts) override {
    metrics_.parts(parts);
    ranking_.parts(parts);
    bins_.parts(parts);
  }
  Metrics metrics() const override {
    return {{"accuracy", metrics_.accuracy()},
            {"nll", metrics_.nll()},
            {"auc", ranking_.auc()},
            {"ece", bins_.ece()},
            {"brier", metrics_.brier()}};
  }
  std::vector<ReliabilityBin> reliability() const override { return bins_.bins(); }

 private:
  BinaryMetrics metrics_;
  Ranking ranking_;
  UniformBins bins_;
};

class TagScores final : public Scores {
 public:
  explicit TagScores(std::size_t tags) : metrics_(tags) {}

  void add(std::span<const double> predictions, std::span<const double>,
           const Batch& batch) override {
    metrics_.add(predictions, batch.tags.offsets, batch.tags.columns);
  }
  void parts(Parts& parts) override { metrics_.parts(parts); }
  Metrics metrics() const override {
    return {{"precision", metrics_.precision()},     {"recall", metrics_.recall()},
            {"micro_f1", metrics_.micro_f1()},       {"macro_f1", metrics_.macro_f1()},
            {"recall_at_5", metrics_.recall_at_k()}, {"nll", metrics_.nll()}};
  }

 private:
  TagMetrics metrics_;
};

class RealScores final : public Scores {
 public:
  explicit RealScores(double noise_variance) : noise_variance_(noise_variance) {}

  void add(std::span<const double> predictions, std::span<const double> spread,
           const Batch& batch) override {
    std::vector<double> variances(predictions.size(), noise_variance_);
    for (std::size_t i = 0; i < spread.size(); ++i) {
      variances[i] += spread[i];
      spread_.add(spread[i]);
    }
    spreads_ += std::int64_t(spread.size());
    metrics_.add(predictions, variances, batch.reals);
  }
  void parts(Parts& parts) override {
    metrics_.parts(parts);
    parts.sum(spread_);
    parts.count(spreads_);
  }
  Metrics metrics() const override {
    Metrics out{{"rmse", metrics_.rmse()}, {"nll", metrics_.nll()}};
    if (spreads_ == 0) return out;
    out.emplace_back("spread", std::sqrt(spread_.value() / double(metrics_.count())));
    out.emplace_back("error_ratio", metrics_.error_ratio());
    return out;
  }

 private:
  double noise_variance_;
  RegressionMetrics metrics_;
  ExactSum spread_;  // of variances over draws
  std::int64_t spreads_ = 0;
};

class CountScores final : public Scores {
 public:
  void add(std::span<const double> predictions, std::span<const double> spread,
           const Batch& batch) override {
    for (const double variance : spread) spread_.add(variance);
    spreads_ += std::int64_t(spread.size());
    metrics_.add(predictions, spread, batch.reals);
  }
  void parts(Parts& parts) override {
    metrics_.parts(parts);
    parts.sum(spread_);
    parts.count(spreads_);
  }
  Metrics metrics() const override {
    Metrics out{
        {"deviance", metrics_.deviance()}, {"nll", metrics_.nll()}, {"rmse", metrics_.rmse()}};
    if (spreads_ == 0) return out;
    out.emplace_back("spread", std::sqrt(spread_.value() / double(metrics_.count())));
    out.emplace_back("error_ratio", metrics_.error_ratio());
    return out;
  }

 private:
  CountMetrics metrics_;
  ExactSum spread_;  // of variances over draws
  std::int64_t spreads_ = 0;
};

}  // namespace

std::unique_ptr<Scores> make_scores(const Likelihood& likelihood, std::size_t outputs) {
  switch (likelihood.target) {
    case TargetKind::label:
      return std::make_unique<LabelScores>(outputs);
    case TargetKind::binary:
      return std::make_unique<BinaryScores>();
    case TargetKind::tags:
      return std::make_unique<TagScores>(outputs);
    case TargetKind::count:
      return std::make_unique<CountScores>();
    case TargetKind::real:
      break;
  }
  return std::make_unique<RealScores>(likelihood.variance());
}

double variance_of_draws(double mean, double mean_square, std::size_t draws) {
  const double around_mean = mean_square - mean * mean;
  if (std::isnan(around_mean) || draws < 2) return NAN;
  return std::max(0.0, around_mean) * double(draws) / double(draws - 1);
}

std::vector<double> predictions_of(TargetKind target, std::span<const float> logits,
                                   std::size_t outputs) {
  switch (target) {
    case TargetKind::label:
      return softmax(logits, outputs);
    case TargetKind::binary:
    case TargetKind::tags:
      return sigmoid(logits);
    case TargetKind::count: {
      std::vector<double> means(logits.begin(), logits.end());
      for (double& mean : means) mean = std::exp(mean);
      return means;
    }
    case TargetKind::real:
      break;
  }
  return {logits.begin(), logits.end()};
}

}  // namespace fedep
