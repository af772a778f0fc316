// A run's rounds in bounded space, however many come: all of them while they are few, then every
// second, every fourth … Each record that stays stands for the rounds since the one before it.
//
//   ThinnedRounds rounds;
//   rounds.add(record);                  // constant time on average
//   rounds.records();                    // at most 2,048, each for rounds.each() rounds
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fedep/store/log/history.h"

namespace fedep {

class ThinnedRounds {
 public:
  static constexpr std::size_t kMost = 2048;

  explicit ThinnedRounds(std::size_t most = kMost) : most_(most) {}  // an even number

  // The next round.
  void add(const RoundRecord& round);

  // Counts, bytes and seconds are sums over the rounds that a record stands for; the rest is what the
  // last of them had to say.
  const std::vector<RoundRecord>& records() const { return records_; }
  std::int64_t each() const { return each_; }  // the last record may stand for fewer
  std::int64_t played() const { return played_; }

 private:
  void halve();

  std::size_t most_;
  std::vector<RoundRecord> records_;
  std::int64_t each_ = 1;
  std::int64_t played_ = 0;
};

}  // namespace fedep
