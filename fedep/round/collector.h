// A round's answers where deltas come one by one, in any order.
//
//   Collector answers(round);
//   for (…) answers.add(play_visit(…));
//   return std::move(answers).all();
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

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

  // Where others add to the sum before it is made a message.
  struct Part {
    GridDelta units;
    std::vector<Report> reports;
  };
  Part part() && { return {.units = std::move(sum_).take_units(), .reports = std::move(reports_)}; }

 private:
  Aggregate sum_;
  std::vector<Report> reports_;
};

// An executor whose answers can be part of a larger sum.
class CollectingExecutor : public Executor {
 public:
  // `meanwhile`, where there is one, is called now and then by the thread that called this.
  virtual void play_into(Collector& answers, const RoundTask& round,
                         std::span<const ClientTask> clients,
                         const std::function<void()>& meanwhile = {}) = 0;

  Answers play(const RoundTask& round, std::span<const ClientTask> clients) final {
    Collector answers(round);
    play_into(answers, round, clients);
    return std::move(answers).all();
  }
};

}  // namespace fedep
