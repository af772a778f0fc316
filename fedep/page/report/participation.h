// How often a run's clients were asked. Who was asked is a function of seed and round, so it is
// counted without a log.
//
//   Participation asked(seed, 500, 20);   // of 500 clients, 20 a round
//   asked.count_until(1500);
//   asked.times();                        // client -> how often, of those that were
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>

namespace fedep {

class Participation {
 public:
  Participation(std::uint64_t seed, std::size_t clients, std::size_t asked);

  // False for numbers that no run has: nothing is counted then.
  bool is_known() const;
  // Goes on from where it stopped, for at most so many rounds.
  void count_until(std::int64_t rounds,
                   std::int64_t at_most = std::numeric_limits<std::int64_t>::max());

  std::int64_t counted() const { return counted_; }  // rounds
  std::size_t clients() const { return clients_; }
  const std::map<std::size_t, std::int64_t>& times() const { return times_; }

 private:
  std::uint64_t seed_;
  std::size_t clients_, asked_;
  std::int64_t counted_ = 0;
  std::map<std::size_t, std::int64_t> times_;
};

}  // namespace fedep
