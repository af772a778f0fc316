#include "fedep/inference/rows/symmetric_matrix.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include <cblas-openblas.h>
#include <Eigen/Cholesky>

namespace fedep {
namespace {

// Rows that are scaled at once: enough for BLAS to be fast, few enough to stay in a cache.
constexpr std::size_t kRows = 128;
// A block that Eigen factorises; larger ones are cut in halves, whose products are BLAS's.
constexpr Eigen::Index kSmall = 64;

// a += sign Σ rows, each of which is scaled already.
void add_rows(const std::vector<double>& rows, int d, double sign, Eigen::MatrixXd& a) {
  if (rows.empty()) return;
  cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, d, int(rows.size()) / d, sign, rows.data(),
              d, 1.0, a.data(), d);
}

// The lower triangle of the n columns at `a`, which lie `stride` apart.
bool factorise_block(double* a, Eigen::Index n, Eigen::Index stride) {
  if (n <= kSmall) {
    using Block = Eigen::Map<Eigen::MatrixXd, 0, Eigen::OuterStride<>>;
    Block block(a, n, n, Eigen::OuterStride<>(stride));
    Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factor(block);
    return factor.info() == Eigen::Success && block.diagonal().allFinite();
  }
  const Eigen::Index half = n / 2, rest = n - half;
  double* const below = a + half;
  double* const corner = a + half * stride + half;
  if (!factorise_block(a, half, stride)) return false;
  cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, int(rest), int(half),
              1.0, a, int(stride), below, int(stride));
  cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, int(rest), int(half), -1.0, below,
              int(stride), 1.0, corner, int(stride));
  return factorise_block(corner, rest, stride);
}

}  // namespace

void add_gram(std::span<const double> x, std::span<const double> weights, Eigen::MatrixXd& a) {
  const std::size_t d = std::size_t(a.cols()), n = weights.size();
  assert(x.size() == n * d);
  std::vector<double> plus, minus;
  for (std::size_t begin = 0; begin < n; begin += kRows) {
    plus.clear();
    minus.clear();
    for (std::size_t i = begin; i < std::min(n, begin + kRows); ++i) {
      if (weights[i] == 0) continue;
      std::vector<double>& rows = weights[i] < 0 ? minus : plus;
      const double root = std::sqrt(std::abs(weights[i]));
      for (std::size_t j = 0; j < d; ++j) rows.push_back(root * x[i * d + j]);
    }
    add_rows(plus, int(d), 1, a);
    add_rows(minus, int(d), -1, a);
  }
}

bool factorise(Eigen::MatrixXd& a) {
  assert(a.rows() == a.cols());
  return factorise_block(a.data(), a.rows(), a.rows());
}

Eigen::VectorXd solve(const Eigen::MatrixXd& factor, const Eigen::VectorXd& b) {
  Eigen::VectorXd x = b;
  const int d = int(factor.rows());
  cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, d, factor.data(), d, x.data(),
              1);
  cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, d, factor.data(), d, x.data(),
              1);
  return x;
}

Eigen::MatrixXd inverse(const Eigen::MatrixXd& factor) {
  const int d = int(factor.rows());
  Eigen::MatrixXd root = Eigen::MatrixXd::Identity(d, d);  // L⁻¹
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, d, d, 1.0,
              factor.data(), d, root.data(), d);
  Eigen::MatrixXd out = Eigen::MatrixXd::Zero(d, d);
  cblas_dsyrk(CblasColMajor, CblasLower, CblasTrans, d, d, 1.0, root.data(), d, 0.0, out.data(), d);
  mirror(out);
  return out;
}

double log_determinant(const Eigen::MatrixXd& factor) {
  return 2 * factor.diagonal().array().log().sum();
}

void mirror(Eigen::MatrixXd& a) { a.triangularView<Eigen::StrictlyUpper>() = a.transpose(); }

}  // namespace fedep
