// Ranks that a launcher started (mpirun, srun), with MPI between them.
//
//   const std::unique_ptr<Ranks> ranks = start_mpi_ranks();   // null: nobody started us as one of several
//
// Only the thread that started them may use them.
#pragma once

#include <memory>
#include <string>

#include "fedep/sim/ranks/ranks.h"

namespace fedep {

// Empty if this build has MPI; else one line that says what is missing.
std::string mpi_ranks_problem();

// As the launcher's environment says; nothing where there was no launcher.
struct Launch {
  std::string launcher;  // "mpirun", "srun"
  std::size_t ranks = 1;
  std::size_t rank = 0;
};
// `get` reads a variable of the environment; null where it is not set.
Launch launch_of(const char* (*get)(const char* name));

// This process's number among those that the launcher started on one machine; 0 where it does not say.
std::size_t local_rank_of(const char* (*get)(const char* name));

// Joins the ranks that the launcher started; null where it started one or there was none: a single one
// may have nobody who speaks MPI (`srun --pty bash`). Where several were started, but this build has no
// MPI or they do not find one another, the first throws InputError and the others leave.
std::unique_ptr<Ranks> start_mpi_ranks();

// Ends all ranks at once, this one included.
[[noreturn]] void end_mpi_ranks(int exit_code);

}  // namespace fedep
