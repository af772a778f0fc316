// Ranks that are threads of one process, so that tests need no launcher.
//
//   play_ranks(3, [&](Ranks& ranks) { … });      // the same on each of three; an error of one is thrown
#pragma once

#include <algorithm>
#include <barrier>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "fedep/sim/ranks/ranks.h"

namespace fedep {

class RankHub {
 public:
  explicit RankHub(std::size_t size) : said(size), parcels(size), meeting(std::ptrdiff_t(size)) {}

  std::vector<Bytes> said;                  // by rank
  std::vector<std::vector<Bytes>> parcels;  // by rank: what it sends, in order
  std::barrier<> meeting;
  std::mutex mutex;  // guards groups
  std::map<std::size_t, std::shared_ptr<RankHub>> groups;
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(RankHub& hub, std::size_t rank, std::shared_ptr<RankHub> owned = nullptr)
      : owned_(std::move(owned)), hub_(hub), rank_(rank) {}

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return hub_.said.size(); }
  std::string host() const override { return "here"; }

  void sum(std::span<std::int64_t> numbers) override {
    sum_of(numbers);
    if (after_sum) after_sum(numbers);
  }
  void sum(std::span<std::int32_t> numbers) override { sum_of(numbers); }

  std::vector<Bytes> gather(std::span<const std::byte> mine) override {
    hub_.said[rank_].assign(mine.begin(), mine.end());
    hub_.meeting.arrive_and_wait();
    std::vector<Bytes> all = hub_.said;
    hub_.meeting.arrive_and_wait();
    return all;
  }

  Bytes broadcast(Bytes bytes) override { return gather(bytes)[0]; }
  void wait_for_all() override {
    if (before_waiting) before_waiting();
    gather({});
  }

  void begin_exchange(std::vector<Transfer> transfers, std::vector<Bytes> mine) override {
    has_progressed_ = false;
    transfers_ = std::move(transfers);
    mine_ = std::move(mine);
  }
  void progress() override { has_progressed_ = true; }
  std::vector<Bytes> end_exchange() override {
    if (has_progressed_) ++background;
    hub_.parcels[rank_] = std::move(mine_);
    hub_.meeting.arrive_and_wait();
    std::vector<Bytes> got;
    std::vector<std::size_t> next(size(), 0);
    for (const Transfer& transfer : transfers_) {
      const Bytes& parcel = hub_.parcels[transfer.from].at(next[transfer.from]++);
      if (transfer.to == rank_) got.push_back(parcel);
    }
    hub_.meeting.arrive_and_wait();
    return got;
  }

  std::unique_ptr<Ranks> group(std::size_t size) override {
    std::shared_ptr<RankHub> some;
    {
      const std::lock_guard lock(hub_.mutex);
      auto& there = hub_.groups[rank_ / size];
      if (!there) {
        there = std::make_shared<RankHub>(std::min(size, this->size() - rank_ / size * size));
      }
      some = there;
    }
    hub_.meeting.arrive_and_wait();
    if (is_first()) hub_.groups.clear();
    hub_.meeting.arrive_and_wait();
    return std::make_unique<ThreadRanks>(*some, rank_ % size, some);
  }

  int background = 0;  // exchanges that were on their way while this rank worked
  // What a test does to this rank: to a sum that it has, and before it waits for the others.
  std::function<void(std::span<std::int64_t>)> after_sum;
  std::function<void()> before_waiting;

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

  std::shared_ptr<RankHub> owned_;  // a group's
  RankHub& hub_;
  std::size_t rank_;
  std::vector<Transfer> transfers_;
  std::vector<Bytes> mine_;
  bool has_progressed_ = false;
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
