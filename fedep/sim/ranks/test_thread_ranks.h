// Ranks that are threads of one process, so that tests need no launcher.
//
//   play_ranks(3, [&](Ranks& ranks) { … });      // the same on each of three; an error of one is thrown
#pragma once

#include <barrier>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "fedep/sim/ranks/ranks.h"

namespace fedep {

class RankHub {
 public:
  explicit RankHub(std::size_t size) : said(size), parcels(size), meeting(std::ptrdiff_t(size)) {}

  std::vector<Bytes> said;                  // by rank
  std::vector<std::vector<Bytes>> parcels;  // by rank: what it sends, in order
  std::barrier<> meeting;
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(RankHub& hub, std::size_t rank) : hub_(hub), rank_(rank) {}

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return hub_.said.size(); }
  std::string host() const override { return "here"; }

  void sum(std::span<std::int64_t> numbers) override { sum_of(numbers); }
  void sum(std::span<std::int32_t> numbers) override { sum_of(numbers); }

  std::vector<Bytes> gather(std::span<const std::byte> mine) override {
    hub_.said[rank_].assign(mine.begin(), mine.end());
    hub_.meeting.arrive_and_wait();
    std::vector<Bytes> all = hub_.said;
    hub_.meeting.arrive_and_wait();
    return all;
  }

  Bytes broadcast(Bytes bytes) override { return gather(bytes)[0]; }

  std::vector<Bytes> exchange(std::span<const Transfer> transfers,
                              const std::vector<Bytes>& mine) override {
    hub_.parcels[rank_] = mine;
    hub_.meeting.arrive_and_wait();
    std::vector<Bytes> got;
    std::vector<std::size_t> next(size(), 0);
    for (const Transfer& transfer : transfers) {
      const Bytes& parcel = hub_.parcels[transfer.from].at(next[transfer.from]++);
      if (transfer.to == rank_) got.push_back(parcel);
    }
    hub_.meeting.arrive_and_wait();
    return got;
  }

 private:
  template <class T>
  void sum_of(std::span<T> numbers) {
    const std::vector<Bytes> all = gather(std::as_bytes(numbers));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0;
    for (const Bytes& bytes : all) {
      const std::vector<T> theirs = values_of<T>(bytes);
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += theirs.at(i);
    }
  }

  RankHub& hub_;
  std::size_t rank_;
};

// A rank that fails leaves the others, who then wait for nobody: all must fail alike, or none.
inline void play_ranks(std::size_t size, const std::function<void(Ranks&)>& play) {
  RankHub hub(size);
  std::mutex mutex;  // guards failure
  std::exception_ptr failure;
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadRanks ranks(hub, rank);
        try {
          play(ranks);
        } catch (...) {
          const std::lock_guard lock(mutex);
          failure = std::current_exception();
          hub.meeting.arrive_and_drop();
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fedep
