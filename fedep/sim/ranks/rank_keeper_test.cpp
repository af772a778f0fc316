// Runs of several ranks in one directory: gone on with by another number of ranks, and never without a file
// that the latest checkpoint names.

#include "fedep/sim/ranks/rank_keeper.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/read_file.h"
#include "fedep/message/test_folder.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/ranks/test_thread_ranks.h"
#include "fedep/sim/ranks/test_uneven_run.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/run_keeper.h"
#include "fedep/store/site_files.h"

namespace fedep {
namespace {

Recipe kept_recipe(SiteMemory sites) {
  Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
  recipe.checkpoint.sites = sites;
  recipe.checkpoint.every = 3;  // so that factors change between checkpoints
  return recipe;
}

std::unique_ptr<SiteStore> make_own(const Recipe& recipe, const RunDirectory& directory) {
  if (recipe.checkpoint.sites == SiteMemory::disk) return make_disk_store(directory.sites());
  return make_memory_store(std::make_unique<SiteFiles>(directory.sites()));
}

// So many rounds, from the beginning or from the latest checkpoint.
void play_kept(const Recipe& recipe, const std::filesystem::path& folder, std::size_t size,
               int rounds, bool resume) {
  play_ranks(size, [&](Ranks& ranks) {
    const auto task = make_task(recipe, "");
    const auto phases =
        plan_phases(recipe, [&](std::string_view name) { return task->family_of(name); });
    const Layout layout = task->layout();
    std::unique_ptr<RunDirectory> directory;
    if (ranks.is_first()) {
      directory = std::make_unique<RunDirectory>(resume ? RunDirectory::reopen(folder, recipe)
                                                        : RunDirectory::create(folder, recipe));
    }
    ranks.wait_for_all();
    if (!directory) directory = std::make_unique<RunDirectory>(RunDirectory::of_another(folder));
    const auto own = make_own(recipe, *directory);
    const auto place = find_place("cpu", 1, true).make(recipe, *task, *own, {.ranks = &ranks});
    std::unique_ptr<DiskKeeper> first;
    if (ranks.is_first()) {
      first = std::make_unique<DiskKeeper>(
          KeptRun{recipe, phases, layout, place->sites(), *directory},
          RunHeader{.seed = recipe.seed, .clients = 9, .data = "d"}, resume);
    }
    RankKeeper keeper(
        {ranks, dynamic_cast<RankSites&>(place->sites()), recipe, phases, layout, *directory},
        first.get());
    int asked = 0;
    const auto watch = [&](const RoundReport& report) {
      if (!ranks.is_first()) return;
      const std::vector<std::int64_t> saved = directory->checkpoints();
      if (saved.empty()) return;
      const Checkpoint latest = read_checkpoint(directory->checkpoint(saved.back()), layout);
      for (const auto& [client, round] : latest.sites) {
        EXPECT_TRUE(std::filesystem::exists(site_file(directory->sites(), client, round)))
            << "after round " << report.round + 1;
      }
    };
    play_run({recipe, phases, task->population(), layout, *place}, task->initial_weights(),
             {.watch = watch, .stop_requested = [&] { return ++asked == rounds; }}, &keeper);
  });
}

// Everything in it by name, but for the log, which has times.
std::map<std::string, std::vector<std::byte>> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::vector<std::byte>> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().filename() == "log.jsonl") continue;
    files[std::filesystem::relative(entry.path(), folder).string()] = read_file(entry.path());
  }
  return files;
}

TEST(RankKeeper, GoesOnWithAnotherNumberOfRanksToTheSameFiles) {
  for (const SiteMemory sites : {SiteMemory::memory, SiteMemory::disk}) {
    const TemporaryFolder folder;
    const Recipe recipe = kept_recipe(sites);
    play_kept(recipe, folder.path() / "whole", 1, 8, false);
    const auto expected = contents(folder.path() / "whole");
    ASSERT_GT(expected.size(), 5u);
    for (const int first : {2, 4, 6}) {
      SCOPED_TRACE(first);
      const std::filesystem::path run = folder.path() / ("run-" + std::to_string(first));
      play_kept(recipe, run, 3, first, false);
      play_kept(recipe, run, 2, 1, true);
      play_kept(recipe, run, 4, 8, true);
      EXPECT_EQ(contents(run), expected);
    }
  }
}

}  // namespace
}  // namespace fedep
