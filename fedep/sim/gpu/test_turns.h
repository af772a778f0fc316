// Ranks that are threads of one process share its GPU's one stream, which takes one of them at a time: a
// rank works while it holds the turn, and hands it on while it waits for the others.
//
//   std::mutex turn;
//   play_ranks(3, [&](Ranks& ranks) { TakingTurns turns(ranks, turn); … });
#pragma once

#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "fedep/sim/ranks/ranks.h"

namespace fedep {

class TakingTurns final : public Ranks {
 public:
  TakingTurns(Ranks& ranks, std::mutex& turn) : ranks_(ranks), turn_(turn) {}

  std::size_t rank() const override { return ranks_.rank(); }
  std::size_t size() const override { return ranks_.size(); }
  std::string host() const override { return ranks_.host(); }

  void sum(std::span<std::int64_t> numbers) override {
    waiting([&] { ranks_.sum(numbers); });
  }
  void sum(std::span<std::int32_t> numbers) override {
    waiting([&] { ranks_.sum(numbers); });
  }
  std::vector<Bytes> gather(std::span<const std::byte> mine) override {
    return waiting([&] { return ranks_.gather(mine); });
  }
  Bytes broadcast(Bytes bytes) override {
    return waiting([&] { return ranks_.broadcast(std::move(bytes)); });
  }
  void begin_exchange(std::vector<Transfer> transfers, std::vector<Bytes> mine) override {
    ranks_.begin_exchange(std::move(transfers), std::move(mine));
  }
  void progress() override { ranks_.progress(); }
  std::vector<Bytes> end_exchange() override {
    return waiting([&] { return ranks_.end_exchange(); });
  }
  std::unique_ptr<Ranks> group(std::size_t size) override {
    return waiting([&] { return ranks_.group(size); });
  }

 private:
  struct Back {
    std::unique_lock<std::mutex>& turn;
    ~Back() { turn.lock(); }
  };
  template <class Wait>
  std::invoke_result_t<const Wait&> waiting(const Wait& wait) {
    turn_.unlock();
    const Back back{turn_};
    return wait();
  }

  Ranks& ranks_;
  std::unique_lock<std::mutex> turn_;
};

}  // namespace fedep
