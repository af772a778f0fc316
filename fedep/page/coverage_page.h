// A page about what a recipe's intervals are worth on its own design: `fedep coverage`.
//
//   file << coverage_page(report);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fedep/metric/interval_coverage.h"

namespace fedep {

struct CoverageReport {
  std::string recipe;  // its file
  std::string data;
  std::string algorithm;  // of the last phase
  std::uint64_t seed = 0;
  std::size_t clients = 0;
  std::size_t rows = 0;
  double prior_mean = 0;
  double prior_precision = 1;
  double truth_precision = 1;
  std::vector<std::string> names = {};  // of coefficients
  IntervalCoverage found = {};
  std::size_t failed = 0;  // replicates without a posterior, which `found` does not count
  std::string first_failure = {};

  // What speaks against the intervals, failures included.
  std::vector<std::string> doubts() const;
  // "12 of 400 replicates …"; empty where none failed.
  std::string failures() const;
};

// An HTML document that asks nobody for anything: its style and pictures are in it.
std::string coverage_page(const CoverageReport& report);

}  // namespace fedep
