#include "fedep/sim/rows/own_intercept.h"

#include <cmath>

#include "fedep/inference/rows/quadrature.h"
#include "fedep/message/check.h"
#include "fedep/sim/rows/client_rows.h"

namespace fedep {
namespace {

// What all other columns say of a row's f.
std::vector<double> without_intercept(const GlmRows& rows, std::span<const float> theta) {
  std::vector<double> out(rows.size(), 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j + 1 < rows.columns; ++j) out[i] += rows.row(i)[j] * double(theta[j]);
  }
  return out;
}

// Factors exp(ν_i b - ½ τ_i b²) of rows, β being θ's.
RowSites row_sites(const GlmRows& rows, const std::vector<double>& others, double mean,
                   double site_sd) {
  RowSites sites;
  const auto offset = [&](std::size_t i) { return rows.offset.empty() ? 0.0 : rows.offset[i]; };
  if (rows.outcome == GlmOutcome::number) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      sites.tau.push_back(1);
      sites.nu.push_back(rows.y[i] - offset(i) - others[i]);
    }
    return sites;
  }
  GlmRows alone{.client = rows.client,
                .outcome = rows.outcome,
                .columns = 1,
                .x = std::vector<double>(rows.size(), 1.0),
                .y = rows.y};
  for (std::size_t i = 0; i < rows.size(); ++i) alone.offset.push_back(offset(i) + others[i]);
  const double precision = 1 / (site_sd * site_sd);
  quadrature_with_evidence(
      {Eigen::VectorXd::Constant(1, precision * mean), Eigen::MatrixXd::Constant(1, 1, precision)},
      alone, sites);
  return sites;
}

}  // namespace

const OwnIntercept& OwnIntercepts::of(const std::string& client) const {
  static const OwnIntercept unknown;
  const auto found = own_.find(client);
  return found == own_.end() ? unknown : found->second;
}

OwnIntercept own_intercept(const GlmRows& rows, const SharedExtras& extras,
                           std::span<const float> theta) {
  OwnIntercept out;
  out.coupling.assign(rows.columns - 1, 0.0);
  if (rows.size() == 0) return out;
  const std::vector<double> others = without_intercept(rows, theta);
  const RowSites sites = row_sites(rows, others, double(theta[extras.intercept()]),
                                   std::exp(double(theta[*extras.log_site_sd])));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.precision += sites.tau[i];
    out.pull += sites.nu[i] + sites.tau[i] * others[i];
    for (std::size_t j = 0; j + 1 < rows.columns; ++j) {
      out.coupling[j] += sites.tau[i] * rows.row(i)[j];
    }
  }
  return out;
}

OwnIntercepts own_intercepts(const Dataset& data, const Model& model,
                             std::span<const float> theta) {
  const SharedExtras extras = extras_of(model.layout());
  OwnIntercepts out;
  if (!extras.log_site_sd) return out;
  for (std::size_t k = 0; k < data.clients().size(); ++k) {
    out.add(data.clients()[k].first,
            own_intercept(rows_of(data, k, model.likelihood()), extras, theta));
  }
  return out;
}

InterceptGiven intercept_given(const OwnIntercept& own, const Likelihood& known,
                               const SharedExtras& extras, std::span<const float> theta) {
  const bool number = known.target == TargetKind::real;
  const double rows = number ? 1 / likelihood_at(known, extras, theta).variance() : 1;
  const double among = std::exp(-2 * double(theta[*extras.log_site_sd]));
  double pull = own.pull;
  for (std::size_t j = 0; j < own.coupling.size(); ++j) pull -= own.coupling[j] * double(theta[j]);
  const double precision = rows * own.precision + among;
  return {(rows * pull + among * double(theta[extras.intercept()])) / precision, 1 / precision};
}

}  // namespace fedep
