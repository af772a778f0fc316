// libFuzzer's entry points, which our own driver has too. The target's name is in FEDEP_FUZZ_TARGET.
#include <cstdlib>
#include <string_view>

#include "test/fuzz/fuzz_target.h"

namespace {

const fedep::FuzzTarget* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("FEDEP_FUZZ_TARGET");
  for (const fedep::FuzzTarget& target : fedep::fuzz_targets()) {
    if (name != nullptr && target.name == name) chosen = &target;
  }
  if (chosen == nullptr) fedep::report_finding("FEDEP_FUZZ_TARGET must name a target");
  fedep::fuzz_folder();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({data, size});
  return 0;
}
