// What a run that several ranks play has beside an ordinary one. Rank 0 has the directory, log,
// checkpoints and all that is said; the others play along.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/run/run_options.h"
#include "fedep/config/recipe.h"
#include "fedep/round/phase.h"
#include "fedep/round/run.h"
#include "fedep/sim/task.h"
#include "fedep/store/run_directory.h"

namespace fedep {

// Before there is a directory: throws InputError where ranks would not play the same run, or not to
// the same bits. Gives lines for the log: what differs with --mixed-cpus, and what is slow.
std::vector<std::string> compare_run_of_ranks(const Recipe& recipe,
                                              const std::vector<Phase>& phases, Task& task,
                                              std::uint64_t data, const RunRecipeOptions& options);

// Waits a little; false: for long enough.
using Patience = std::function<bool()>;
Patience patience_for(std::chrono::milliseconds most);

// Once rank 0 has the directory: throws InputError where another one does not see it. A machine may
// remember for seconds what was there before (NFS), so ranks look until their patience ends.
void check_shared_directory(Ranks& ranks, const std::filesystem::path& directory,
                            const Patience& wait = patience_for(std::chrono::seconds(5)));

// Removes what ranks that were killed while they tried a directory left there.
void clear_shared_directory(const std::filesystem::path& directory);

// Rank 0's keeper, in step with the others'.
std::unique_ptr<RunKeeper> make_rank_keeper(const RunParts& parts, const RunDirectory& directory,
                                            Ranks& ranks, RunKeeper* first);

// Plays along on any rank but 0, until rank 0 has finished.
RunResult follow_run(const Recipe& recipe, const std::vector<Phase>& phases, Task& task,
                     const RunRecipeOptions& options);

// How the run ended on rank 0, which may be stopped in what it does alone (curvature), once all are here.
RunEnd end_together(Ranks& ranks, RunEnd end);

}  // namespace fedep
