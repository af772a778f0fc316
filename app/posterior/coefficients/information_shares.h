// What part of a posterior's precision came from whom. q is the product of the prior and one factor per client, so
// its precision is a sum, Λ = Λ_0 + Σ_k Λ_k. With C = Λ⁻¹ the share of the k-th in what is linear in the weights is
//
//   one number aᵀβ       aᵀC Λ_k C a / aᵀC a; of one weight of a diagonal family Λ_k / Λ
//   several, Aβ          tr((A C Aᵀ)⁻¹ A C Λ_k C Aᵀ) / n; of all d weights tr(C Λ_k) / d
//
// Both add up to 1 over prior and clients, do not depend on the columns' units, references or the order of rows of A,
// and are not negative where no factor is. They need factors alone, which runs of stateful phases keep, and no row of anybody.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "app/posterior/saved_posterior.h"
#include "fedep/message/gaussian.h"

namespace fedep {

// Σ weight · β[index].
using Combination = std::vector<std::pair<std::size_t, double>>;

class InformationShares {
 public:
  struct Part {
    std::string name;
    Message factor;
  };

  InformationShares() = default;  // of nobody
  // Throws InputError if the parts' product is not a proper distribution.
  explicit InformationShares(std::vector<Part> parts);

  std::vector<std::string> names() const;
  // By combination, then by part.
  std::vector<std::vector<double>> of_each(std::span<const Combination> combinations) const;
  // Of all of them, by part. Beyond 2,000 combinations it is their mean, which for single weights of a diagonal
  // family is the same.
  std::vector<double> of_all(std::span<const Combination> combinations) const;
  // |Λ - Λ_q| / |Λ|: 0 where q is the product, to rounding.
  double gap_to(const Message& q) const;

 private:
  Eigen::MatrixXd spread(std::span<const Combination> combinations) const;  // C Aᵀ
  Eigen::MatrixXd times(const Eigen::MatrixXd& precision, const Eigen::MatrixXd& spread) const;

  std::vector<Part> parts_;
  Eigen::MatrixXd total_, covariance_;  // diagonal families: one column
};

// Of a run's checkpoint: the prior's, named "prior", then each client's by its name. Where there are none,
// `why_not` says why in one sentence without its full stop.
struct KeptShares {
  InformationShares shares = {};
  std::string why_not = {};
  std::string note = {};  // what is to be said of them, or nothing
};
KeptShares kept_shares(const SavedPosterior& saved);

}  // namespace fedep
