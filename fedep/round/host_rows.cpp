#include "fedep/round/host_rows.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fedep/algorithm/cavity.h"
#include "fedep/algorithm/fed_avg.h"
#include "fedep/algorithm/fed_ep.h"
#include "fedep/message/check.h"
#include "fedep/optim/optimizer.h"
#include "fedep/round/factor_clock.h"
#include "fedep/round/shared_part.h"
#include "fedep/round/visit.h"

namespace fedep {
namespace {

SiteState unvisited_state(const RoundTask& round, const ClientInfo& client) {
  const Message& per_example = round.unvisited.per_example;
  SiteState state;
  const bool flat = per_example.size() == 0;
  state.factor = flat || round.phase.shares_means
                     ? flat_like(round.global.eta(), round.phase.family)
                     : power(per_example, float(client.examples));
  if (!flat && round.phase.shares_means) {
    if (client.examples > 0) state.shares = {{kUnvisited, double(client.examples)}};
    state.factor.lambda_span()[0] = float(client.examples) * per_example.lambda_scalar();
  }
  state.optimizer = initial_state(round.phase.factor_optimizer, state.factor);
  return state;
}

std::optional<SiteState> kept_state(const SiteStore& sites, std::uint64_t client,
                                    const Reach* reach) {
  if (reach == nullptr) return sites.get(client);
  std::optional<SiteState> state;
  sites.look(client, [&](const StoredSite& stored) {
    state.emplace();
    state->factor = reach->gather(stored.factor);
    state->optimizer.steps = stored.steps;
    for (const SparseMessage& slot : stored.slots) {
      state->optimizer.slots.push_back(reach->gather(slot));
    }
  });
  return state;
}

// What a client has when a round begins.
SiteState present_state(const RoundTask& round, const ClientInfo& client, const SiteStore& sites,
                        const Reach* reach = nullptr) {
  std::optional<SiteState> state = kept_state(sites, client.key, reach);
  if (!state) state = unvisited_state(round, client);
  if (round.phase.follows_rounds()) {
    catch_up(round.phase.factor_optimizer, round.step_scales, *state);
  }
  return std::move(*state);
}

// cavity() in one pass over memory instead of three where a share is taken out, with the same bits.
Message share_cavity(const RoundTask& round, double share) {
  check_in("cavity", "share", share, 0, 1);
  Message out = round.global;
  const auto take_out = [part = float(share)](std::span<const float> prior, std::span<float> q) {
    for (std::size_t i = 0; i < q.size(); ++i) q[i] -= part * (q[i] - prior[i]);
  };
  take_out(round.prior.eta().span(), out.eta().span());
  take_out(round.prior.lambda_span(), out.lambda_span());
  return out;
}

Message cavity_of(const RoundTask& round, const AskedClient& client, const Message& factor) {
  const Phase& phase = round.phase;
  const double share = client.task.share, examples = double(client.info->examples);
  switch (phase.cavity) {
    case CavityKind::proximal:
      return proximal_cavity(round.mean, phase.mu, examples);
    case CavityKind::dual:
      return proximal_cavity(round.mean - factor.eta(), phase.mu, examples);
    case CavityKind::share:
      if (round.prior.family() == round.global.family()) return share_cavity(round, share);
      break;
    case CavityKind::own_factor:
      if (phase.penalty == 1) break;
      return quotient(round.global, power(factor, float(1 / phase.penalty)));
    case CavityKind::flat:
    case CavityKind::whole:
      break;
  }
  return cavity(phase.cavity, round.global, round.prior, factor, share);
}

// Whether the guard has nothing to count or to change, found out in one pass.
bool is_in_order(const GuardSettings& settings, const Message& cavity) {
  const float least = settings.mode == GuardMode::floor ? float(settings.floor) : 0.0f;
  if (cavity.full())
    return is_positive_definite(cavity.lambda_packed(), cavity.size(), double(least));
  const float most = std::numeric_limits<float>::max();
  unsigned wrong = 0;  // no early end and no bool, so that the loop vectorises
  for (const float x : cavity.lambda_span()) {
    wrong |= unsigned(!(x > 0)) | unsigned(!(x >= least)) | unsigned(!(x <= most));
  }
  return wrong == 0;
}

// Of coordinates that a factor says nothing of; lambdas are empty where there is one for all.
void silence_part(std::span<const float> factor_eta, std::span<const float> factor_lambda,
                  std::span<float> eta, std::span<float> lambda) {
  for (std::size_t i = 0; i < eta.size(); ++i) {
    const bool speaks = factor_eta[i] != 0 || (!factor_lambda.empty() && factor_lambda[i] != 0);
    eta[i] = speaks ? eta[i] : 0.0f;
    if (!lambda.empty()) lambda[i] = speaks ? lambda[i] : 0.0f;
  }
}

}  // namespace

void HostRows::begin(const RoundTask& round, std::span<const AskedClient> asked) {
  round_ = &round;
  asked_ = asked;
  states_.clear();
  wholes_.clear();
  deltas_.clear();
  sent_.clear();
  shared_.clear();
  if (!round.phase.stateful()) return;
  if (sites_ == nullptr) throw InputError("visit: a stateful phase needs a site store");
  for (const AskedClient& client : asked) {
    states_.push_back(present_state(round, *client.info, *sites_, reach_));
    if (!round.phase.shares_means) continue;
    const SiteState& state = states_.back();
    wholes_.push_back(state.factor);
    SharedPart(round, *sites_, state.shares).add_to(wholes_.back().eta().span(), 0, 1);
  }
}

const Message& HostRows::factor(std::size_t row) const {
  return wholes_.empty() ? states_[row].factor : wholes_[row];
}

std::vector<Message> HostRows::form_cavities() {
  std::vector<Message> cavities;
  for (std::size_t r = 0; r < asked_.size(); ++r) {
    const Message& own = states_.empty() ? round_->global : factor(r);
    cavities.push_back(cavity_of(*round_, asked_[r], own));
  }
  return cavities;
}

std::vector<CavityFacts> HostRows::examine(const std::vector<Message>& cavities) {
  std::vector<CavityFacts> facts;
  for (const Message& cavity : cavities) {
    const bool in_order = is_in_order(round_->phase.guard, cavity);
    facts.push_back(
        {.improper = in_order ? 0 : count_improper(round_->global, cavity), .in_order = in_order});
  }
  return facts;
}

std::vector<ClientRun> HostRows::infer(std::vector<Visit> visits, std::span<const std::size_t>,
                                       std::vector<VisitNumbers>& numbers) {
  std::vector<ClientRun> runs;
  for (std::size_t i = 0; i < visits.size(); ++i) {
    visits[i].reach = reach_;
    runs.push_back(inference_.infer(visits[i], numbers[i]));
  }
  return runs;
}

void HostRows::add(Message delta) {
  // A delta of a smaller family than the round's is written out.
  deltas_.push_back(in_family(std::move(delta), round_->global.family()));
  sent_.emplace_back();
  shared_.emplace_back();
}

void HostRows::add_quotient(Message tilted, std::optional<Message> divisor) {
  add(fed_ep_delta(tilted, divisor ? *divisor : round_->global));
}

void HostRows::add_move(V to) { add(fed_avg_delta(to, round_->mean)); }

void HostRows::add_points(V eta) { add({std::move(eta), 0.0f}); }

void HostRows::add_flat() { add(flat_like(round_->global.eta(), round_->global.family())); }

void HostRows::silence(std::span<const Range> silent, const std::optional<SilentLaw>& law) {
  if (states_.empty())
    return;   // without a factor of its own a client replaces a part of q everywhere
  if (law) {  // what it says was found already; the factor refers to it where the phase lets it
    if (round_->phase.shares_means) silence_by_law(silent, *law);
    return;
  }
  const Message& factor = states_[deltas_.size() - 1].factor;
  Message& delta = deltas_.back();
  for (const Range& range : silent) {
    const auto part = [&](auto numbers) {
      return numbers.size() < delta.size() ? numbers.first(0)  // one precision for all
                                           : numbers.subspan(range.begin, range.end - range.begin);
    };
    silence_part(part(factor.eta().span()), part(factor.lambda_span()), part(delta.eta().span()),
                 part(delta.lambda_span()));
  }
}

// With η_q = λ_q μ and η_cavity = η_q - η_k, tilted η less η_q is
//
//   (by_mean + (by_cavity - 1) λ_q) μ - by_cavity η_k,
//
// here without the cancellation of tilted less q, which is thousands of times a factor of one of many.
void HostRows::silence_by_law(std::span<const Range> silent, const SilentLaw& law) {
  const std::size_t row = deltas_.size() - 1;
  const double lambda = double(round_->global.lambda_scalar());
  if (!(lambda > 0)) {
    fail("visit", "q's precision where factors refer to its means", "positive",
         fmt::format("{}", lambda));
  }
  SharedStep step{.silent = {silent.begin(), silent.end()},
                  .by_mean = law.by_mean + (law.by_cavity - 1) * lambda,
                  .by_factor = -law.by_cavity};
  const std::span<const float> mean = round_->mean.span(), own = wholes_[row].eta().span();
  const std::span<float> delta = deltas_.back().eta().span();
  for (const Range& range : silent) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      delta[i] = float(step.by_mean * double(mean[i]) + step.by_factor * double(own[i]));
    }
  }
  shared_.back() = std::move(step);
}

std::vector<double> HostRows::measure() {
  std::vector<double> norms;
  for (const Message& delta : deltas_) norms.push_back(joint_norm(delta));
  return norms;
}

bool HostRows::round_to_grid(std::size_t row, double scale) {
  sent_[row] = to_grid(round_->grid, deltas_[row], scale);
  if (shared_[row]) shared_[row]->scale = scale;
  return sent_[row].has_value();
}

// The factor moves by what is sent: of silent weights by what the law says of it, which the grid then
// rounds, of the client's own exactly. Of these it keeps what shares do not say.
void HostRows::propose_shares(std::size_t row, double scale) {
  const SharedStep& step = *shared_[row];
  SiteState& state = states_[row];
  const OptimizerSettings& optimizer = round_->phase.factor_optimizer;
  const Reach own(complement(step.silent, wholes_[row].size()), wholes_[row].size());
  Message factor = own.gather(wholes_[row]);
  advance(optimizer, state.optimizer, factor, own.gather(from_grid(round_->grid, *sent_[row])),
          scale);
  const double moves = step.scale * double(float(optimizer.lr * scale));
  for (MeanShare& share : state.shares) share.share *= 1 + moves * step.by_factor;
  state.shares.push_back({round_->round, moves * step.by_mean});
  drop_nothing(state.shares);
  const SharedPart shared(*round_, *sites_, state.shares);
  std::size_t at = 0;
  for (const Range& range : own.ranges()) {
    const std::size_t size = range.end - range.begin;
    shared.add_to(factor.eta().span().subspan(at, size), range.begin, -1);
    at += size;
  }
  sites_->propose_stored(asked_[row].info->key, round_->round,
                         {.factor = own.scatter(factor),
                          .steps = state.optimizer.steps,
                          .slots = {},
                          .shares = std::move(state.shares)});
}

void HostRows::propose(std::size_t row) {
  const double scale = optimizer_scale(round_->phase, round_->round, round_->damping);
  if (shared_[row]) return propose_shares(row, scale);
  SiteState& state = states_[row];
  advance(round_->phase.factor_optimizer, state.optimizer, state.factor,
          from_grid(round_->grid, *sent_[row]), scale);
  const std::uint64_t client = asked_[row].info->key;
  if (reach_ == nullptr) {
    sites_->propose(client, round_->round, std::move(state));
    return;
  }
  StoredSite stored{
      .factor = reach_->scatter(state.factor), .steps = state.optimizer.steps, .slots = {}};
  for (const Message& slot : state.optimizer.slots) stored.slots.push_back(reach_->scatter(slot));
  sites_->propose_stored(client, round_->round, std::move(stored));
}

namespace {

// Whether all that a client remembers lies within the reach.
bool remembers_within(const Reach& reach, const SiteStore& sites, std::uint64_t client) {
  bool within = true;
  sites.look(client, [&](const StoredSite& stored) {
    within = reach.has_all_of(stored.factor) &&
             std::ranges::all_of(stored.slots,
                                 [&](const SparseMessage& slot) { return reach.has_all_of(slot); });
  });
  return within;
}

// The round as a client sees it that knows of these weights alone.
Report play_within(const Reach& reach, const RoundTask& whole, const AskedClient& asked,
                   SiteStore& sites, LocalInference& inference) {
  const Message prior = reach.gather(whole.prior), global = reach.gather(whole.global);
  const HostVector<float> mean = reach.gather(whole.mean);
  const UnvisitedFactor unvisited{};
  const RoundTask round{.seed = whole.seed,
                        .round = whole.round,
                        .phase = whole.phase,
                        .prior = prior,
                        .global = global,
                        .mean = mean,
                        .unvisited = unvisited,
                        .damping = whole.damping,
                        .grid = whole.grid,
                        .step_scales = whole.step_scales};
  HostRows rows(inference, &sites, &reach);
  Report report = std::move(play_visits(round, std::span(&asked, 1), rows)[0]);
  if (report.outcome == Outcome::delta) {
    report.delta = rows.take_sent(0);
    report.delta.where = reach.ranges();
  }
  return report;
}

}  // namespace

Report play_visit(const RoundTask& round, const ClientTask& task, const ClientInfo& client,
                  SiteStore* sites, LocalInference& inference) {
  const AskedClient asked{task, &client};
  if (round.phase.stateful() && sites != nullptr && round.unvisited.per_example.size() == 0) {
    const Reach reach = inference.reach(round.phase, client);
    if (reach.is_part() && remembers_within(reach, *sites, client.key)) {
      return play_within(reach, round, asked, *sites, inference);
    }
  }
  HostRows rows(inference, sites);
  Report report = std::move(play_visits(round, std::span(&asked, 1), rows)[0]);
  if (report.outcome == Outcome::delta) report.delta = rows.take_sent(0);
  return report;
}

void keep_mean(const RoundTask& round, SiteStore& sites, bool writes) {
  if (round.phase.shares_means) sites.means().keep(round.round, round.mean, writes);
}

void settle_visits(const RoundTask& round, const Population& population,
                   std::span<const std::size_t> taken, const StepPart& part, SiteStore& sites) {
  const Phase& phase = round.phase;
  const double scale = part.all();
  const bool whole = phase.follows_rounds() ? part.kept == 1 && part.renormalised == 1 : scale == 1;
  std::vector<std::uint64_t> keys;
  for (const std::size_t client : taken) {
    const ClientInfo& info = population[client];
    keys.push_back(info.key);
    if (whole) continue;
    const SiteState before = present_state(round, info, sites);
    SiteState after = sites.proposed(info.key).value();
    if (phase.follows_rounds()) {
      const double step = optimizer_scale(phase, round.round, round.damping);
      settle_on_clock(clocked_step(phase, step, part), before, after);
    } else {
      const Message step = quotient(after.factor, before.factor);
      after.factor = product(before.factor, power(step, float(scale)));
      after.shares = part_way(before.shares, after.shares, scale);
    }
    sites.propose(info.key, round.round, std::move(after));
  }
  sites.settle(round.round, keys);
}

}  // namespace fedep
