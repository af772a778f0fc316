#include <charconv>
#include <cstring>
#include <optional>

#include "fedep/sim/ranks/mpi_ranks.h"

namespace fedep {
namespace {

std::optional<std::size_t> number_in(const char* (*get)(const char*), const char* name) {
  const char* const text = get(name);
  if (text == nullptr) return std::nullopt;
  std::size_t number = 0;
  const char* const end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, number);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

struct LaunchVariables {
  const char* launcher;
  const char* ranks;
  const char* rank;
};

// Open MPI's mpirun; those of MPICH and Intel; srun, which sets these for what it starts alone, not
// for a batch script.
constexpr LaunchVariables kLaunchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"mpiexec", "PMI_SIZE", "PMI_RANK"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
};

}  // namespace

Launch launch_of(const char* (*get)(const char* name)) {
  for (const LaunchVariables& names : kLaunchers) {
    const auto ranks = number_in(get, names.ranks);
    const auto rank = number_in(get, names.rank);
    if (ranks && rank) return {.launcher = names.launcher, .ranks = *ranks, .rank = *rank};
  }
  return {};
}

// Open MPI's mpirun; Intel's; those of MPICH; srun, which sets its own for batch scripts too.
std::size_t local_rank_of(const char* (*get)(const char* name)) {
  for (const char* const name :
       {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"}) {
    if (const auto rank = number_in(get, name)) return *rank;
  }
  return 0;
}

}  // namespace fedep
