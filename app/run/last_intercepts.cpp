#include "app/run/last_intercepts.h"

#include <filesystem>
#include <memory>

#include "fedep/model/registry.h"
#include "fedep/sim/rows/own_intercept_file.h"
#include "fedep/store/curvature_file.h"

namespace fedep {

void keep_intercepts(const Recipe& recipe, const Task& task, const RunDirectory& directory,
                     const ServerState& state) {
  if (!recipe.model.site_intercept || task.data() == nullptr) return;
  const std::filesystem::path checkpoint = directory.checkpoint(state.round);
  if (!std::filesystem::exists(checkpoint)) return;
  const std::uint64_t seal = seal_of(checkpoint);
  const Dataset& data = *task.data();
  const OwnIntercepts kept =
      read_own_intercepts(directory.path(), seal, data.info().feature_count());
  if (kept.all().size() == data.clients().size()) return;
  const std::unique_ptr<Model> model = make_model(recipe.model, data.info());
  write_own_intercepts(directory.path(), own_intercepts(data, *model, point_estimate(state).span()),
                       state.round, seal);
}

}  // namespace fedep
