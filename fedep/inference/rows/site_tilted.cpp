#include "fedep/inference/rows/site_tilted.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <Eigen/Cholesky>

#include "fedep/inference/rows/glm_energy.h"
#include "fedep/inference/rows/site_node.h"
#include "fedep/inference/rows/symmetric_matrix.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kMostSteps = 60;
constexpr double kNear = 0.05;       // the centre of a grid need not be the mode to the last digit
constexpr double kDifference = 0.3;  // in deviations, of the differences that slopes are found by
constexpr double kLongest = 1;       // a step: e-fold
constexpr std::size_t kMostNodes = 20'000;

// Where weights are largest, and the root of the covariance that their curvature there has.
struct Centre {
  VectorXd place;
  MatrixXd root;
  RowSites sites;
};

// Log weights around a place by central differences.
struct Local {
  double value = 0;
  VectorXd slope;
  MatrixXd curvature;  // of minus the log weight
};

class CentreSearch {
 public:
  CentreSearch(SiteNodes& nodes, VectorXd widths) : nodes_(nodes), widths_(std::move(widths)) {}

  Centre from(VectorXd place) {
    VectorXd best_widths = widths_;
    double value = weight(place);
    for (int step = 0; step < kMostSteps; ++step) {
      const Local here = local(place, value, best_widths);
      const Eigen::LLT<MatrixXd> factor(here.curvature);
      const bool peaked = factor.info() == Eigen::Success;
      VectorXd move = peaked ? VectorXd(factor.solve(here.slope))
                             : VectorXd(best_widths.cwiseAbs2().cwiseProduct(here.slope));
      if (peaked) {
        best_widths = here.curvature.diagonal().cwiseSqrt().cwiseInverse();
        if (std::sqrt(here.slope.dot(move)) < kNear) return {place, root_of(factor), sites_};
      }
      move *= std::min(1.0, kLongest / move.cwiseAbs().maxCoeff());
      double part = 1, next = weight(place + move);
      for (; !(next > value) && part > 1e-6; next = weight(place + part * move)) part /= 2;
      if (!(next > value)) break;  // as far up as differences tell
      place += part * move;
      value = next;
    }
    return {place, MatrixXd(best_widths.asDiagonal()), sites_};
  }

 private:
  double weight(const VectorXd& h) {
    const double found = nodes_.at(h, sites_).log_weight;
    return std::isfinite(found) ? found : -std::numeric_limits<double>::infinity();
  }

  Local local(const VectorXd& place, double value, const VectorXd& widths) {
    const Index k = place.size();
    Local out{value, VectorXd(k), MatrixXd(k, k)};
    const auto at = [&](Index i, double by, Index j, double by_too) {
      VectorXd h = place;
      h[i] += by;
      if (j >= 0) h[j] += by_too;
      return weight(h);
    };
    VectorXd up(k), down(k);
    const VectorXd gap = kDifference * widths;
    for (Index i = 0; i < k; ++i) {
      up[i] = at(i, gap[i], -1, 0);
      down[i] = at(i, -gap[i], -1, 0);
      out.slope[i] = (up[i] - down[i]) / (2 * gap[i]);
      out.curvature(i, i) = -(up[i] - 2 * value + down[i]) / (gap[i] * gap[i]);
      for (Index j = 0; j < i; ++j) {
        const double both = at(i, gap[i], j, gap[j]) + at(i, -gap[i], j, -gap[j]) -
                            (up[i] + down[i] + up[j] + down[j]) + 2 * value;
        out.curvature(i, j) = out.curvature(j, i) = -both / (2 * gap[i] * gap[j]);
      }
    }
    return out;
  }

  // Of the covariance: L⁻ᵀ, where the curvature is L Lᵀ.
  static MatrixXd root_of(const Eigen::LLT<MatrixXd>& factor) {
    const Index k = factor.rows();
    return factor.matrixU().solve(MatrixXd::Identity(k, k));
  }

  SiteNodes& nodes_;
  VectorXd widths_;
  RowSites sites_;
};

// Moments of a mixture of normals over (β, m) with h given, as its parts come.
class Mixture {
 public:
  explicit Mixture(VectorXd around)
      : around_(std::move(around)),
        first_(VectorXd::Zero(around_.size())),
        second_(MatrixXd::Zero(around_.size(), around_.size())) {}

  void add(const SiteNode& node, const VectorXd& h) {
    if (node.log_weight > top_) {
      const double shrink = std::exp(top_ - node.log_weight);
      mass_ *= shrink;
      first_ *= shrink;
      second_ *= shrink;
      top_ = node.log_weight;
    }
    const double part = std::exp(node.log_weight - top_);
    const Index d = node.mean.size();
    VectorXd gap = -around_;
    gap.head(d) += node.mean;
    gap.tail(h.size()) += h;
    mass_ += part;
    first_ += part * gap;
    second_.topLeftCorner(d, d) += part * node.covariance;
    second_ += part * gap * gap.transpose();
  }
  double top() const { return top_; }
  VectorXd mean() const { return around_ + first_ / mass_; }
  MatrixXd covariance() const {
    const VectorXd gap = first_ / mass_;
    return second_ / mass_ - gap * gap.transpose();
  }

 private:
  VectorXd around_;
  double top_ = -std::numeric_limits<double>::infinity(), mass_ = 0;
  VectorXd first_;
  MatrixXd second_;
};

// Of what weights might fall to half over, before any were seen: rows know log σ to 1/√(2n).
VectorXd first_widths(const DenseGaussian<double>& cavity, const GlmRows& rows,
                      const SiteParts& parts) {
  const auto k = Index(parts.size());
  VectorXd precision = cavity.lambda.diagonal().tail(k).cwiseMax(0.01);
  if (parts.noise) precision[k - 1] += 2 * double(rows.size());
  return precision.cwiseSqrt().cwiseInverse();
}

void check_site_arguments(const std::string& what, const DenseGaussian<double>& cavity,
                          const GlmRows& rows, const SiteParts& parts) {
  check_glm_rows(rows);
  check_same_size(what, "cavity", rows.columns + parts.size(), std::size_t(cavity.size()));
  if (parts.size() == 0) fail(what, "parts", "an intercept of its own or noise", "neither");
  if (parts.noise && rows.outcome != GlmOutcome::number) {
    fail(what, "estimated noise", "of numbers", "of another outcome");
  }
}

}  // namespace

SiteTilted site_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows,
                       const SiteParts& parts, const std::optional<VectorXd>& start,
                       const SiteGrid& grid) {
  const std::string what = fmt::format("quadrature of client {}", rows.client);
  check_site_arguments(what, cavity, rows, parts);
  const GlmTilted before = tilted_of(what, cavity);  // an improper cavity is refused
  if (rows.size() == 0) return {before};
  const auto k = Index(parts.size());
  const std::unique_ptr<SiteNodes> nodes = make_site_nodes(cavity, rows, parts);
  const Centre centre = CentreSearch(*nodes, first_widths(cavity, rows, parts))
                            .from(start.value_or(before.mean.tail(k)));

  // From the centre outward, as far as weights have not fallen.
  using Place = std::array<int, 2>;
  struct Next {
    Place place;
    RowSites sites;  // of the node that it was reached from
  };
  VectorXd around(cavity.size());
  around << before.mean.head(cavity.size() - k), centre.place;
  Mixture mixture(std::move(around));
  SiteTilted out{};
  std::set<Place> seen{{0, 0}};
  std::vector<Next> open{{{0, 0}, centre.sites}};
  while (!open.empty()) {
    Next next = std::move(open.back());
    open.pop_back();
    VectorXd steps(k);
    for (Index i = 0; i < k; ++i) steps[i] = grid.spacing * next.place[std::size_t(i)];
    const VectorXd h = centre.place + centre.root * steps;
    const SiteNode node = nodes->at(h, next.sites);
    out.sweeps += node.sweeps;
    if (++out.nodes > kMostNodes) {
      fail(what, "cavity times likelihood", "a distribution of log_site_sd and log_noise", "not");
    }
    if (!(node.log_weight > mixture.top() - grid.drop)) continue;
    mixture.add(node, h);
    for (std::size_t i = 0; i < std::size_t(k); ++i) {
      for (const int by : {-1, 1}) {
        Place place = next.place;
        place[i] += by;
        if (seen.insert(place).second) open.push_back({place, next.sites});
      }
    }
  }
  out.mean = mixture.mean();
  out.covariance = mixture.covariance();
  MatrixXd factor = out.covariance;
  if (!out.mean.allFinite() || !factorise(factor)) {
    fail(what, "cavity times likelihood", "positive definite and finite", "not");
  }
  out.q.lambda = inverse(factor);
  out.q.eta = out.q.lambda * out.mean;
  return out;
}

}  // namespace fedep
