#include "fedep/sim/rows/row_inference.h"

#include "fedep/inference/rows/row_method.h"
#include "fedep/message/check.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/sim/rows/client_rows.h"
#include "fedep/sim/rows/site_model.h"

namespace fedep {
namespace {

// As models have it (model/layer/loss.h): of numbers without what does not depend on the weights.
double mean_loss(const ClassRows& rows, const HostVector<float>& theta) {
  Eigen::VectorXd at(Eigen::Index(theta.size()));
  for (std::size_t j = 0; j < theta.size(); ++j) at[Eigen::Index(j)] = double(theta[j]);
  return loss_of(rows, at) / double(rows.size());
}

double mean_loss(const GlmRows& rows, const HostVector<float>& theta) {
  double sum = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double f = 0;
    for (std::size_t j = 0; j < rows.columns; ++j) f += rows.row(i)[j] * double(theta[j]);
    const RowLikelihood likelihood = rows.likelihood(i);
    const bool is_number = rows.outcome == GlmOutcome::number;
    sum += (is_number ? likelihood.constant : 0) - likelihood.log_density(f);
  }
  return sum / double(rows.size());
}

// `tilted(cavity)` of a client's rows, of which there are some; the cavity has their weight decay too.
template <class Rows, class Tilted>
Message tilted_on(const Rows& rows, const Visit& visit, double weight_decay, VisitNumbers& numbers,
                  const Tilted& tilted) {
  numbers.steps = 1;
  numbers.loss_sum = mean_loss(rows, visit.round.mean);
  DenseGaussian<double> cavity = in_double(visit.cavity);
  cavity.lambda.diagonal().array() += weight_decay * double(rows.size());
  return to_message<float>(tilted(cavity).q);
}

}  // namespace

ClientRun infer_on_rows(const Dataset& data, std::size_t client, const Visit& visit,
                        double weight_decay, const Model& model, VisitNumbers& numbers) {
  const Phase& phase = visit.round.phase;
  const RowMethod* method = find_row_method(phase.inference.name);
  if (method == nullptr) {
    fail("phase.inference", "name with family full", "a method of the full family",
         phase.inference.name);
  }
  ClientRun run;
  run.tilted = visit.cavity;
  if (model.target() == TargetKind::label) {
    if (method->tilted_of_classes == nullptr) {
      fail("phase.inference", "name with family full and classes", "laplace", method->name);
    }
    const ClassRows rows = class_rows_of(data, client);
    if (rows.size() == 0) return run;
    run.tilted = tilted_on(rows, visit, weight_decay, numbers, [&](const auto& cavity) {
      return method->tilted_of_classes(cavity, rows);
    });
    return run;
  }
  const SharedExtras extras = extras_of(model.layout());
  const SiteParts parts = parts_of(extras);
  const GlmRows rows =
      rows_of(data, client, likelihood_at(model.likelihood(), extras, visit.round.mean.span()));
  if (rows.size() == 0) return run;
  check_same_size("infer_on_rows", "cavity", rows.columns + parts.size(), visit.cavity.size());
  if (extras.any()) {
    // q's own (log τ, log σ) are where a tilted distribution that has converged has them too.
    Eigen::VectorXd start(Eigen::Index(parts.size()));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      start[Eigen::Index(i)] = double(visit.round.mean[extras.weights + i]);
    }
    run.tilted = tilted_on(rows, visit, weight_decay, numbers, [&](const auto& cavity) {
      return site_tilted(cavity, rows, parts, start);
    });
    return run;
  }
  const Address address{.seed = visit.round.seed,
                        .purpose = Purpose::langevin,
                        .round = std::uint32_t(visit.round.round),
                        .client = visit.client.key};
  run.tilted = tilted_on(rows, visit, weight_decay, numbers,
                         [&](const auto& cavity) { return method->tilted(cavity, rows, address); });
  return run;
}

}  // namespace fedep
