// Ctrl-C: the first asks the run to stop at the end of its round, the second ends the process at
// once. Either way the run resumes from its latest checkpoint.
#pragma once

namespace fedep {

void catch_interrupts();
bool interrupt_requested();

}  // namespace fedep
