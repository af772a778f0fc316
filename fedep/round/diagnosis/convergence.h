// Whether q has arrived: how far its means and deviations move over a window of rounds, long enough
// for every client's part of q to have been renewed about once.
//
//   begin_window(state);                                     // q as it is, before a round
//   count_round(state, numbers);                             // after it
//   if (window_is_over(state, phase, clients)) {
//     const WindowNumbers moved = end_window(state, phase);  // the next window begins
//   }
//   if (has_converged(state, 0.05)) …
//
// A window costs q's moments once, and a copy of them (two numbers a weight), which checkpoints hold
// too: a run that is resumed measures as if it had never stopped. Where messages live elsewhere, q
// comes home once a window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "fedep/round/phase.h"
#include "fedep/round/round_parts.h"
#include "fedep/round/server_state.h"

namespace fedep {

// q that moved by less than this in two windows running has converged: a twentieth of a deviation.
inline constexpr double kConverged = 0.05;

// And that has no more to go than so many times as much, a quarter of a deviation. Where moves become
// smaller by a factor r a window, what is left is r / (1 - r) times the last: that allows r up to 5/6, and
// EP's moves have r = 1/e.
inline constexpr double kLeft = 5;

// Point estimates have no deviations to measure by.
inline bool is_measured(const Phase& phase) { return !phase.algorithm->point_estimate; }

// What the server moves q by in a round, as a part of what its clients say: lr times δ, and times what
// a cooldown or a schedule leaves of it.
double server_rate(const Phase& phase, std::int64_t round);

// Rounds of the window that begins with round `round`:
//
//   sgd      ⌈(clients / clients per round)(1 - momentum) / server_rate⌉, at least 2
//   others   ⌈10 clients / clients per round⌉: ten visits a client
//
// A server that stands still has a window without end, of kEndless rounds.
inline constexpr std::int64_t kEndless = 1'000'000'000'000'000;
std::int64_t window_length(const Phase& phase, std::size_t clients, std::int64_t round);

// The largest |Δ mean| / deviation and |Δ log deviation|, deviations being those after the move.
// Infinite where one of the two was improper.
struct Moved {
  double mean = 0;
  double log_sd = 0;
  FurthestMove mean_at = {}, log_sd_at = {};
};
Moved moved(const HostVector<float>& mean_before, const HostVector<float>& deviation_before,
            const HostVector<float>& mean, const HostVector<float>& deviation);

// How far is left to go for what moved by `before` in one window and by `now` in the next, if all moves
// that follow shrink as these did: |now| r / (1 - r) with r = now / before. Noise turns round, and leaves
// nothing.
double left_to_go(double before, double now);

// Whether q goes on in one direction, by small moves that add up to more than it may have left when it
// moves by less than `less_than`: after each of the last two windows, since noise does not turn round every
// time. Where the first is not known, the last one tells.
bool creeps(std::optional<double> left_before, std::optional<double> left_latest, double less_than);

// Of a state that is at home. Where a window is open already, it goes on.
void begin_window(ServerState& state);
// A round whose answers did not come, or were refused, or whose step the guard undid.
void count_round(ServerState& state, const RoundNumbers& numbers);
bool window_is_over(const ServerState& state, const Phase& phase, std::size_t clients);
// Also begins the next one. Where a rate, clip or alpha changed within the window, or more than a tenth of
// its rounds were lost, q moved less whether it had arrived or not: that is not judged.
WindowNumbers end_window(ServerState& state, const Phase& phase);

// A window has just ended, q moved by less than that in it and in the one before, and does not creep.
bool has_converged(const ServerState& state, double less_than);

}  // namespace fedep
