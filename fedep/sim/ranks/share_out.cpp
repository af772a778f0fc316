#include "fedep/sim/ranks/share_out.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fedep/message/check.h"

namespace fedep {
namespace {

// What is a little of a worker's work: a factor stays where it is if that costs no more, and nobody looks
// for a better way to share that would gain less.
constexpr std::int64_t kLittle = 50;

// Who does what: threads of ranks, numbered thread by thread, so that the first visits go to different
// ranks.
class Shares {
 public:
  Shares(std::span<const VisitLoad> visits, const Workforce& workforce)
      : visits_(visits),
        ranks_(workforce.ranks),
        at_(visits.size()),
        busy_(workforce.ranks * workforce.threads, 0) {
    for (const VisitLoad& visit : visits) {
      all_ += visit.cost;
      longest_ = std::max(longest_, visit.cost);
    }
    little_ = all_ / std::int64_t(busy_.size()) / kLittle;
  }

  std::size_t rank_of(std::size_t visit) const { return at_[visit] % ranks_; }

  // The longest first, each to whoever has least to do.
  void deal() {
    for (const std::size_t i : longest_first(visits_)) {
      std::size_t chosen = least_busy(std::nullopt);
      if (visits_[i].home) {
        const std::size_t at_home = least_busy(visits_[i].home);
        if (busy_[at_home] <= busy_[chosen] + little_) chosen = at_home;
      }
      put(i, chosen);
    }
  }

  // Who has most to do gives a visit away, or changes it for a shorter one, as long as that gains
  // anything worth while.
  void improve() {
    const std::int64_t least = std::max(longest_, all_ / std::int64_t(busy_.size()));
    for (std::size_t step = 0; step < visits_.size(); ++step) {
      const std::size_t most = std::size_t(std::ranges::max_element(busy_) - busy_.begin());
      if (busy_[most] <= least + little_ || !relieve(most)) return;
    }
  }

  // Visits that are not where their factors are change places with others that are not either, or have
  // none, as long as nobody gets more to do than whoever has most.
  void send_home() {
    const std::int64_t most = std::ranges::max(busy_);
    const auto is_home = [&](std::size_t i) { return visits_[i].home == rank_of(i); };
    for (std::size_t i = 0; i < visits_.size(); ++i) {
      if (!visits_[i].home || is_home(i)) continue;
      for (std::size_t j = 0; j < visits_.size(); ++j) {
        if (rank_of(j) != *visits_[i].home || is_home(j)) continue;
        const std::int64_t more = visits_[i].cost - visits_[j].cost;
        if (busy_[at_[j]] + more > most || busy_[at_[i]] - more > most) continue;
        swap(i, j);
        break;
      }
    }
  }

 private:
  void put(std::size_t visit, std::size_t worker) {
    at_[visit] = worker;
    busy_[worker] += visits_[visit].cost;
  }
  void swap(std::size_t i, std::size_t j) {
    const std::int64_t more = visits_[i].cost - visits_[j].cost;
    busy_[at_[i]] -= more;
    busy_[at_[j]] += more;
    std::swap(at_[i], at_[j]);
  }

  // With the least to do, of one rank or of all; the first of several.
  std::size_t least_busy(std::optional<std::size_t> rank) const {
    std::optional<std::size_t> least;
    for (std::size_t worker = rank.value_or(0); worker < busy_.size();
         worker += rank ? ranks_ : 1) {
      if (!least || busy_[worker] < busy_[*least]) least = worker;
    }
    return *least;
  }

  // The one move or change of visits after which the two have least to do; false if none helps.
  bool relieve(std::size_t most) {
    const std::size_t idlest = least_busy(std::nullopt);
    std::int64_t best = busy_[most];
    std::size_t given = 0, taken = 0;  // `taken` past the last visit: none
    for (std::size_t i = 0; i < visits_.size(); ++i) {
      if (at_[i] != most) continue;
      for (std::size_t j = 0; j <= visits_.size(); ++j) {
        const bool moves = j == visits_.size();
        const std::size_t other = moves ? idlest : at_[j];
        if (other == most) continue;
        const std::int64_t less = visits_[i].cost - (moves ? 0 : visits_[j].cost);
        const std::int64_t after = std::max(busy_[most] - less, busy_[other] + less);
        if (after >= best) continue;
        best = after;
        given = i;
        taken = j;
      }
    }
    if (best == busy_[most]) return false;
    if (taken < visits_.size()) {
      swap(given, taken);
    } else {
      busy_[most] -= visits_[given].cost;
      put(given, idlest);
    }
    return true;
  }

  std::span<const VisitLoad> visits_;
  std::size_t ranks_;
  std::vector<std::size_t> at_;     // of every visit: its worker
  std::vector<std::int64_t> busy_;  // by worker
  std::int64_t all_ = 0, longest_ = 0, little_ = 0;
};

}  // namespace

std::vector<std::size_t> longest_first(std::span<const VisitLoad> visits) {
  std::vector<std::size_t> order(visits.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return visits[a].cost > visits[b].cost; });
  return order;
}

std::vector<std::size_t> share_out(std::span<const VisitLoad> visits, const Workforce& workforce) {
  check_positive("share_out", "number of ranks", double(workforce.ranks));
  check_positive("share_out", "number of threads", double(workforce.threads));
  Shares shares(visits, workforce);
  shares.deal();
  shares.improve();
  shares.send_home();
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < visits.size(); ++i) ranks.push_back(shares.rank_of(i));
  return ranks;
}

}  // namespace fedep
