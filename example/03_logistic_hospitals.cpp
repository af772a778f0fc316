// 03: learning from tables that stay where they are. Three hospitals, each with a few hundred
// patients and habits of its own, find one logistic regression; none sends a row. This is the loop
// that `fedep run` plays, written out.
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "fedep/config/read_recipe.h"
#include "fedep/data/table/tabular.h"
#include "fedep/inference/method.h"
#include "fedep/model/registry.h"
#include "fedep/random/stream.h"
#include "fedep/round/play_round.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/process.h"

using namespace fedep;

// log-odds of a bad outcome = 1.5 (age - 60)/15 - 0.8 (oxygen - 92)/4
std::string made_up_records() {
  std::string text = "hospital,outcome,age,oxygen\n";
  Stream stream({.seed = 7});
  for (const auto& [hospital, typical_age] :
       {std::pair("north", 45), {"south", 60}, {"west", 75}}) {
    for (int i = 0; i < 400; ++i) {
      const double age = typical_age + 10 * stream.normal(), oxygen = 92 + 4 * stream.normal();
      const double odds = std::exp(1.5 * (age - 60) / 15 - 0.8 * (oxygen - 92) / 4);
      text += fmt::format("{},{},{:.1f},{:.1f}\n", hospital,
                          stream.uniform() < odds / (1 + odds) ? "bad" : "good", age, oxygen);
    }
  }
  return text;
}

int main() {
  prepare_process();  // BLAS and memory, as the simulator wants them
  const Recipe recipe = parse_recipe(R"(
[data]
name = "hospitals"
[client]
epochs = 10
optimizer = { name = "sgd", lr = 0.05 }
[server]
clients_per_round = 3
damping = 0.5
prior = { mean = 0.0, precision = 0.01 }
[[phase]]
algorithm = "fed_ep"
rounds = 20
factors = "flat"
[phase.inference]
name = "laplace"
)");
  const TableSpec columns{.client_column = "hospital",
                          .label_column = "outcome",
                          .positive = {"bad"},
                          .numbers = {"age", "oxygen"}};
  const auto data =
      tabular_dataset(parse_delimited(made_up_records(), kCsv, "records"), columns, recipe.data);
  const Population population = make_population(data->clients());

  auto model = make_model(recipe.model, data->info());
  HostVector<float> initial(model->size());
  const auto inference = make_local_learning(*data, population, recipe, std::move(model));
  const auto factors = make_memory_store();
  const auto executor = make_serial(population, *inference, factors.get());
  const Phase phase =
      plan_phases(recipe, [](std::string_view name) { return find_method(name).family; })[0];

  ServerState state =
      begin_phase(initial_server_state(recipe.server, initial), phase, 0, population);
  while (state.round < phase.rounds) {
    play_round(state, phase, recipe.seed, population, *executor);
  }

  const HostVector<float> weights = mean(state.global), variances = variance(state.global);
  for (std::size_t i = 0; i < data->info().feature_names.size(); ++i) {
    fmt::print("{}: {:+.2f} ± {:.2f} log-odds per standard deviation\n",
               data->info().feature_names[i], weights[i], std::sqrt(variances[i]));
  }
  return weights[0] > 1.2f && weights[0] < 2.0f && weights[1] < -0.6f && weights[1] > -1.0f ? 0 : 1;
}
