// Preloaded into a rank (LD_PRELOAD), makes its sums over ranks wrong, as MPI libraries have:
//
//   WRONG_SUM_FROM=100000 WRONG_SUM_BITS=32 LD_PRELOAD=libwrong_sum.so fedep run …
//
// The last number is one too large where so many or more of this width are added, of any width without
// BITS; with WRONG_SUM_GROUPS=1 only where some of the ranks add.
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

namespace {

long number_from(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? atol(text) : 0;
}

bool is_wrong(int count, long bits, MPI_Comm comm) {
  const long wanted = number_from("WRONG_SUM_BITS");
  if (wanted != 0 && wanted != bits) return false;
  if (number_from("WRONG_SUM_GROUPS") != 0 && comm == MPI_COMM_WORLD) return false;
  return count > 0 && count >= number_from("WRONG_SUM_FROM");
}

}  // namespace

extern "C" int MPI_Allreduce(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  const int result = PMPI_Allreduce(mine, all, count, type, op, comm);
  if (type == MPI_INT64_T && is_wrong(count, 64, comm)) ++static_cast<int64_t*>(all)[count - 1];
  if (type == MPI_INT32_T && is_wrong(count, 32, comm)) ++static_cast<int32_t*>(all)[count - 1];
  return result;
}
