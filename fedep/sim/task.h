// What a recipe's data, model and inference make together: clients to ask, a way to infer on one,
// a way to score a state. `fedep run` plays any of these.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/message/layout.h"
#include "fedep/metric/calibration.h"
#include "fedep/metric/metrics.h"
#include "fedep/round/host_rows.h"
#include "fedep/round/population.h"
#include "fedep/round/server_state.h"

namespace fedep {

class Ranks;  // sim/ranks/ranks.h

class Task {
 public:
  virtual ~Task() = default;

  virtual const Population& population() const = 0;
  virtual const Layout& layout() const = 0;
  virtual HostVector<float> initial_weights() const = 0;
  // Of coordinates whose prior is not server.prior.
  virtual std::vector<CoordinatePrior> priors() const { return {}; }
  // The family of the tilted distributions that this inference method returns.
  virtual Family family_of(std::string_view inference) const = 0;
  // A worker's own; several may be in use at once.
  virtual std::unique_ptr<LocalInference> make_inference() const = 0;
  // `last`: no round will follow, so the costly scores are due too.
  virtual Metrics evaluate(const ServerState& state, bool last) = 0;
  // The same scores, asked for by all ranks alike and shared out among them.
  virtual Metrics evaluate_over(Ranks&, const ServerState& state, bool last) {
    return evaluate(state, last);
  }
  // How rows of a table that come later are prepared (data/table/table_features.h), as JSON; empty for other
  // data.
  virtual std::string features() const { return {}; }
  // The clients' examples, for places that bring their own inference; null where there are none.
  virtual const Dataset* data() const { return nullptr; }
  // Of the latest scores.
  virtual Reliability reliability() const { return {}; }
  // That it fitted; none: those of a Temperatures{}.
  virtual Temperatures temperatures() const { return {}; }
};

// Reads and checks everything a run would read. Throws InputError for names that do not exist, and in
// a program that has not called prepare_process() (sim/process.h).
std::unique_ptr<Task> make_task(const Recipe& recipe, const std::filesystem::path& data_folder);

}  // namespace fedep
