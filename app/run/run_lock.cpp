#include "app/run/run_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {

// File systems that know no locks are taken as they are.
RunLock::RunLock(const std::filesystem::path& directory)
    : directory_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!directory_ || ::flock(directory_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
    return;
  }
  throw InputError(
      fmt::format("{}: run must not be in use, but another process plays it", directory.string()));
}

}  // namespace fedep
