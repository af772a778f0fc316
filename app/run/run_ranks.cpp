#include "app/run/run_ranks.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include <fmt/ranges.h>

#include "app/run/interrupt.h"
#include "app/run/run_home.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/read_file.h"
#include "fedep/sim/ranks/rank_keeper.h"
#include "fedep/sim/ranks/rank_sites.h"
#include "fedep/sim/ranks/ranks.h"
#include "fedep/sim/ranks/same_ranks.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

constexpr const char* kToken = ".ranks";
constexpr std::chrono::milliseconds kPause{50};

// Cores that this process may use; 0: not known.
std::size_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::size_t(CPU_COUNT(&cores)) : 0;
}

// Launchers bind a rank to one core unless they are told otherwise.
std::string bound_ranks_text(Ranks& ranks, std::size_t threads) {
  const std::vector<Bytes> all = ranks.gather(bytes_of(std::uint64_t(own_cores())));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::uint64_t cores = values_of<std::uint64_t>(all[rank]).at(0);
    if (cores == 0 || cores >= threads) continue;
    return fmt::format(
        "rank {} has {} threads, but may use {} core{}: start with `mpirun --bind-to none`, or "
        "`srun "
        "--cpus-per-task={}`",
        rank, threads, cores, cores == 1 ? "" : "s", threads);
  }
  return {};
}

// Where each rank computes, and whether ranks share: "rank 0: 0000:1B:00.0 on n1, rank 1: …".
std::vector<std::string> processor_lines(Ranks& ranks, const Processor& own) {
  const std::string mine = fmt::format("{} on {}", own.name, ranks.host());
  std::vector<std::string> names;
  for (const Bytes& bytes : ranks.gather(bytes_of(std::span<const char>(mine)))) {
    const std::vector<char> name = values_of<char>(bytes);
    names.emplace_back(name.begin(), name.end());
  }
  std::vector<std::string> told;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    told.push_back(fmt::format("rank {}: {}", rank, names[rank]));
  }
  std::vector<std::string> lines{fmt::format("GPUs of {}", fmt::join(told, ", "))};
  const std::size_t there = std::set(names.begin(), names.end()).size();
  if (there < names.size()) {
    lines.push_back(
        fmt::format("{} ranks share {} GPU{}", names.size(), there, there == 1 ? "" : "s"));
  }
  return lines;
}

bool holds(const std::filesystem::path& file, const std::string& text) {
  try {
    const auto bytes = read_file(file);
    return std::ranges::equal(bytes, std::as_bytes(std::span(text)));
  } catch (const std::exception&) {
    return false;  // not there, which is what is asked
  }
}

}  // namespace

std::vector<std::string> compare_run_of_ranks(const Recipe& recipe,
                                              const std::vector<Phase>& phases, Task& task,
                                              std::uint64_t data, const RunRecipeOptions& options) {
  std::vector<Fact> facts{{"recipe", to_toml(recipe)},
                          {"data", fmt::format("{:016x}", data)},
                          {"--threads", fmt::format("{}", options.threads)},
                          {"--device", options.device},
                          {"--precision", options.precision},
                          {"--scratch", options.scratch.empty() ? "not given" : "given"},
                          {"--resume", options.resume ? "given" : "not given"}};
  // Who plays another recipe or has other data need not be asked for a visit.
  compare_ranks(*options.ranks, facts, false);
  std::vector<Fact> arithmetic = arithmetic_of(recipe, phases, task);
  const auto processor = place_of(options).processor;
  if (processor != nullptr) arithmetic.push_back({"GPU", processor().kind, true});
  std::vector<std::string> lines = compare_ranks(*options.ranks, arithmetic, options.mixed_cpus);
  if (processor != nullptr) {
    for (std::string& line : processor_lines(*options.ranks, processor())) {
      lines.push_back(std::move(line));
    }
  }
  if (std::string bound = bound_ranks_text(*options.ranks, options.threads); !bound.empty()) {
    lines.push_back(std::move(bound));
  }
  return lines;
}

Patience patience_for(std::chrono::milliseconds most) {
  return [left = most]() mutable {
    if (left < kPause) return false;
    left -= kPause;
    std::this_thread::sleep_for(kPause);
    return true;
  };
}

void check_shared_directory(Ranks& ranks, const std::filesystem::path& directory,
                            const Patience& wait) {
  const std::filesystem::path file = directory / kToken;
  std::string token = fmt::format("{:08x}{:08x}", std::random_device{}(), std::random_device{}());
  if (ranks.is_first()) replace_file(file, std::as_bytes(std::span(token)));
  const std::vector<char> told =
      values_of<char>(ranks.broadcast(bytes_of(std::span<const char>(token))));
  token.assign(told.begin(), told.end());
  bool there = holds(file, token);
  while (!there && wait()) there = holds(file, token);
  const std::string answer = there ? "" : ranks.host();
  const std::vector<Bytes> answers = ranks.gather(bytes_of(std::span<const char>(answer)));
  if (ranks.is_first()) clear_shared_directory(directory);
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    if (answers[rank].empty()) continue;
    const std::vector<char> host = values_of<char>(answers[rank]);
    throw InputError(
        fmt::format("{}: run directory must be one that all ranks see, but rank {} ({}) does not "
                    "see what rank 0 "
                    "writes there: put --out on a file system that all machines share",
                    directory.string(), rank, std::string(host.begin(), host.end())));
  }
}

void clear_shared_directory(const std::filesystem::path& directory) {
  // By replace_file's name too, and without a word to the disk where there is neither.
  for (const std::string& name : {std::string(kToken), fmt::format(".{}.tmp", kToken)}) {
    std::error_code ignored;
    if (std::filesystem::exists(directory / name, ignored)) {
      std::filesystem::remove(directory / name, ignored);
    }
  }
}

std::unique_ptr<RunKeeper> make_rank_keeper(const RunParts& parts, const RunDirectory& directory,
                                            Ranks& ranks, RunKeeper* first) {
  return std::make_unique<RankKeeper>(RankKept{ranks, dynamic_cast<RankSites&>(parts.place.sites()),
                                               parts.recipe, parts.phases, parts.layout, directory},
                                      first);
}

RunResult follow_run(const Recipe& recipe, const std::vector<Phase>& phases, Task& task,
                     const RunRecipeOptions& options) {
  Ranks& ranks = *options.ranks;
  check_shared_directory(ranks, options.out);
  const PlaceRow& where = place_of(options);
  const RunDirectory directory = RunDirectory::of_another(options.out);
  const std::unique_ptr<SiteStore> home =
      make_home(recipe, directory, where, size_of(task.layout()), options.scratch);
  const std::unique_ptr<Place> place = where.make(recipe, task, *home, place_options(options));
  const RunParts parts{recipe, phases, task.population(), task.layout(), *place, task.priors()};
  const std::unique_ptr<RunKeeper> keeper = make_rank_keeper(parts, directory, ranks, nullptr);
  RunResult result = play_run(parts, task.initial_weights(),
                              {.stop_requested = interrupt_requested}, keeper.get());
  result.end = end_together(ranks, result.end);
  return result;
}

RunEnd end_together(Ranks& ranks, RunEnd end) {
  ranks.wait_for_all();
  return values_of<RunEnd>(ranks.broadcast(bytes_of(end))).at(0);
}

}  // namespace fedep
