// A round's answers where deltas come one by one, in any order.
//
//   Collector answers(round);
//   for (…) answers.add(play_visit(…));
//   return std::move(answers).all();
#pragma once

#include <utility>

#include "fedep/round/aggregate.h"
#include "fedep/round/executor.h"

namespace fedep {

class Collector {
 public:
  explicit Collector(const RoundTask& round)
      : sum_(round.grid, round.global.size(), round.global.family()) {}

  // At most once per client. A report that cannot be added (of another shape, beyond the grid's
  // limit) makes this throw InputError and changes nothing: an executor whose clients may lie
  // catches that and goes on without the client.
  void add(Report report) {
    if (report.outcome == Outcome::delta) sum_.add(report.delta);
    report.delta = {};
    reports_.push_back(std::move(report));
  }

  Answers all() && { return {.total = sum_.total(), .reports = std::move(reports_)}; }

 private:
  Aggregate sum_;
  std::vector<Report> reports_;
};

}  // namespace fedep
