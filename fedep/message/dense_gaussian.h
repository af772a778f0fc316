// A Gaussian with a full precision matrix, for small d: the toy experiment's clients, tilted
// distributions of the full family. Eigen's matrices carry the dimension in the type (D = 2 in the toy, so
// nothing is allocated) or at run time (D = Eigen::Dynamic).
#pragma once

#include <Eigen/Core>
#include <Eigen/Dense>

#include "fedep/message/check.h"
#include "fedep/message/gaussian.h"

namespace fedep {

template <class T, int D = Eigen::Dynamic>
struct DenseGaussian {
  using Vector = Eigen::Matrix<T, D, 1>;
  using Matrix = Eigen::Matrix<T, D, D>;

  Vector eta;
  Matrix lambda;  // symmetric

  Eigen::Index size() const { return eta.size(); }
};

template <class T, int D>
DenseGaussian<T, D> product(const DenseGaussian<T, D>& a, const DenseGaussian<T, D>& b) {
  return {a.eta + b.eta, a.lambda + b.lambda};
}

template <class T, int D>
DenseGaussian<T, D> quotient(const DenseGaussian<T, D>& a, const DenseGaussian<T, D>& b) {
  return {a.eta - b.eta, a.lambda - b.lambda};
}

template <class T, int D>
DenseGaussian<T, D> power(const DenseGaussian<T, D>& q, T exponent) {
  return {exponent * q.eta, exponent * q.lambda};
}

// Positive definite: its Cholesky factor exists.
template <class T, int D>
bool is_proper(const DenseGaussian<T, D>& q) {
  return q.eta.allFinite() && q.lambda.allFinite() &&
         Eigen::LLT<typename DenseGaussian<T, D>::Matrix>(q.lambda).info() == Eigen::Success;
}

template <class T, int D>
void check_proper(std::string_view function, std::string_view name, const DenseGaussian<T, D>& q) {
  if (!is_proper(q)) fail(function, name, "positive definite and finite", "not");
}

template <class T, int D>
typename DenseGaussian<T, D>::Matrix covariance(const DenseGaussian<T, D>& q) {
  check_proper("covariance", "message", q);
  return q.lambda.inverse();
}

template <class T, int D>
typename DenseGaussian<T, D>::Vector mean(const DenseGaussian<T, D>& q) {
  check_proper("mean", "message", q);
  return q.lambda.llt().solve(q.eta);
}

template <class T, int D>
DenseGaussian<T, D> dense_from_moments(const Eigen::Matrix<T, D, 1>& mean,
                                       const Eigen::Matrix<T, D, D>& covariance) {
  check_same_size("dense_from_moments", "covariance", std::size_t(mean.size() * mean.size()),
                  std::size_t(covariance.size()));
  const typename DenseGaussian<T, D>::Matrix lambda = covariance.inverse();
  const DenseGaussian<T, D> q{lambda * mean, lambda};
  check_proper("dense_from_moments", "covariance", q);
  return q;
}

// A message written as a dense one, of any family. It need not be proper.
template <class T, int D = Eigen::Dynamic>
DenseGaussian<T, D> to_dense(const Gaussian<HostVector<T>>& q) {
  using Column = Eigen::Map<const Eigen::Matrix<T, D, 1>>;
  const auto d = Eigen::Index(q.size());
  DenseGaussian<T, D> out{Column(q.eta().span().data(), d), {}};
  out.lambda.setZero(d, d);
  if (q.full()) {
    const std::span<const T> packed = q.lambda_span();
    for (Eigen::Index i = 0, at = 0; i < d; ++i) {
      for (Eigen::Index j = 0; j <= i; ++j) {
        out.lambda(i, j) = out.lambda(j, i) = packed[std::size_t(at++)];
      }
    }
    return out;
  }
  for (Eigen::Index i = 0; i < d; ++i) {
    out.lambda(i, i) = q.isotropic() ? q.lambda_scalar() : q.lambda_vector()[std::size_t(i)];
  }
  return out;
}

// A dense Gaussian as a message of the full family; the lower triangle is read.
template <class To, class T, int D>
Gaussian<HostVector<To>> to_message(const DenseGaussian<T, D>& q) {
  const auto d = std::size_t(q.size());
  HostVector<To> eta(d), lambda(packed_size(d));
  for (std::size_t i = 0, at = 0; i < d; ++i) {
    eta[i] = To(q.eta[Eigen::Index(i)]);
    for (std::size_t j = 0; j <= i; ++j)
      lambda[at++] = To(q.lambda(Eigen::Index(i), Eigen::Index(j)));
  }
  return {std::move(eta), Packed<HostVector<To>>{std::move(lambda)}};
}

// The message that a round moves about, in the precision that it is worked with.
inline DenseGaussian<double> in_double(const Message& q) {
  const DenseGaussian<float> dense = to_dense<float>(q);
  return {dense.eta.cast<double>(), dense.lambda.cast<double>()};
}

}  // namespace fedep
