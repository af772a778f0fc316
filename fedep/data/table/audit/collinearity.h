// How much columns that go together widen each other's intervals: the variance inflation factor of a
// column is 1 / (1 - R²), with R² of its regression on all other columns. It follows from sums and
// cross-products, which clients can add up.
//
//   CrossProducts all(3);
//   for (const auto row : rows) all.add(row);
//   variance_inflation(all).factors;          // 1: nobody else says what this column says
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fedep {

class CrossProducts {
 public:
  explicit CrossProducts(std::size_t columns);

  void add(std::span<const float> row);
  // As if the rows of the other came too.
  void add(const CrossProducts& other);

  // Of the first columns alone.
  CrossProducts first(std::size_t columns) const;

  std::size_t columns() const { return sums_.size(); }
  double rows() const { return rows_; }
  // Σ (x_i - mean_i) (x_j - mean_j).
  double around_means(std::size_t i, std::size_t j) const;
  // Whether a column has more than rounding around its mean.
  bool varies(std::size_t i) const;

 private:
  double rows_ = 0;
  std::vector<double> sums_;
  std::vector<double> products_;  // lower triangle, row by row
};

// A column that others, weighted, add up to.
struct ExactDependence {
  std::size_t column = 0;
  std::vector<std::size_t> others = {};  // ascending, all before it

  bool operator==(const ExactDependence&) const = default;
};

struct VarianceInflation {
  std::vector<double> factors =
      {};  // infinite for columns of an exact dependence; NaN: does not vary
  std::vector<ExactDependence> exact = {};
};

VarianceInflation variance_inflation(const CrossProducts& products);

}  // namespace fedep
