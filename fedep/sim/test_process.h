// Test programs run as main() does. One file of each that makes tasks or trains models includes this.
#pragma once

#include "fedep/sim/process.h"

namespace fedep {

inline const bool kProcessIsPrepared = (prepare_process(), true);

}  // namespace fedep
