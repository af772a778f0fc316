// A full precision matrix Λ in main memory, for what its elements alone do not tell. Whatever the
// elements are, everything is worked out in double, by Cholesky's factor where Λ is positive definite.
//
//   if (is_positive_definite(lambda, d)) use(solve(lambda, eta));      // the mean
#pragma once

#include <cstddef>

#include "fedep/message/host_vector.h"
#include "fedep/message/packed.h"

namespace fedep {

// Whether Λ - least·I is positive definite. False if an element is NaN or infinite.
template <class T>
bool is_positive_definite(const Packed<HostVector<T>>& lambda, std::size_t dimension,
                          double least = 0);

// Smallest eigenvalue; NaN if an element is NaN or infinite.
template <class T>
double min_eigenvalue(const Packed<HostVector<T>>& lambda, std::size_t dimension);
// How many eigenvalues are not positive: all of them if an element is NaN or infinite.
template <class T>
std::size_t count_not_positive(const Packed<HostVector<T>>& lambda, std::size_t dimension);

// Of a positive definite Λ = L Lᵀ: Λ⁻¹η, the diagonal of Λ⁻¹, L⁻ᵀ·noise (normal with covariance Λ⁻¹ where
// noise is standard normal), log det Λ.
template <class T>
HostVector<T> solve(const Packed<HostVector<T>>& lambda, const HostVector<T>& eta);
template <class T>
HostVector<T> inverse_diagonal(const Packed<HostVector<T>>& lambda, std::size_t dimension);
template <class T>
HostVector<T> correlated(const Packed<HostVector<T>>& lambda, const HostVector<T>& noise);
template <class T>
double log_determinant(const Packed<HostVector<T>>& lambda, std::size_t dimension);
// tr(A Λ⁻¹), Λ positive definite; xᵀAx.
template <class T>
double trace_of_quotient(const Packed<HostVector<T>>& a, const Packed<HostVector<T>>& lambda,
                         std::size_t dimension);
template <class T>
double quadratic_form(const Packed<HostVector<T>>& a, const HostVector<T>& x);

// Of Λ's 2-norm, found by iteration from below to about a percent: infinity if Λ is not positive
// definite.
template <class T>
double condition_number(const Packed<HostVector<T>>& lambda, std::size_t dimension);

// Where (eta, Λ) would have its mean in directions of Λ that are not flat, `elsewhere` in all others.
// Λ may be indefinite.
template <class T>
HostVector<T> stationary_point(const Packed<HostVector<T>>& lambda, const HostVector<T>& eta,
                               const HostVector<T>& elsewhere);

// Eigenvalues below `floor` are raised to it, and further where Λ could not be told positive definite
// once its elements are rounded. A direction whose eigenvalue was positive keeps its mean, others get
// that of `mean_before`. An eta or Λ that is not finite becomes (floor·mean_before, floor·I).
template <class T>
void raise_eigenvalues(HostVector<T>& eta, Packed<HostVector<T>>& lambda,
                       const HostVector<T>& mean_before, double floor);

}  // namespace fedep
