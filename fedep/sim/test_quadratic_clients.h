// Clients whose losses are quadratics with dense curvature, answered without error: linear regression
// as it is, whatever the data. Sum of a client's losses: ½ θᵀHθ - bᵀθ. The mean of a tilted distribution
// is exact; its precision is what the phase's method aims at:
//
//   map                     the cavity's
//   scaled_identity         the cavity's + α N_k
//   laplace, ngvi, ivon     the cavity's + diag H (or + H in the full family): for a quadratic loss
//                           Laplace's, and the minimum of KL(· ‖ cavity × likelihood)
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Eigen/Dense>

#include "fedep/message/dense_gaussian.h"
#include "fedep/random/stream.h"
#include "fedep/round/host_rows.h"
#include "fedep/round/population.h"

namespace fedep {

struct Quadratic {
  Eigen::MatrixXd h;
  Eigen::VectorXd b;
};

inline Eigen::VectorXd to_eigen(std::span<const float> x) {
  Eigen::VectorXd out(Eigen::Index(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) out[Eigen::Index(i)] = double(x[i]);
  return out;
}
inline HostVector<float> from_eigen(const Eigen::VectorXd& x) {
  HostVector<float> out(std::size_t(x.size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = float(x[Eigen::Index(i)]);
  return out;
}

class QuadraticClients final : public LocalInference {
 public:
  // `sizes`: examples of each. H is `examples` outer products of drawn rows.
  explicit QuadraticClients(const std::vector<std::size_t>& sizes, Eigen::Index d = 3) {
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      Stream stream({.seed = 77, .step = std::uint32_t(k)});
      Quadratic q{Eigen::MatrixXd::Zero(d, d), Eigen::VectorXd::Zero(d)};
      for (std::size_t i = 0; i < sizes[k]; ++i) {
        Eigen::VectorXd x(d);
        for (double& value : x) value = stream.normal();
        q.h += x * x.transpose();
        q.b += x * (2 * stream.normal() + double(k));
      }
      const std::string id = "client-" + std::to_string(k);
      ids_.emplace_back(id, sizes[k]);
      all_.insert_or_assign(client_key(id), q);
    }
  }

  Population population() const { return make_population(ids_); }
  const Quadratic& of(std::uint64_t key) const { return all_.at(key); }

  ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
    const Quadratic& own = all_.at(visit.client.key);
    const Message& cavity = visit.cavity;
    const DenseGaussian<float, Eigen::Dynamic> c = to_dense<float, Eigen::Dynamic>(cavity);
    const Eigen::MatrixXd precision = own.h + c.lambda.template cast<double>();
    const Eigen::VectorXd mean = precision.ldlt().solve(own.b + c.eta.template cast<double>());
    numbers.steps = 1;
    ClientRun run;
    run.last = from_eigen(mean);
    const Phase& phase = visit.round.phase;
    if (phase.algorithm->needs == Needs::tilted) {
      run.tilted = tilted(phase, cavity, own, mean, double(visit.client.examples));
    }
    return run;
  }

 private:
  static Message tilted(const Phase& phase, const Message& cavity, const Quadratic& own,
                        const Eigen::VectorXd& mean, double examples) {
    const std::string_view method = phase.inference.name;
    if (method == "map" || method == "scaled_identity") {
      const float added = method == "map" ? 0.0f : float(phase.inference.alpha * examples);
      if (cavity.isotropic()) return from_mean(from_eigen(mean), cavity.lambda_scalar() + added);
      return from_mean(from_eigen(mean), cavity.lambda_vector() + added);
    }
    if (phase.family == Family::full) {
      Message likelihood = flat_like(cavity.eta(), Family::full);
      for (std::size_t i = 0; i < cavity.size(); ++i) {
        likelihood.eta()[i] = float(own.b[Eigen::Index(i)]);
        for (std::size_t j = 0; j <= i; ++j) {
          likelihood.lambda_span()[packed_index(i, j)] =
              float(own.h(Eigen::Index(i), Eigen::Index(j)));
        }
      }
      return product(cavity, likelihood);
    }
    return from_mean(from_eigen(mean),
                     cavity.lambda_full() + from_eigen(Eigen::VectorXd(own.h.diagonal())));
  }

  std::vector<std::pair<std::string, std::size_t>> ids_;
  std::map<std::uint64_t, Quadratic> all_;
};

}  // namespace fedep
