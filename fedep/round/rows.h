// The operations that clients' visits are made of, on the rows of a cohort: row r is client r. A
// core has cohorts of one client (host_rows.h), a GPU one of all clients asked (sim/gpu/cuda_rows.h).
// What is done in which order, and when, is visit.h's business and the same for both.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "fedep/algorithm/client_run.h"
#include "fedep/message/reach.h"
#include "fedep/round/population.h"
#include "fedep/round/task.h"

namespace fedep {

struct AskedClient {
  ClientTask task;
  const ClientInfo* info = nullptr;
};

// Everything local inference is given.
template <Storage V>
struct VisitOf {
  const RoundTaskOf<V>& round;
  const ClientInfo& client;
  Gaussian<V> cavity;
  // The visit is of these weights alone, and so is everything in it; null: of all.
  const Reach* reach = nullptr;
};
using Visit = VisitOf<HostVector<float>>;

// What is found of a cavity.
struct CavityFacts {
  std::size_t improper = 0;  // coordinates, as optim/guard.h counts them
  bool in_order = true;      // the guard would leave it as it is
};

template <Storage V>
class Rows {
 public:
  virtual ~Rows() = default;

  // A round's turn, with row r for asked[r]. What is given must stay until the round is settled.
  virtual void begin(const RoundTaskOf<V>& round, std::span<const AskedClient> asked) = 0;

  // Each client's cavity (algorithm/cavity.h); in a stateful phase of its own factor, or of the one
  // that a client has which was never visited (task.h).
  virtual std::vector<Gaussian<V>> form_cavities() = 0;
  virtual std::vector<CavityFacts> examine(const std::vector<Gaussian<V>>& cavities) = 0;

  // Local inference of the clients visited, rows[i] that of visits[i]: what phase.algorithm->needs
  // names. Fills steps and loss_sum of numbers[i].
  virtual std::vector<ClientRunOf<V>> infer(std::vector<VisitOf<V>> visits,
                                            std::span<const std::size_t> rows,
                                            std::vector<VisitNumbers>& numbers) = 0;

  // Deltas, in the order of rows (algorithm/delta.h).
  virtual void add_quotient(Gaussian<V> tilted, std::optional<Gaussian<V>> divisor) = 0;
  virtual void add_move(V to) = 0;     // (to - round.mean, 0)
  virtual void add_points(V eta) = 0;  // (eta, 0)
  virtual void add_flat() = 0;
  // Of the delta added last: of coordinates that are silent (client_run.h), and that the client's own
  // factor says nothing of, nothing is sent, not even what rounding made of nothing. Then a factor
  // has numbers where its client has data. With a law what is sent of them is what the law says, and
  // the factor refers to q's mean for it (mean_shelf.h). Places that keep all numbers anyway may leave it.
  virtual void silence(std::span<const Range> silent, const std::optional<SilentLaw>& law) {
    (void)silent, (void)law;
  }
  virtual std::vector<double> measure() = 0;  // their joint norms (optim/clip.h)
  // Whether scale × delta fits the round's grid; if so that is what is sent.
  virtual bool round_to_grid(std::size_t row, double scale) = 0;
  // The client's factor will follow what is sent, once the round is settled.
  virtual void propose(std::size_t row) = 0;
};

}  // namespace fedep
