// One node of site_tilted(): what rows and cavity say where h = (log τ, log σ) is given.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fedep/inference/rows/glm_rows.h"
#include "fedep/inference/rows/quadrature.h"
#include "fedep/inference/rows/site_tilted.h"

namespace fedep {

struct SiteNode {
  double log_weight = 0;       // of cavity times evidence; one constant for all nodes is left out
  Eigen::VectorXd mean;        // of (β, m), given h
  Eigen::MatrixXd covariance;  // of these
  int sweeps = 0;
};

class SiteNodes {
 public:
  virtual ~SiteNodes() = default;
  // EP begins with `sites`, which are its factors afterwards.
  virtual SiteNode at(const Eigen::VectorXd& h, RowSites& sites) = 0;
};

// What is referred to must outlive it.
std::unique_ptr<SiteNodes> make_site_nodes(const DenseGaussian<double>& cavity, const GlmRows& rows,
                                           const SiteParts& parts);

}  // namespace fedep
