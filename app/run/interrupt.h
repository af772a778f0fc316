// Ctrl-C, SIGTERM and SIGUSR1 (what batch systems send before a job's time is over): the first asks the
// run to stop at the end of its round, the second ends the process at once. Either way the run resumes
// from its latest checkpoint.
#pragma once

namespace fedep {

// `one_of_several`: this process is a rank of a run, and launchers send signals more than once; all
// stop after a round, and further signals change nothing. A rank stays one.
void catch_interrupts(bool one_of_several = false);
bool interrupt_requested();

}  // namespace fedep
