// Clients of the paper's tasks, with made-up examples, whose steps are timed.
//
//   const std::vector<Case> cases = all_cases();
//   Client client(cases[0]);
//   const Client::Visited visited = client.visit();  // chains from the same start, every time
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/eager_step.h"
#include "bench/stopwatch.h"
#include "fedep/data/dataset.h"
#include "fedep/model/model.h"
#include "fedep/sim/chain/chain.h"
#include "fedep/sim/test_round.h"

namespace fedep {

// One client of one of the paper's tasks.
struct Case {
  std::string name;
  std::string peer;  // model of eager_step.h
  std::size_t features, outputs;
  std::size_t examples, batch;
  int epochs;  // of a visit
  int repeats;
  double lr;
  double goal;
  std::unique_ptr<Model> (*model)();
  std::size_t words = 0;  // of a sparse example; 0: features are dense
  bool same_loss = true;  // no dropout and the same initial weights: losses can be compared
};

std::vector<Case> all_cases();

// A visit of stochastic EP with scaled identity to the only client of a data set.
class Client {
 public:
  explicit Client(const Case& task);  // which must outlive it

  std::size_t steps() const { return std::size_t(task_.epochs) * (task_.examples / task_.batch); }
  const Batch& rows() const { return rows_; }
  const Dataset& data() const { return *data_; }
  Model& model() { return *model_; }
  HostVector<float> start_point() const { return round_.task().mean; }
  EagerSettings peer_settings() const;

  // Of all steps of a visit, as indices of rows.
  std::vector<std::vector<std::int64_t>> batches() const;

  struct Visited {
    Seconds steps;  // alone
    Seconds whole;  // with the chain's making, moments of every epoch and their mean
    double loss_sum;
  };
  Visited visit();

 private:
  void run(bool moments, Visited& out);

  const Case& task_;
  std::unique_ptr<Model> model_;
  Batch rows_;
  TestRound round_;
  std::unique_ptr<Dataset> data_;
  ClientInfo client_;
  ChainSettings settings_;
};

}  // namespace fedep
