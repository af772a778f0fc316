// The one file that reads mpi.h.
#include "fedep/sim/ranks/mpi_ranks.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include <mpi.h>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

// Counts of MPI are ints, and libraries add up bytes in them too.
constexpr std::size_t kElements = std::size_t(8) << 20;
constexpr std::size_t kChunk = std::size_t(64) << 20;  // bytes

class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    int number = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    rank_ = std::size_t(number);
    MPI_Comm_size(MPI_COMM_WORLD, &number);
    size_ = std::size_t(number);
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    MPI_Get_processor_name(name, &length);
    host_.assign(name, std::size_t(length));
  }
  ~MpiRanks() override { MPI_Finalize(); }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }
  std::string host() const override { return host_; }

  // Blocking and in chunks: MPI_Iallreduce in place added wrongly in Open MPI before 4.1.2.
  void sum(std::span<std::int64_t> numbers) override { sum_of(numbers, MPI_INT64_T); }
  void sum(std::span<std::int32_t> numbers) override { sum_of(numbers, MPI_INT32_T); }

  std::vector<Bytes> gather(std::span<const std::byte> mine) override {
    const int size = int(mine.size());
    std::vector<int> sizes(size_), begins(size_);
    MPI_Allgather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::int64_t all_bytes = 0;
    for (std::size_t rank = 0; rank < size_; ++rank) {
      begins[rank] = int(all_bytes);
      all_bytes += sizes[rank];
    }
    if (all_bytes > std::numeric_limits<int>::max()) {
      throw RunError(fmt::format("ranks: together they must say at most 2 GiB, but it is {} bytes",
                                 all_bytes));
    }
    if (all_bytes == 0) return std::vector<Bytes>(size_);
    Bytes together(static_cast<std::size_t>(all_bytes));
    MPI_Allgatherv(mine.data(), size, MPI_BYTE, together.data(), sizes.data(), begins.data(),
                   MPI_BYTE, MPI_COMM_WORLD);
    std::vector<Bytes> all;
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const auto begin = together.begin() + begins[rank];
      all.emplace_back(begin, begin + sizes[rank]);
    }
    return all;
  }

  Bytes broadcast(Bytes bytes) override {
    std::uint64_t size = bytes.size();
    MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    bytes.resize(size);
    for_chunks(std::span(bytes), kChunk, [](std::span<std::byte> chunk) {
      MPI_Bcast(chunk.data(), int(chunk.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
    });
    return bytes;
  }

  std::vector<Bytes> exchange(std::span<const Transfer> transfers,
                              const std::vector<Bytes>& mine) override {
    // Between two ranks MPI keeps the order, so that one tag does.
    std::vector<std::uint64_t> sizes;
    for (const Bytes& bytes : mine) sizes.push_back(bytes.size());
    std::vector<MPI_Request> requests;
    std::size_t next = 0;
    for (const Transfer& transfer : transfers) {
      if (transfer.from != rank_) continue;
      const int to = int(transfer.to);
      MPI_Isend(&sizes[next], 1, MPI_UINT64_T, to, kTag, MPI_COMM_WORLD, &requests.emplace_back());
      for_chunks(std::span(mine.at(next)), kChunk, [&](std::span<const std::byte> chunk) {
        MPI_Isend(chunk.data(), int(chunk.size()), MPI_BYTE, to, kTag, MPI_COMM_WORLD,
                  &requests.emplace_back());
      });
      ++next;
    }
    std::vector<Bytes> got;
    for (const Transfer& transfer : transfers) {
      if (transfer.to != rank_) continue;
      const int from = int(transfer.from);
      std::uint64_t size = 0;
      MPI_Recv(&size, 1, MPI_UINT64_T, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      Bytes& bytes = got.emplace_back(size);
      for_chunks(std::span(bytes), kChunk, [&](std::span<std::byte> chunk) {
        MPI_Recv(chunk.data(), int(chunk.size()), MPI_BYTE, from, kTag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      });
    }
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    return got;
  }

 private:
  static constexpr int kTag = 21;

  template <class T, class Visit>
  static void for_chunks(std::span<T> all, std::size_t most, const Visit& visit) {
    for (std::size_t begin = 0; begin < all.size(); begin += most) {
      visit(all.subspan(begin, std::min(most, all.size() - begin)));
    }
  }

  template <class T>
  void sum_of(std::span<T> numbers, MPI_Datatype type) {
    for_chunks(numbers, kElements, [&](std::span<T> chunk) {
      MPI_Allreduce(MPI_IN_PLACE, chunk.data(), int(chunk.size()), type, MPI_SUM, MPI_COMM_WORLD);
    });
  }

  std::size_t rank_ = 0, size_ = 1;
  std::string host_;
};

// Libraries have added wrongly before: numbers whose sum is known.
void check_sums(Ranks& ranks) {
  const std::int64_t size = std::int64_t(ranks.size());
  std::vector<std::int64_t> wide(10007);
  std::iota(wide.begin(), wide.end(), std::int64_t(ranks.rank()) - 5000);
  std::vector<std::int32_t> narrow(wide.begin(), wide.end());
  ranks.sum(wide);
  ranks.sum(narrow);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const std::int64_t sum = size * (std::int64_t(i) - 5000) + size * (size - 1) / 2;
    if (wide[i] == sum && narrow[i] == sum) continue;
    throw RunError(fmt::format(
        "MPI: the sum of integers over ranks must be {}, but MPI_Allreduce gives {} and {}: this "
        "MPI library cannot be relied on",
        sum, wide[i], narrow[i]));
  }
}

}  // namespace

std::string mpi_ranks_problem() { return ""; }

std::unique_ptr<Ranks> start_mpi_ranks() {
  const Launch launch =
      launch_of([](const char* name) -> const char* { return std::getenv(name); });
  if (launch.launcher.empty()) return nullptr;
  auto ranks = std::make_unique<MpiRanks>();
  if (ranks->size() != launch.ranks) {
    throw InputError(
        fmt::format("{} started {} ranks, but MPI found {}: the launcher must speak this program's "
                    "MPI, such as "
                    "`srun --mpi=pmix` (docs/cluster.md)",
                    launch.launcher, launch.ranks, ranks->size()));
  }
  check_sums(*ranks);
  return ranks;
}

void end_mpi_ranks(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace fedep
