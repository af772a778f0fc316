// Where the clients of a round run: one after another, on threads, as a GPU cohort, behind a
// network. The round loop knows only this. sim/place/serial is the specification; every other executor is
// tested against it.
#pragma once

#include <span>
#include <vector>

#include "fedep/message/gaussian.h"
#include "fedep/round/task.h"

namespace fedep {

// What comes back from a round's clients: one exact sum of all deltas, and the reports, in any order,
// without theirs. A client without a report has dropped out. Where deltas come one by one, a
// Collector (collector.h) makes this of them; a GPU or a cluster has the sum already.
template <Storage V>
struct AnswersOf {
  Gaussian<V> total;
  std::vector<Report> reports;
};
using Answers = AnswersOf<HostVector<float>>;

template <Storage V>
class ExecutorOf {
 public:
  virtual ~ExecutorOf() = default;

  // Plays the clients' part of a round. The task's references stay valid until it is settled.
  virtual AnswersOf<V> play(const RoundTaskOf<V>& round, std::span<const ClientTask> clients) = 0;

  // The server has taken these clients' deltas (indices in the population) and moved by this part of
  // their steps.
  virtual void settle(const RoundTaskOf<V>& round, std::span<const std::size_t> taken,
                      const StepPart& part) = 0;
};
using Executor = ExecutorOf<HostVector<float>>;

}  // namespace fedep
