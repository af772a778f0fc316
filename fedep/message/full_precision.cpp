#include "fedep/message/full_precision.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <Eigen/Eigenvalues>

#include "fedep/message/check.h"

namespace fedep {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using Cholesky = Eigen::LLT<Eigen::Ref<Matrix>>;  // in place
using Eigenvectors = Eigen::SelfAdjointEigenSolver<Matrix>;

// The lower triangle; what is above the diagonal stays zero.
template <class T>
Matrix lower_of(const Packed<HostVector<T>>& packed, std::size_t dimension) {
  check_same_size("full precision", "lambda", packed_size(dimension), packed.elements.size());
  const auto d = Eigen::Index(dimension);
  Matrix lower = Matrix::Zero(d, d);
  std::size_t at = 0;
  for (Eigen::Index i = 0; i < d; ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) lower(i, j) = double(packed.elements[at++]);
  }
  return lower;
}

template <class T>
Packed<HostVector<T>> packed_from(const Matrix& matrix) {
  Packed<HostVector<T>> out{HostVector<T>(packed_size(std::size_t(matrix.rows())))};
  std::size_t at = 0;
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) out.elements[at++] = T(matrix(i, j));
  }
  return out;
}

template <class T>
Vector column_of(const HostVector<T>& values) {
  return Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>>(values.span().data(),
                                                               Eigen::Index(values.size()))
      .template cast<double>();
}

template <class T>
HostVector<T> values_of(const Vector& column) {
  HostVector<T> out(std::size_t(column.size()));
  for (Eigen::Index i = 0; i < column.size(); ++i) out[std::size_t(i)] = T(column[i]);
  return out;
}

template <class T>
bool is_finite(const Packed<HostVector<T>>& packed) {
  return all_finite(packed.elements);
}

// L with Λ = L Lᵀ; the caller knows that there is one.
template <class T>
Matrix factor_of(const Packed<HostVector<T>>& lambda, std::size_t dimension) {
  Matrix lower = lower_of(lambda, dimension);
  if (!is_finite(lambda) || Cholesky(lower).info() != Eigen::Success) {
    fail("full precision", "lambda", "positive definite", "not");
  }
  return lower;
}

template <class T>
Vector eigenvalues_of(const Packed<HostVector<T>>& lambda, std::size_t dimension) {
  return Eigenvectors(lower_of(lambda, dimension), Eigen::EigenvaluesOnly).eigenvalues();
}

// The largest eigenvalue of a positive definite matrix that `apply` multiplies by, from below.
template <class Apply>
double largest_eigenvalue(Eigen::Index d, Apply apply) {
  constexpr int kMost = 300;
  constexpr double kSettled = 1e-4;
  Vector x(d);
  for (Eigen::Index i = 0; i < d; ++i)
    x[i] = 1 + 0.5 * std::sin(double(i + 1));  // no axis, no plane
  double largest = 0;
  for (int i = 0; i < kMost; ++i) {
    x.normalize();
    const Vector next = apply(x);
    const double now = x.dot(next);
    x = next;
    if (i > 3 && std::fabs(now - largest) <= kSettled * now) return std::max(largest, now);
    largest = now;
  }
  return largest;
}

}  // namespace

template <class T>
bool is_positive_definite(const Packed<HostVector<T>>& lambda, std::size_t dimension,
                          double least) {
  if (!is_finite(lambda)) return false;
  Matrix lower = lower_of(lambda, dimension);
  lower.diagonal().array() -= least;
  return Cholesky(lower).info() == Eigen::Success;
}

template <class T>
double min_eigenvalue(const Packed<HostVector<T>>& lambda, std::size_t dimension) {
  if (!is_finite(lambda)) return std::numeric_limits<double>::quiet_NaN();
  if (dimension == 0) return std::numeric_limits<double>::infinity();
  return eigenvalues_of(lambda, dimension).minCoeff();
}

template <class T>
std::size_t count_not_positive(const Packed<HostVector<T>>& lambda, std::size_t dimension) {
  if (!is_finite(lambda)) return dimension;
  if (is_positive_definite(lambda, dimension)) return 0;
  // Cholesky and eigenvalues may disagree by rounding; what has no factor has at least one.
  const auto count = std::size_t((eigenvalues_of(lambda, dimension).array() <= 0).count());
  return std::max<std::size_t>(count, 1);
}

template <class T>
HostVector<T> solve(const Packed<HostVector<T>>& lambda, const HostVector<T>& eta) {
  const Matrix lower = factor_of(lambda, eta.size());
  Vector x = column_of(eta);
  lower.triangularView<Eigen::Lower>().solveInPlace(x);
  lower.triangularView<Eigen::Lower>().transpose().solveInPlace(x);
  return values_of<T>(x);
}

template <class T>
HostVector<T> inverse_diagonal(const Packed<HostVector<T>>& lambda, std::size_t dimension) {
  const Matrix lower = factor_of(lambda, dimension);
  Matrix inverse = Matrix::Identity(lower.rows(), lower.cols());  // of L
  lower.triangularView<Eigen::Lower>().solveInPlace(inverse);
  return values_of<T>(inverse.colwise().squaredNorm().transpose());
}

template <class T>
HostVector<T> correlated(const Packed<HostVector<T>>& lambda, const HostVector<T>& noise) {
  const Matrix lower = factor_of(lambda, noise.size());
  Vector x = column_of(noise);
  lower.triangularView<Eigen::Lower>().transpose().solveInPlace(x);
  return values_of<T>(x);
}

template <class T>
double log_determinant(const Packed<HostVector<T>>& lambda, std::size_t dimension) {
  return 2 * factor_of(lambda, dimension).diagonal().array().log().sum();
}

template <class T>
double trace_of_quotient(const Packed<HostVector<T>>& a, const Packed<HostVector<T>>& lambda,
                         std::size_t dimension) {
  const Matrix lower = factor_of(lambda, dimension);
  const Matrix numerator = lower_of(a, dimension);
  Matrix x = numerator.selfadjointView<Eigen::Lower>();
  lower.triangularView<Eigen::Lower>().solveInPlace(x);
  lower.triangularView<Eigen::Lower>().transpose().solveInPlace(x);
  return x.trace();
}

template <class T>
double quadratic_form(const Packed<HostVector<T>>& a, const HostVector<T>& x) {
  const Matrix lower = lower_of(a, x.size());
  const Vector column = column_of(x);
  return column.dot(lower.selfadjointView<Eigen::Lower>() * column);
}

template <class T>
double condition_number(const Packed<HostVector<T>>& lambda, std::size_t dimension) {
  if (dimension == 0) return 1;
  if (!is_positive_definite(lambda, dimension)) return std::numeric_limits<double>::infinity();
  const Matrix matrix = lower_of(lambda, dimension), factor = factor_of(lambda, dimension);
  const auto d = Eigen::Index(dimension);
  const double largest = largest_eigenvalue(
      d, [&](const Vector& x) -> Vector { return matrix.selfadjointView<Eigen::Lower>() * x; });
  const double largest_of_inverse = largest_eigenvalue(d, [&](Vector x) -> Vector {
    factor.triangularView<Eigen::Lower>().solveInPlace(x);
    factor.triangularView<Eigen::Lower>().transpose().solveInPlace(x);
    return x;
  });
  return largest * largest_of_inverse;
}

template <class T>
HostVector<T> stationary_point(const Packed<HostVector<T>>& lambda, const HostVector<T>& eta,
                               const HostVector<T>& elsewhere) {
  check_same_size("stationary_point", "elsewhere", eta.size(), elsewhere.size());
  if (!is_finite(lambda) || !all_finite(eta)) return elsewhere;
  const Eigenvectors solver(lower_of(lambda, eta.size()));
  const Vector& values = solver.eigenvalues();
  const Matrix& axes = solver.eigenvectors();
  const double flat = 1e-12 * values.cwiseAbs().maxCoeff();
  const Vector along = axes.transpose() * column_of(eta);
  Vector at = axes.transpose() * column_of(elsewhere);
  for (Eigen::Index i = 0; i < values.size(); ++i) {
    if (std::fabs(values[i]) > flat) at[i] = along[i] / values[i];
  }
  return values_of<T>(axes * at);
}

template <class T>
void raise_eigenvalues(HostVector<T>& eta, Packed<HostVector<T>>& lambda,
                       const HostVector<T>& mean_before, double floor) {
  check_positive("raise_eigenvalues", "floor", floor);
  const std::size_t d = eta.size();
  const Vector before = column_of(mean_before);
  if (!is_finite(lambda) || !all_finite(eta)) {
    eta = values_of<T>(floor * before);
    lambda = packed_from<T>(floor * Matrix::Identity(Eigen::Index(d), Eigen::Index(d)));
    return;
  }
  if (is_positive_definite(lambda, d, floor)) return;
  const Eigenvectors solver(lower_of(lambda, d));
  const Matrix& axes = solver.eigenvectors();
  const Vector wanted = axes.transpose() * column_of(eta), old = axes.transpose() * before;
  for (double least = floor;; least *= 2) {
    Vector values = solver.eigenvalues(), along = wanted;
    for (Eigen::Index i = 0; i < values.size(); ++i) {
      if (values[i] >= least) continue;
      along[i] = least * (values[i] > 0 ? wanted[i] / values[i] : old[i]);
      values[i] = least;
    }
    lambda = packed_from<T>(axes * values.asDiagonal() * axes.transpose());
    eta = values_of<T>(axes * along);
    if (is_positive_definite(lambda, d, floor / 2)) return;
  }
}

// Messages are float, and their laws are tested in double.
template bool is_positive_definite(const Packed<HostVector<float>>&, std::size_t, double);
template bool is_positive_definite(const Packed<HostVector<double>>&, std::size_t, double);
template double min_eigenvalue(const Packed<HostVector<float>>&, std::size_t);
template double min_eigenvalue(const Packed<HostVector<double>>&, std::size_t);
template std::size_t count_not_positive(const Packed<HostVector<float>>&, std::size_t);
template std::size_t count_not_positive(const Packed<HostVector<double>>&, std::size_t);
template HostVector<float> solve(const Packed<HostVector<float>>&, const HostVector<float>&);
template HostVector<double> solve(const Packed<HostVector<double>>&, const HostVector<double>&);
template HostVector<float> inverse_diagonal(const Packed<HostVector<float>>&, std::size_t);
template HostVector<double> inverse_diagonal(const Packed<HostVector<double>>&, std::size_t);
template HostVector<float> correlated(const Packed<HostVector<float>>&, const HostVector<float>&);
template HostVector<double> correlated(const Packed<HostVector<double>>&,
                                       const HostVector<double>&);
template double log_determinant(const Packed<HostVector<float>>&, std::size_t);
template double log_determinant(const Packed<HostVector<double>>&, std::size_t);
template double trace_of_quotient(const Packed<HostVector<float>>&,
                                  const Packed<HostVector<float>>&, std::size_t);
template double trace_of_quotient(const Packed<HostVector<double>>&,
                                  const Packed<HostVector<double>>&, std::size_t);
template double quadratic_form(const Packed<HostVector<float>>&, const HostVector<float>&);
template double quadratic_form(const Packed<HostVector<double>>&, const HostVector<double>&);
template double condition_number(const Packed<HostVector<float>>&, std::size_t);
template double condition_number(const Packed<HostVector<double>>&, std::size_t);
template HostVector<float> stationary_point(const Packed<HostVector<float>>&,
                                            const HostVector<float>&, const HostVector<float>&);
template HostVector<double> stationary_point(const Packed<HostVector<double>>&,
                                             const HostVector<double>&, const HostVector<double>&);
template void raise_eigenvalues(HostVector<float>&, Packed<HostVector<float>>&,
                                const HostVector<float>&, double);
template void raise_eigenvalues(HostVector<double>&, Packed<HostVector<double>>&,
                                const HostVector<double>&, double);

}  // namespace fedep
