// What a program says once, first thing in main() and before its first thread:
//
//   int main() {
//     fedep::prepare_process();
//     …
//
// It changes the whole process, which is why no function of the library does it on its own. Tasks
// refuse to be made without it (sim/task.h).
#pragma once

namespace fedep {

// BLAS uses no threads of its own: clients are what runs in parallel, each on one core, and a sum
// has one order. BLAS also gets the kernels of this CPU where it does not know it and
// $OPENBLAS_CORETYPE does not say otherwise.
//
// Memory that is freed stays with the process, in one heap for all threads, where malloc is glibc's.
// Rounds make and drop vectors as large as the model; given back to the system each time, every page
// of them would be fetched and cleared anew, which takes several times as long as the arithmetic on
// it. The most that was ever in use is kept until the end.
void prepare_process();

// Throws InputError if BLAS would use several threads.
void check_process_is_prepared();

}  // namespace fedep
