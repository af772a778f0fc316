#include "app/ranks.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include <fmt/ranges.h>

#include "app/output.h"
#include "app/printable.h"
#include "fedep/message/error.h"
#include "fedep/sim/ranks/mpi_ranks.h"

namespace fedep {
namespace {

// Where rank 0 fails as well, it ends all others before this is over.
constexpr std::chrono::seconds kFirstSpeaks{1};

// Commands whose work ranks share.
constexpr std::array<std::string_view, 3> kShared{"run", "reproduce", "sweep"};

}  // namespace

std::unique_ptr<Ranks> join_ranks(std::string_view command) {
  std::unique_ptr<Ranks> ranks = start_mpi_ranks();
  if (ranks == nullptr) return nullptr;
  if (!ranks->is_first()) keep_quiet();
  if (std::ranges::count(kShared, command) == 0) {
    const std::size_t size = ranks->size();
    const bool speaks = ranks->is_first();
    ranks.reset();
    if (!speaks) std::_Exit(0);
    if (command.empty() || command.starts_with('-')) return nullptr;  // --help, --version
    throw InputError(fmt::format(
        "{} ranks were started, but only fedep {} are shared out among them, not `fedep {}`", size,
        fmt::join(kShared, ", "), command));
  }
  return ranks;
}

void end_ranks(const Ranks& ranks, const Failure& failure) {
  if (!ranks.is_first()) {
    std::signal(SIGTERM, SIG_DFL);
    std::this_thread::sleep_for(kFirstSpeaks);
  }
  say_anyway("fedep: rank {} on {}: {}\n", ranks.rank(), ranks.host(), printable(failure.line));
  end_mpi_ranks(failure.exit_code);
}

}  // namespace fedep
