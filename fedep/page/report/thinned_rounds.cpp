#include "fedep/page/report/thinned_rounds.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fedep {
namespace {

void set_score(Metrics& scores, const std::string& name, double value) {
  const auto found = std::ranges::find(scores, name, &Metrics::value_type::first);
  if (found != scores.end()) {
    found->second = value;
  } else {
    scores.emplace_back(name, value);
  }
}

// `record`, and the rounds that follow it.
void join(RoundRecord& record, const RoundRecord& next) {
  record.round = next.round;
  record.phase = next.phase;
  record.clients += next.clients;
  record.dropped += next.dropped;
  record.outside_grid += next.outside_grid;
  record.diverged += next.diverged;
  record.skipped += next.skipped;
  record.clipped += next.clipped;
  record.guarded += next.guarded;
  record.condition = next.condition;
  record.start_precision = next.start_precision;
  record.step_scale = std::min(record.step_scale, next.step_scale);
  record.client_steps += next.client_steps;
  record.bytes_up += next.bytes_up;
  record.bytes_down += next.bytes_down;
  record.seconds += next.seconds;
  if (!std::isnan(next.factor_gap_eta)) {
    record.factor_gap_eta = next.factor_gap_eta;
    record.factor_gap_lambda = next.factor_gap_lambda;
  }
  if (std::isfinite(next.train_loss)) record.train_loss = next.train_loss;
  if (next.window_end) record.window_end = next.window_end;
  for (const auto& [name, value] : next.scores) {
    if (std::isfinite(value)) set_score(record.scores, name, value);
  }
}

}  // namespace

void ThinnedRounds::add(const RoundRecord& round) {
  const bool begins = played_ % each_ == 0;
  if (begins && records_.size() == most_) halve();
  if (played_ % each_ == 0) {
    records_.push_back(round);
  } else {
    join(records_.back(), round);
  }
  ++played_;
}

void ThinnedRounds::halve() {
  for (std::size_t i = 0; i < most_ / 2; ++i) {
    RoundRecord both = std::move(records_[2 * i]);
    join(both, records_[2 * i + 1]);
    records_[i] = std::move(both);
  }
  records_.resize(most_ / 2);
  each_ *= 2;
}

}  // namespace fedep
