// What squared gradients at labels drawn from the model are on average, against the Fisher information
// of linear models, which is known: with residual r = outcome - prediction, x_j² E[r²] summed over rows.
//
//   one of several classes   x_j² p_c (1 - p_c)
//   yes or no                x_j² p (1 - p)
//   tags                     x_j² p_t (1 - p_t) / T²     the loss is an average over T tags
//   a number                 x_j² / σ²
//   a count                  x_j² mean

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/memory_dataset.h"
#include "fedep/inference/infer_cohort.h"
#include "fedep/model/linear.h"
#include "fedep/sim/chain/cpu_cohort.h"
#include "fedep/sim/test_round.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kFeatures = 2;
constexpr std::size_t kRows = 5;
constexpr int kDraws = 20000;  // of every row's label
constexpr double kNoise = 1.5;

// E[r²] and Var[r²] of a residual, where r is what a logit's gradient is.
struct Residual {
  double square = 0;
  double variance = 0;
};

Residual of_probability(double p) { return {p * (1 - p), p * (1 - p) * (1 - 2 * p) * (1 - 2 * p)}; }

class FisherValue : public testing::Test {
 protected:
  FisherValue() {
    batch_.size = kRows;
    batch_.dense = {1, 2, -0.5f, 1, 0, -1.5f, 2, 0.5f, -1, -1};
    batch_.labels.assign(kRows, 0);  // nothing of these is read: labels are drawn
    batch_.reals.assign(kRows, 0.0f);
    batch_.tags.offsets.assign(kRows + 1, 0);
  }

  // θ[j outputs + c], the intercepts behind the features: predictions far from even, and from each other.
  V weights(std::size_t outputs) const {
    V theta((kFeatures + 1) * outputs);
    for (std::size_t i = 0; i < theta.size(); ++i) theta[i] = float(0.9 - 0.65 * double(i % 4));
    return theta;
  }
  double x(std::size_t row, std::size_t j) const {
    return j == kFeatures ? 1 : double(batch_.dense[row * kFeatures + j]);
  }
  std::vector<double> logits(std::size_t row, std::size_t outputs) const {
    const V theta = weights(outputs);
    std::vector<double> out(outputs, 0.0);
    for (std::size_t j = 0; j <= kFeatures; ++j) {
      for (std::size_t c = 0; c < outputs; ++c)
        out[c] += x(row, j) * double(theta[j * outputs + c]);
    }
    return out;
  }

  // What Laplace adds to a flat cavity at these weights, where the chain makes no step.
  V found(TargetKind target, std::size_t outputs) {
    Batch batch = batch_;
    if (target != TargetKind::tags) batch.tags = {};
    if (target != TargetKind::label && target != TargetKind::binary) batch.labels.clear();
    if (target != TargetKind::real && target != TargetKind::count) batch.reals.clear();
    ClientRows clients, nobody;
    clients.add("a", kRows);
    DatasetInfo info{.name = "rows",
                     .features = {kFeatures},
                     .target = target,
                     .outputs = outputs,
                     .feature_names = {},
                     .output_names = {}};
    const auto data =
        memory_dataset(std::move(info), {std::move(clients), batch_rows(std::move(batch))},
                       {std::move(nobody), batch_rows({})});
    const auto model =
        make_linear({.features = kFeatures, .outputs = outputs, .target = target, .noise = kNoise});
    InferenceSettings inference{.name = "laplace"};
    inference.epochs = kDraws;
    TestRound round("fed_sep", inference, from_mean(weights(outputs), 1.0f));
    const ClientInfo client = clients_of(data->clients())[0];
    const Visit visit = round.visit(client, Message(V(model->size()), V(model->size())));
    ChainSettings settings;
    settings.client = {.epochs = 1, .batch = 100, .remainder = Remainder::drop};  // no step
    const auto cohort = make_cpu_cohort(*model, {{*data, 0, visit, settings}});
    return infer_cohort(*cohort, *round.phase.algorithm, inference)[0].tilted.lambda_vector();
  }

  // `residual`: of a row's output c, given the row's logits.
  template <class ResidualOf>
  void expect_value(TargetKind target, std::size_t outputs, const ResidualOf& residual) {
    const V fisher = found(target, outputs);
    for (std::size_t j = 0; j <= kFeatures; ++j) {
      for (std::size_t c = 0; c < outputs; ++c) {
        double expected = 0, variance = 0;
        for (std::size_t row = 0; row < kRows; ++row) {
          const Residual r = residual(logits(row, outputs), c);
          const double square = x(row, j) * x(row, j);
          expected += square * r.square;
          variance += square * square * r.variance;
        }
        const double error = std::sqrt(variance / kDraws);
        EXPECT_LT(error, 0.02 * expected);  // so that a wrong formula shows
        EXPECT_NEAR(fisher[j * outputs + c], expected, 4.5 * error + 1e-4 * expected)
            << "feature " << j << ", output " << c;
      }
    }
  }

  Batch batch_;
};

double logistic(double f) { return 1 / (1 + std::exp(-f)); }

TEST_F(FisherValue, OfClassesIsThatOfTheSoftmax) {
  expect_value(TargetKind::label, 3, [](const std::vector<double>& logits, std::size_t c) {
    double sum = 0;
    for (const double f : logits) sum += std::exp(f);
    return of_probability(std::exp(logits[c]) / sum);
  });
}

TEST_F(FisherValue, OfYesAndNoIsThatOfALogisticRegression) {
  expect_value(TargetKind::binary, 1, [](const std::vector<double>& logits, std::size_t) {
    return of_probability(logistic(logits[0]));
  });
}

TEST_F(FisherValue, OfTagsIsThatOfALogisticRegressionForEachOverTheirNumberSquared) {
  expect_value(TargetKind::tags, 3, [](const std::vector<double>& logits, std::size_t c) {
    const Residual one = of_probability(logistic(logits[c]));
    return Residual{one.square / 9, one.variance / 81};
  });
}

TEST_F(FisherValue, OfANumberIsOneOverItsNoisesVariance) {
  expect_value(TargetKind::real, 1, [](const std::vector<double>&, std::size_t) {
    const double v = kNoise * kNoise;
    return Residual{1 / v, 2 / (v * v)};
  });
}

TEST_F(FisherValue, OfACountIsItsMean) {
  expect_value(TargetKind::count, 1, [](const std::vector<double>& logits, std::size_t) {
    const double mean = std::exp(logits[0]);
    return Residual{mean, mean + 2 * mean * mean};
  });
}

}  // namespace
}  // namespace fedep
