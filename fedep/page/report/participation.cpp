#include "fedep/page/report/participation.h"

#include "fedep/round/round_parts.h"

namespace fedep {
namespace {

constexpr std::size_t kMostClients = 100'000'000;  // a log may say anything

}  // namespace

Participation::Participation(std::uint64_t seed, std::size_t clients, std::size_t asked)
    : seed_(seed), clients_(clients), asked_(asked) {}

bool Participation::is_known() const {
  return clients_ > 0 && clients_ <= kMostClients && asked_ <= clients_;
}

void Participation::count_until(std::int64_t rounds, std::int64_t at_most) {
  if (!is_known()) return;
  for (; counted_ < rounds && at_most > 0; ++counted_, --at_most) {
    for (const std::size_t client : sample_clients(seed_, counted_, clients_, asked_)) {
      ++times_[client];
    }
  }
}

}  // namespace fedep
