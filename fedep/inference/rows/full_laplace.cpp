#include "fedep/inference/rows/full_laplace.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "fedep/inference/rows/glm_energy.h"
#include "fedep/inference/rows/newton.h"
#include "fedep/inference/rows/symmetric_matrix.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

using Table = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const Table> features_of(const ClassRows& rows) {
  return {rows.x.data(), Eigen::Index(rows.size()), Eigen::Index(rows.columns)};
}

Table logits_of(const ClassRows& rows, const Eigen::VectorXd& theta) {
  const Eigen::Map<const Table> weights(theta.data(), Eigen::Index(rows.columns),
                                        Eigen::Index(rows.classes));
  return features_of(rows) * weights;
}

// -log of cavity times the likelihood of classes.
class ClassEnergy final : public Energy {
 public:
  ClassEnergy(const DenseGaussian<double>& cavity, const ClassRows& rows)
      : cavity_(cavity), rows_(rows) {}

  double value(const Eigen::VectorXd& theta) const override {
    return 0.5 * theta.dot(pull(theta)) - cavity_.eta.dot(theta) + loss_of(rows_, theta);
  }
  Eigen::VectorXd gradient(const Eigen::VectorXd& theta) const override {
    Table p = probabilities(theta);
    for (Eigen::Index i = 0; i < p.rows(); ++i) p(i, label(i)) -= 1;
    const Table sums = features_of(rows_).transpose() * p;
    return pull(theta) - cavity_.eta + Eigen::Map<const Eigen::VectorXd>(sums.data(), sums.size());
  }
  // Block (c, c') of rows and columns j classes + c: Σ_i (p_c [c = c'] - p_c p_c') x_i x_iᵀ.
  Eigen::MatrixXd hessian(const Eigen::VectorXd& theta) const override {
    const Table p = probabilities(theta);
    const Eigen::Index classes = p.cols(), columns = Eigen::Index(rows_.columns);
    Eigen::MatrixXd sum = cavity_.lambda;
    std::vector<double> weights(rows_.size());
    for (Eigen::Index a = 0; a < classes; ++a) {
      for (Eigen::Index b = 0; b <= a; ++b) {
        for (Eigen::Index i = 0; i < p.rows(); ++i) {
          weights[std::size_t(i)] = p(i, a) * ((a == b ? 1 : 0) - p(i, b));
        }
        Eigen::MatrixXd block = Eigen::MatrixXd::Zero(columns, columns);
        add_gram(rows_.x, weights, block);
        mirror(block);
        for (Eigen::Index j = 0; j < columns; ++j) {
          for (Eigen::Index k = 0; k < columns; ++k) {
            sum(j * classes + a, k * classes + b) += block(j, k);
            if (a != b) sum(k * classes + b, j * classes + a) += block(j, k);
          }
        }
      }
    }
    return sum;
  }

 private:
  Eigen::Index label(Eigen::Index i) const { return rows_.labels[std::size_t(i)]; }
  Table probabilities(const Eigen::VectorXd& theta) const {
    Table p = logits_of(rows_, theta);
    for (Eigen::Index i = 0; i < p.rows(); ++i) {
      const Eigen::RowVectorXd e = (p.row(i).array() - p.row(i).maxCoeff()).exp();
      p.row(i) = e / e.sum();
    }
    return p;
  }
  Eigen::VectorXd pull(const Eigen::VectorXd& theta) const {
    return cavity_.lambda.selfadjointView<Eigen::Lower>() * theta;
  }

  const DenseGaussian<double>& cavity_;
  const ClassRows& rows_;
};

void check_class_rows(const ClassRows& rows) {
  const std::string who = fmt::format("rows of client {}", rows.client);
  check_same_size(who, "x", rows.size() * rows.columns, rows.x.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.labels[i] < 0 || std::size_t(rows.labels[i]) >= rows.classes) {
      fail(who, fmt::format("the class of row {}", i), fmt::format("in [0, {})", rows.classes),
           fmt::format("{}", rows.labels[i]));
    }
  }
  for (const double value : rows.x) check_finite(who, "x", value);
}

GlmTilted around_mode(const std::string& what, const DenseGaussian<double>& cavity,
                      const Energy& energy) {
  EnergyMode mode = find_mode(what, energy, start_of(cavity, energy));
  mirror(mode.hessian);
  const Eigen::VectorXd eta = mode.hessian * mode.theta;
  return {.q = {eta, std::move(mode.hessian)},
          .mean = std::move(mode.theta),
          .covariance = inverse(mode.factor),
          .sweeps = mode.steps};
}

// Of a likelihood alone: its cavity is flat.
DenseGaussian<double> flat(std::size_t size) {
  const Eigen::Index d = Eigen::Index(size);
  return {Eigen::VectorXd::Zero(d), Eigen::MatrixXd::Zero(d, d)};
}

}  // namespace

double loss_of(const ClassRows& rows, const Eigen::VectorXd& theta) {
  const Table z = logits_of(rows, theta);
  double loss = 0;
  for (Eigen::Index i = 0; i < z.rows(); ++i) {
    const double top = z.row(i).maxCoeff();
    loss += top + std::log((z.row(i).array() - top).exp().sum()) -
            z(i, Eigen::Index(rows.labels[std::size_t(i)]));
  }
  return loss;
}

GlmTilted laplace_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows) {
  const std::string what = fmt::format("laplace of client {}", rows.client);
  check_tilted_arguments(what, cavity, rows);
  return around_mode(what, cavity, GlmEnergy(cavity, rows));
}

GlmTilted laplace_tilted(const DenseGaussian<double>& cavity, const ClassRows& rows) {
  const std::string what = fmt::format("laplace of client {}", rows.client);
  check_class_rows(rows);
  check_same_size(what, "cavity", rows.columns * rows.classes, std::size_t(cavity.size()));
  return around_mode(what, cavity, ClassEnergy(cavity, rows));
}

Eigen::MatrixXd likelihood_hessian(const GlmRows& rows, const Eigen::VectorXd& theta) {
  check_glm_rows(rows);
  check_same_size("likelihood_hessian", "theta", rows.columns, std::size_t(theta.size()));
  const DenseGaussian<double> nothing = flat(rows.columns);
  Eigen::MatrixXd hessian = GlmEnergy(nothing, rows).hessian(theta);
  mirror(hessian);
  return hessian;
}

Eigen::MatrixXd likelihood_hessian(const ClassRows& rows, const Eigen::VectorXd& theta) {
  check_class_rows(rows);
  check_same_size("likelihood_hessian", "theta", rows.columns * rows.classes,
                  std::size_t(theta.size()));
  const DenseGaussian<double> nothing = flat(rows.columns * rows.classes);
  Eigen::MatrixXd hessian = ClassEnergy(nothing, rows).hessian(theta);
  mirror(hessian);
  return hessian;
}

Eigen::VectorXd likelihood_gradient(const GlmRows& rows, const Eigen::VectorXd& theta) {
  check_glm_rows(rows);
  check_same_size("likelihood_gradient", "theta", rows.columns, std::size_t(theta.size()));
  const DenseGaussian<double> nothing = flat(rows.columns);
  return GlmEnergy(nothing, rows).gradient(theta);
}

Eigen::VectorXd likelihood_gradient(const ClassRows& rows, const Eigen::VectorXd& theta) {
  check_class_rows(rows);
  check_same_size("likelihood_gradient", "theta", rows.columns * rows.classes,
                  std::size_t(theta.size()));
  const DenseGaussian<double> nothing = flat(rows.columns * rows.classes);
  return ClassEnergy(nothing, rows).gradient(theta);
}

}  // namespace fedep
