// Where the clients of a round run: one after another, on threads, as a GPU cohort, behind a
// network. The round loop knows only this. sim/serial is the specification; every other executor is
// tested against it.
#pragma once

#include <functional>
#include <span>

#include "fedep/round/task.h"

namespace fedep {

class Executor {
 public:
  virtual ~Executor() = default;

  // Plays the clients' part of a round. `deliver` is called at most once per client, in any order,
  // never from two threads at a time. A client that is not delivered has dropped out. A report that
  // cannot be added (of another shape, beyond the grid's limit) makes deliver throw InputError and
  // changes nothing: an executor whose clients may lie catches that and goes on without the client.
  virtual void play(const RoundTask& round, std::span<const ClientTask> clients,
                    const std::function<void(Report)>& deliver) = 0;

  // The server has taken these clients' deltas (indices in the population) and moved by `scale` of
  // their steps: less than 1 after a back-off, more where weights were shared out again among those
  // that answered.
  virtual void settle(const RoundTask& round, std::span<const std::size_t> taken, double scale) = 0;
};

}  // namespace fedep
