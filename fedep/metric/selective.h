// Selective prediction: who may decline the examples that it is least sure of is wrong less often on the rest.
// Examples are sorted by how sure predictions are; the risk at coverage c is the fraction of errors among the
// surest c of them, and the area under that curve (AURC, Geifman+19) is one number for the order.
//
//   SelectiveRisk selective;
//   for (const Batch& batch : batches) selective.add(sureness, wrong);
//   selective.risk(0.8);   // errors among the surest four fifths
//   selective.area();      // mean risk over all coverages; least_area() is that of a perfect order
//
// Examples of equal sureness are taken in a random order, on average: which of them comes first is nobody's
// merit. Without examples, or with a NaN among them, nothing exists: NaN.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace fedep {

// Remembers every example.
class SelectiveRisk {
 public:
  // Sureness on any monotone scale: a confidence, minus an entropy.
  void add(double sureness, bool wrong);

  std::size_t examples() const { return scored_.size(); }
  // Among the surest coverage · n examples, at least one of them. Throws InputError unless 0 < coverage <= 1.
  double risk(double coverage) const;
  // Of 1, 2, …, n examples, on average.
  double area() const;
  // Were all errors the least sure.
  double least_area() const;

 private:
  // Expected errors among the surest 1, 2, …, n; empty where nothing exists.
  std::vector<double> errors() const;

  std::vector<std::pair<double, bool>> scored_;  // sureness, wrong
};

}  // namespace fedep
