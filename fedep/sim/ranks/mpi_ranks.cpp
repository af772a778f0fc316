// The one file that reads mpi.h.
#include "fedep/sim/ranks/mpi_ranks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include <mpi.h>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/sim/ranks/gathered_pieces.h"

namespace fedep {
namespace {

// Counts of MPI are ints, and libraries add up bytes in them too.
constexpr std::size_t kElements = std::size_t(8) << 20;
constexpr std::size_t kChunk = std::size_t(64) << 20;  // bytes

template <class T, class Visit>
void for_chunks(std::span<T> all, std::size_t most, const Visit& visit) {
  for (std::size_t begin = 0; begin < all.size(); begin += most) {
    visit(all.subspan(begin, std::min(most, all.size() - begin)));
  }
}

// Parcels between pairs of ranks, each of which is told how long it is before it comes.
class Exchange {
 public:
  Exchange(MPI_Comm comm, std::size_t rank, std::span<const Transfer> transfers,
           std::vector<Bytes> mine)
      : comm_(comm), mine_(std::move(mine)) {
    for (const Bytes& bytes : mine_) sizes_.push_back(bytes.size());
    incoming_.reserve(transfers.size());  // MPI has the addresses of what is in it
    std::size_t next = 0;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const int tag = 2 * int(i % kParcels);
      if (transfers[i].from == rank) send(next++, int(transfers[i].to), tag);
      if (transfers[i].to == rank) {
        Incoming& parcel = incoming_.emplace_back();
        parcel.from = int(transfers[i].from);
        parcel.tag = tag;
        MPI_Irecv(&parcel.size, 1, MPI_UINT64_T, parcel.from, tag, comm_, &parcel.sized);
      }
    }
  }

  void progress() {
    for (Incoming& parcel : incoming_) {
      if (parcel.is_coming) continue;
      int there = 0;
      MPI_Test(&parcel.sized, &there, MPI_STATUS_IGNORE);
      if (there != 0) receive(parcel);
    }
    int done = 0;
    MPI_Testall(int(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
  }

  std::vector<Bytes> end() {
    for (Incoming& parcel : incoming_) {
      if (parcel.is_coming) continue;
      MPI_Wait(&parcel.sized, MPI_STATUS_IGNORE);
      receive(parcel);
    }
    MPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    std::vector<Bytes> got;
    for (Incoming& parcel : incoming_) got.push_back(std::move(parcel.bytes));
    return got;
  }

 private:
  // Tags are below 32,768. Between two ranks MPI keeps the order of messages with one tag.
  static constexpr std::size_t kParcels = 16000;

  struct Incoming {
    int from = 0, tag = 0;
    std::uint64_t size = 0;
    MPI_Request sized = MPI_REQUEST_NULL;
    bool is_coming = false;  // its size is known, and `bytes` waits for it
    Bytes bytes;
  };

  void send(std::size_t parcel, int to, int tag) {
    MPI_Isend(&sizes_[parcel], 1, MPI_UINT64_T, to, tag, comm_, &requests_.emplace_back());
    for_chunks(std::span(mine_[parcel]), kChunk, [&](std::span<const std::byte> chunk) {
      MPI_Isend(chunk.data(), int(chunk.size()), MPI_BYTE, to, tag + 1, comm_,
                &requests_.emplace_back());
    });
  }

  void receive(Incoming& parcel) {
    parcel.is_coming = true;
    parcel.bytes.resize(parcel.size);
    for_chunks(std::span(parcel.bytes), kChunk, [&](std::span<std::byte> chunk) {
      MPI_Irecv(chunk.data(), int(chunk.size()), MPI_BYTE, parcel.from, parcel.tag + 1, comm_,
                &requests_.emplace_back());
    });
  }

  MPI_Comm comm_;
  std::vector<Bytes> mine_;
  std::vector<std::uint64_t> sizes_;  // of mine
  std::vector<Incoming> incoming_;
  std::vector<MPI_Request> requests_;
};

class MpiRanks final : public Ranks {
 public:
  // All that the launcher started, or some of them.
  MpiRanks() : MpiRanks(start()) {}
  explicit MpiRanks(MPI_Comm comm) : comm_(comm) {
    int number = 0;
    MPI_Comm_rank(comm_, &number);
    rank_ = std::size_t(number);
    MPI_Comm_size(comm_, &number);
    size_ = std::size_t(number);
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    MPI_Get_processor_name(name, &length);
    host_.assign(name, std::size_t(length));
  }
  ~MpiRanks() override {
    if (comm_ == MPI_COMM_WORLD) {
      MPI_Finalize();
    } else {
      MPI_Comm_free(&comm_);
    }
  }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }
  std::string host() const override { return host_; }

  // Blocking and in chunks: MPI_Iallreduce in place added wrongly in Open MPI before 4.1.2.
  void sum(std::span<std::int64_t> numbers) override { sum_of(numbers, MPI_INT64_T); }
  void sum(std::span<std::int32_t> numbers) override { sum_of(numbers, MPI_INT32_T); }

  std::vector<Bytes> gather(std::span<const std::byte> mine) override {
    const std::uint64_t size = mine.size();
    std::vector<std::uint64_t> sizes(size_);
    MPI_Allgather(&size, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, comm_);
    const GatheredPieces pieces = gathered_pieces(sizes);
    if (pieces.total == 0) return std::vector<Bytes>(size_);
    Bytes together(pieces.total);
    MPI_Allgatherv(mine.data(), int(size), MPI_BYTE, together.data(), pieces.sizes.data(),
                   pieces.begins.data(), MPI_BYTE, comm_);
    std::vector<Bytes> all;
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const auto begin = together.begin() + pieces.begins[rank];
      all.emplace_back(begin, begin + pieces.sizes[rank]);
    }
    return all;
  }

  Bytes broadcast(Bytes bytes) override {
    std::uint64_t size = bytes.size();
    MPI_Bcast(&size, 1, MPI_UINT64_T, 0, comm_);
    bytes.resize(size);
    for_chunks(std::span(bytes), kChunk, [&](std::span<std::byte> chunk) {
      MPI_Bcast(chunk.data(), int(chunk.size()), MPI_BYTE, 0, comm_);
    });
    return bytes;
  }

  void begin_exchange(std::vector<Transfer> transfers, std::vector<Bytes> mine) override {
    exchange_.emplace(comm_, rank_, transfers, std::move(mine));
  }
  void progress() override {
    if (exchange_) exchange_->progress();
  }
  std::vector<Bytes> end_exchange() override {
    std::vector<Bytes> got = exchange_->end();
    exchange_.reset();
    return got;
  }

  std::unique_ptr<Ranks> group(std::size_t size) override {
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(comm_, int(rank_ / size), int(rank_), &some);
    return std::make_unique<MpiRanks>(some);
  }

  // Others may be hours away: a rank that waits leaves its core to them.
  void wait_for_all() override {
    MPI_Request here = MPI_REQUEST_NULL;
    MPI_Ibarrier(comm_, &here);
    std::chrono::microseconds pause{0};
    for (int all = 0;;) {
      MPI_Test(&here, &all, MPI_STATUS_IGNORE);
      if (all != 0) return;
      std::this_thread::sleep_for(pause);
      pause = std::min(pause + kLonger, kLongestPause);
    }
  }

 private:
  static constexpr std::chrono::microseconds kLonger{10}, kLongestPause{20000};

  static MPI_Comm start() {
    int provided = 0;  // asked again by may_have_threads
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    return MPI_COMM_WORLD;
  }

  template <class T>
  void sum_of(std::span<T> numbers, MPI_Datatype type) {
    for_chunks(numbers, kElements, [&](std::span<T> chunk) {
      MPI_Allreduce(MPI_IN_PLACE, chunk.data(), int(chunk.size()), type, MPI_SUM, comm_);
    });
  }

  MPI_Comm comm_;
  std::size_t rank_ = 0, size_ = 1;
  std::string host_;
  std::optional<Exchange> exchange_;  // on its way
};

// Ranks have threads, of which one alone calls MPI.
bool may_have_threads() {
  int provided = 0;
  MPI_Query_thread(&provided);
  return provided >= MPI_THREAD_FUNNELED;
}

// What all ranks find alike the first one says; the others leave it to that.
[[noreturn]] void fail_alike(std::unique_ptr<MpiRanks> ranks, const Launch& launch,
                             const std::string& what) {
  ranks.reset();
  if (launch.rank > 0) std::_Exit(0);
  throw InputError(what);
}

}  // namespace

std::string mpi_ranks_problem() { return ""; }

std::unique_ptr<Ranks> start_mpi_ranks() {
  const Launch launch =
      launch_of([](const char* name) -> const char* { return std::getenv(name); });
  if (launch.ranks <= 1) return nullptr;
  auto ranks = std::make_unique<MpiRanks>();
  if (ranks->size() != launch.ranks) {
    const std::size_t found = ranks->size();
    fail_alike(std::move(ranks), launch,
               fmt::format("{} started {} ranks, but MPI found {}: the launcher must speak this "
                           "program's MPI, such as `srun --mpi=pmix` (docs/cluster.md)",
                           launch.launcher, launch.ranks, found));
  }
  for (const Bytes& told : ranks->gather(bytes_of(may_have_threads()))) {
    if (values_of<char>(told).at(0) != 0) continue;
    fail_alike(std::move(ranks), launch,
               "MPI: the library must let a process with threads call it from one of them "
               "(MPI_THREAD_FUNNELED), but one was built without: start another MPI");
  }
  return ranks;
}

void end_mpi_ranks(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace fedep
