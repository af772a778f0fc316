#include "fedep/data/table/audit/collinearity.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "fedep/message/check.h"

namespace fedep {
namespace {

std::size_t place(std::size_t i, std::size_t j) { return i * (i + 1) / 2 + j; }

// A growing Cholesky factor L of the correlations of columns that do not depend on one another.
class Basis {
 public:
  explicit Basis(const CrossProducts& products) : products_(products) {}

  const std::vector<std::size_t>& columns() const { return columns_; }

  // Takes the column in, unless what the others leave of it is nothing; gives whether it did.
  bool take(std::size_t column) {
    constexpr double kNothing = 1e-9;  // of its variance: floats are no finer
    std::vector<double> row = forward(column);
    double left = 1;
    for (const double x : row) left -= x * x;
    if (left < kNothing) return false;
    row.push_back(std::sqrt(left));
    factor_.insert(factor_.end(), row.begin(), row.end());
    columns_.push_back(column);
    return true;
  }

  // Of a column that depends on those here: its regression on them, all scaled to deviation 1.
  std::vector<double> weights(std::size_t column) const {
    std::vector<double> x = forward(column);
    for (std::size_t i = x.size(); i-- > 0;) {
      for (std::size_t k = i + 1; k < x.size(); ++k) x[i] -= factor_[place(k, i)] * x[k];
      x[i] /= factor_[place(i, i)];
    }
    return x;
  }

  // The diagonal of the inverse of L Lᵀ: squares of the columns of L⁻¹.
  std::vector<double> inverse_diagonal() const {
    const std::size_t n = columns_.size();
    std::vector<double> out(n), x(n);
    for (std::size_t j = 0; j < n; ++j) {
      x[j] = 1 / factor_[place(j, j)];
      out[j] = x[j] * x[j];
      for (std::size_t i = j + 1; i < n; ++i) {
        double sum = 0;
        for (std::size_t k = j; k < i; ++k) sum += factor_[place(i, k)] * x[k];
        x[i] = -sum / factor_[place(i, i)];
        out[j] += x[i] * x[i];
      }
    }
    return out;
  }

 private:
  double correlation(std::size_t i, std::size_t j) const {
    return products_.around_means(i, j) /
           std::sqrt(products_.around_means(i, i) * products_.around_means(j, j));
  }

  // L⁻¹ times the column's correlations with those here.
  std::vector<double> forward(std::size_t column) const {
    std::vector<double> x;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      double sum = correlation(columns_[i], column);
      for (std::size_t k = 0; k < i; ++k) sum -= factor_[place(i, k)] * x[k];
      x.push_back(sum / factor_[place(i, i)]);
    }
    return x;
  }

  const CrossProducts& products_;
  std::vector<std::size_t> columns_;
  std::vector<double> factor_;  // lower triangle, row by row
};

}  // namespace

CrossProducts::CrossProducts(std::size_t columns)
    : sums_(columns), products_(columns * (columns + 1) / 2) {}

void CrossProducts::add(std::span<const float> row) {
  check_same_size("CrossProducts", "row", sums_.size(), row.size());
  ++rows_;
  double* next = products_.data();
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double x = double(row[i]);
    sums_[i] += x;
    for (std::size_t j = 0; j <= i; ++j) next[j] += x * double(row[j]);
    next += i + 1;
  }
}

void CrossProducts::add(const CrossProducts& other) {
  check_same_size("CrossProducts", "columns", sums_.size(), other.sums_.size());
  rows_ += other.rows_;
  const auto plus = [](std::vector<double>& to, const std::vector<double>& more) {
    std::transform(to.begin(), to.end(), more.begin(), to.begin(), std::plus<>());
  };
  plus(sums_, other.sums_);
  plus(products_, other.products_);
}

CrossProducts CrossProducts::first(std::size_t columns) const {
  CrossProducts out(columns);
  out.rows_ = rows_;
  std::copy_n(sums_.begin(), columns, out.sums_.begin());
  std::copy_n(products_.begin(), out.products_.size(), out.products_.begin());
  return out;
}

double CrossProducts::around_means(std::size_t i, std::size_t j) const {
  const double product = products_[place(std::max(i, j), std::min(i, j))];
  return product - sums_[i] * sums_[j] / rows_;
}

bool CrossProducts::varies(std::size_t i) const {
  constexpr double kRounding = 1e-12;
  return around_means(i, i) > kRounding * products_[place(i, i)];
}

VarianceInflation variance_inflation(const CrossProducts& products) {
  constexpr double kInvolved = 1e-3;  // weight of a column in a dependence
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  VarianceInflation out;
  out.factors.assign(products.columns(), std::numeric_limits<double>::quiet_NaN());
  Basis basis(products);
  for (std::size_t j = 0; j < products.columns(); ++j) {
    if (!products.varies(j) || basis.take(j)) continue;
    ExactDependence found{.column = j};
    const std::vector<double> weights = basis.weights(j);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      if (std::fabs(weights[k]) > kInvolved) found.others.push_back(basis.columns()[k]);
    }
    out.exact.push_back(std::move(found));
  }
  const std::vector<double> diagonal = basis.inverse_diagonal();
  for (std::size_t k = 0; k < diagonal.size(); ++k) out.factors[basis.columns()[k]] = diagonal[k];
  for (const ExactDependence& exact : out.exact) {
    out.factors[exact.column] = kInfinite;
    for (const std::size_t other : exact.others) out.factors[other] = kInfinite;
  }
  return out;
}

}  // namespace fedep
