#include "app/run/last_curvature.h"

#include <filesystem>
#include <optional>

#include "app/output.h"
#include "fedep/sim/curvature.h"
#include "fedep/store/curvature_file.h"

namespace fedep {
namespace {

// Whether the file there is of this state. One of an earlier end of the run, before it got more rounds, is
// not.
bool is_kept(const std::filesystem::path& path, const ServerState& state,
             const std::filesystem::path& checkpoint) {
  if (!std::filesystem::exists(path)) return false;
  const KeptCurvature kept = read_curvature(path);
  if (kept.curvature.round < state.round) return false;
  check_own_curvature(path, kept, checkpoint);
  return true;
}

}  // namespace

bool finish_curvature(const Recipe& recipe, const Task& task, const RunDirectory& directory,
                      const ServerState& state, const std::function<bool()>& stop) {
  if (!has_curvature(recipe)) return true;
  const std::filesystem::path path = curvature_path(directory.path());
  const std::filesystem::path checkpoint = directory.checkpoint(state.round);
  if (is_kept(path, state, checkpoint)) return true;
  const std::optional<Curvature> curvature = play_curvature(recipe, task, state, stop);
  if (!curvature) return false;
  write_curvature(path, *curvature, seal_of(checkpoint));
  say("curvature of {} weights, the sum over {} clients, is in {}\n", curvature->mean.size(),
      task.population().size(), path.filename().string());
  return true;
}

}  // namespace fedep
