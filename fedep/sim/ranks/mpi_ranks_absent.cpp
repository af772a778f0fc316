// Stands in for mpi_ranks.cpp where the build has no MPI.
#include <cstdlib>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/sim/ranks/mpi_ranks.h"

namespace fedep {

std::string mpi_ranks_problem() {
  return "this build of fedep has no MPI: build it with `cmake --preset mpi` (docs/cluster.md)";
}

std::unique_ptr<Ranks> start_mpi_ranks() {
  const Launch launch =
      launch_of([](const char* name) -> const char* { return std::getenv(name); });
  if (launch.ranks <= 1) return nullptr;
  if (launch.rank > 0) std::_Exit(0);  // the first speaks
  throw InputError(fmt::format("{} started {} ranks, but {}", launch.launcher, launch.ranks,
                               mpi_ranks_problem()));
}

void end_mpi_ranks(int exit_code) { std::_Exit(exit_code); }

}  // namespace fedep
