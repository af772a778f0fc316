// The paper's table metrics, read off a learning curve (Guo+23 Tables 2, 3, 6): trailing means, the
// rounds it took to reach a value, the best value by a round.
//
//   rounds_to_threshold(accuracy, 0.45);     // 10-round means; "rounds to 45 %"
//   best_by_round(accuracy, 1500);           // 100-round means; "accuracy at 1500R"
//
// curve[i] is the value after i + 1 completed rounds, from the first round of a run on, NaN where
// there was no evaluation. Rounds are counted as completed ones: 1 is the first. All metrics here
// are better when larger; for a loss, pass its negative.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fedep {

inline constexpr std::size_t kThresholdWindow = 10;
inline constexpr std::size_t kBestWindow = 100;

// Mean over rounds i − window + 1 .. i, as pandas' rolling(window).mean(): NaN until the window is
// full, so for the first window − 1 rounds, and wherever a value in the window is NaN.
std::vector<double> running_mean(std::span<const double> curve, std::size_t window);

// Completed rounds at the first round whose running mean is at least `threshold`; nothing if there
// is none.
std::optional<std::int64_t> rounds_to_threshold(std::span<const double> curve, double threshold,
                                                std::size_t window = kThresholdWindow);

// The largest running mean within the first `rounds` rounds. NaN if no window was full by then, or
// if the curve is shorter than that: a run of 1000 rounds has no best by round 1500.
double best_by_round(std::span<const double> curve, std::int64_t rounds,
                     std::size_t window = kBestWindow);

}  // namespace fedep
