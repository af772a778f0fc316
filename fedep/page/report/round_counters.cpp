#include "fedep/page/report/round_counters.h"

namespace fedep {
namespace {

void count(RoundCounter& counter, double in_round) {
  counter.total += in_round;
  counter.rounds += in_round > 0;
}

}  // namespace

void RoundCounters::add(const RoundRecord& round) {
  count(dropped, double(round.dropped));
  count(outside_grid, double(round.outside_grid));
  count(diverged, double(round.diverged));
  count(skipped, double(round.skipped));
  count(clipped, double(round.clipped));
  count(guarded, double(round.guarded));
  count(backed_off, round.step_scale < 1);
}

}  // namespace fedep
