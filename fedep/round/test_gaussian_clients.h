// Clients whose likelihoods are Gaussians of the message's own family: cavity times likelihood is
// the tilted distribution, exactly. With them every law of the round has a closed form to be tested
// against.
//
//   GaussianClients clients;
//   clients.add("a", 10, likelihood);
//   const Population population = clients.population();
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fedep/random/stream.h"
#include "fedep/round/host_rows.h"
#include "fedep/round/population.h"

namespace fedep {

class GaussianClients final : public LocalInference {
 public:
  void add(const std::string& id, std::size_t examples, Message likelihood) {
    ids_.emplace_back(id, examples);
    likelihoods_.insert_or_assign(client_key(id), std::move(likelihood));
  }

  Population population() const { return make_population(ids_); }
  const Message& likelihood(std::uint64_t key) const { return likelihoods_.at(key); }

  // What exact inference would find: the prior times every likelihood.
  Message posterior(Message prior) const {
    for (const auto& [key, likelihood] : likelihoods_) prior = product(prior, likelihood);
    return prior;
  }

  ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
    return infer(visit.client.key, visit.round.phase, visit.cavity, visit.round.mean, numbers);
  }
  ClientRun infer(std::uint64_t key, const Phase& phase, const Message& cavity,
                  const HostVector<float>& start, VisitNumbers& numbers) const {
    const Message& likelihood = likelihoods_.at(key);
    numbers.steps = 1;
    numbers.loss_sum = dot(likelihood.eta(), start);
    ClientRun run;
    if (phase.algorithm->needs == Needs::tilted) {
      run.tilted = product(cavity, likelihood);
    } else {
      // FedProx's and FedDyn's cavities pull; a GPU's flat ones have no elements.
      run.last = mean(cavity.size() > 0 ? product(cavity, likelihood) : likelihood);
    }
    return run;
  }

 private:
  std::vector<std::pair<std::string, std::size_t>> ids_;
  std::map<std::uint64_t, Message> likelihoods_;
};

}  // namespace fedep
