// How the process gets its memory. Rounds make and drop vectors as large as the model; given back to
// the system each time, every page of them would be fetched and cleared anew, which takes several
// times as long as the arithmetic on it.
#pragma once

namespace fedep {

// From now on blocks of any size stay with the process once they are freed, for all threads alike.
// The most that was ever in use is kept until the end. Nothing happens where malloc is not glibc's.
void reuse_large_blocks();

}  // namespace fedep
