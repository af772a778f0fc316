// One process plays a run at a time. The lock is on the directory itself, leaves nothing in it and
// ends with the process, however that ends.
//
//   const RunLock lock(directory);   // throws InputError while another process has it
#pragma once

#include <filesystem>

#include "fedep/store/durable_file.h"

namespace fedep {

class RunLock {
 public:
  explicit RunLock(const std::filesystem::path& directory);

 private:
  FileDescriptor directory_;
};

}  // namespace fedep
