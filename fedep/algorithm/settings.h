// Settings that algorithms share, as a recipe gives them.
#pragma once

#include <optional>

namespace fedep {

// What is taken out of the global approximation before a client infers.
enum class CavityKind {
  own_factor,  // q / q_k: expectation propagation, needs a client that remembers
  share,       // q / (q/q_0)^share: stochastic EP, a client without memory
  flat,        // everything: FedPA, every client alone with its data
  whole,       // nothing: assumed-density filtering, data counted again at every visit
  proximal,    // all but q's mean, which pulls with mu an example: FedProx
  dual,        // the same, less what the client remembers of its gradient: FedDyn
};

// Whether clients keep something of their own between visits.
constexpr bool remembers(CavityKind kind) {
  return kind == CavityKind::own_factor || kind == CavityKind::dual;
}

// What the server makes of a round's sum of deltas.
enum class StepRule {
  optimizer,  // follows it (optim/optimizer.h)
  admm,       // q' = near (q + mean delta) + pull S, S the prior times all factors (admm_step.h)
};

// A client's share of q/q_0 in stochastic EP.
enum class ShareRule {
  examples,  // N_k / N, as the reference computes it
  equal,     // 1 / (number of clients), as Guo+23 Sec. 2.2.4 writes it
};

// How much a client's delta counts in the sum.
enum class WeightRule {
  examples,  // N_k / Σ N_j over the clients that answered
  equal,     // 1: damping alone scales the sum
};

enum class DampingRule {
  one_over_k,  // 1/K, K = clients asked in the round
  constant,
  none,      // 1
  decaying,  // linspace(0.5, 1/K, K)[min(K-1, t)]
};

struct DampingSettings {
  DampingRule rule = DampingRule::one_over_k;
  double constant = 1.0;  // for rule `constant`
  bool outside = false;  // δ·optim(Σ Δ) as in Guo+23 Alg. 3; else optim(Σ δ Δ) as the reference

  bool operator==(const DampingSettings&) const = default;
};

// The server's steps, on q and on factors, are whole in a phase's first `after` rounds, shrink
// linearly over the next `rounds`, and are `to` of their length from then on.
struct CooldownSettings {
  int after = 0;
  int rounds = 1;
  double to = 0.01;

  bool operator==(const CooldownSettings&) const = default;
};

// How a quantity goes from one multiple of itself to another (schedule.h).
enum class ScheduleKind {
  constant,  // stays at the first
  linear,
  cosine,  // half a wave: slow, fast, slow
  steps,   // in equal ratios, at equal distances
};

// Over the steps of a client's visit.
struct VisitSchedule {
  ScheduleKind kind = ScheduleKind::linear;
  double from = 1.0;
  double to = 0.1;
  int steps = 2;  // falls (or rises) of kind `steps`

  bool operator==(const VisitSchedule&) const = default;
};

// Over a phase's rounds: `from` in the first `after`, `to` once `rounds` more have gone.
struct RoundSchedule {
  ScheduleKind kind = ScheduleKind::linear;
  int after = 0;
  int rounds = 0;  // 0: to the phase's end
  double from = 1.0;
  double to = 0.1;
  int steps = 2;

  bool operator==(const RoundSchedule&) const = default;
};

// What a phase has schedules of; each multiplies the quantity that the recipe gives.
struct ScheduleSettings {
  std::optional<VisitSchedule> visit_rate = {};   // the client's rate, in a visit
  std::optional<RoundSchedule> client_rate = {};  // and over rounds
  std::optional<RoundSchedule> server_rate = {};
  std::optional<RoundSchedule> clip = {};
  std::optional<RoundSchedule> alpha = {};

  bool operator==(const ScheduleSettings&) const = default;
};

// Over which rounds the server averages its means.
enum class AverageKind {
  exponential,  // all of the phase, those `rounds` ago by 1/e less
  tail,         // the phase's last `rounds`, all alike
};

struct AverageSettings {
  AverageKind kind = AverageKind::exponential;
  int rounds = 30;

  bool operator==(const AverageSettings&) const = default;
};

}  // namespace fedep
