#include "fedep/round/visit.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/optim/clip.h"
#include "fedep/random/stream.h"
#include "fedep/round/test_gaussian_clients.h"
#include "fedep/round/test_visit.h"

namespace fedep {
namespace {

using V = HostVector<float>;

// Two clients and a round about to be played, with its parts open to change.
class Visits : public testing::Test {
 protected:
  Visits() {
    clients_.add("a", 30, Message(V{1, 2}, V{3, 4}));
    clients_.add("b", 10, Message(V{-1, 0.5f}, V{0.5f, 1}));
    population_.emplace(clients_.population());
    phase_.algorithm = &find_algorithm("fed_ep");
    phase_.family = Family::diagonal;
    phase_.cavity = CavityKind::own_factor;
  }

  RoundTask round() {
    mean_ = V{0, 0};
    return {
        .seed = 1,
        .round = 3,
        .phase = phase_,
        .prior = prior_,
        .global = global_,
        .mean = mean_,
        .unvisited = unvisited_,
        .damping = 0.5,
        .grid = choose_grid(
            {}, {.clip = phase_.clip, .scale = 1, .asked = 2, .bits = phase_.grid_bits}, global_)};
  }
  const ClientInfo& a() const { return (*population_)[0]; }

  GaussianClients clients_;
  std::optional<Population> population_;
  Phase phase_;
  Message prior_{V{1, 1}, V{1, 1}};
  Message global_{V{5, 6}, V{8, 8}};
  V mean_;
  UnvisitedFactor unvisited_;
  std::unique_ptr<SiteStore> sites_ = make_memory_store();
};

void settle_as(SiteStore& sites, const ClientInfo& client, const Message& factor) {
  sites.propose(client.key, 0, {.factor = factor, .optimizer = {}});
  sites.settle(0, std::vector{client.key});
}

TEST_F(Visits, GiveEachCavityItsMeaning) {
  const Message factor(V{2, 2}, V{1, 3});
  settle_as(*sites_, a(), factor);
  const ClientTask task{.client = 0, .weight = 1, .share = 0.25};
  const auto cavity_of = [&](CavityKind kind) {
    phase_.cavity = kind;
    return prepare_visit(round(), task, a(), sites_.get()).cavity;
  };
  EXPECT_EQ(cavity_of(CavityKind::own_factor), quotient(global_, factor));
  EXPECT_EQ(cavity_of(CavityKind::share),
            quotient(global_, power(quotient(global_, prior_), 0.25f)));
  EXPECT_EQ(cavity_of(CavityKind::flat), flat_like(V(2), Family::diagonal));
  EXPECT_EQ(cavity_of(CavityKind::whole), global_);
}

TEST_F(Visits, TakeOutAShareWithTheBitsOfItsDefinition) {
  phase_.cavity = CavityKind::share;
  constexpr std::size_t kSize = 1000;
  V eta(kSize), lambda(kSize), prior(kSize);
  fill_normal({.seed = 3, .step = 1}, eta.span());
  fill_normal({.seed = 3, .step = 2}, lambda.span());
  fill_normal({.seed = 3, .step = 3}, prior.span());
  for (const double share : {0.0, 0.013, 0.7, 1.0}) {
    for (const Message& q : {Message(eta, lambda * lambda), Message(eta, 3.7f)}) {
      for (const Message& p : {Message(prior, prior * prior), Message(prior, 0.3f)}) {
        global_ = q;
        prior_ = p;
        const ClientTask task{.client = 0, .weight = 1, .share = share};
        EXPECT_EQ(prepare_visit(round(), task, a(), sites_.get()).cavity,
                  quotient(q, power(quotient(q, p), float(share))));
      }
    }
  }
  const ClientTask too_much{.client = 0, .weight = 1, .share = 1.5};
  EXPECT_THROW(prepare_visit(round(), too_much, a(), sites_.get()), InputError);
}

TEST_F(Visits, TakeAClientNeverSeenForItsPartOfTheStart) {
  EXPECT_EQ(prepare_visit(round(), {}, a(), sites_.get()).cavity, global_);  // flat factors
  unvisited_.per_example = Message(V{0.125f, 0}, V{0.0625f, 0.125f});
  EXPECT_EQ(prepare_visit(round(), {}, a(), sites_.get()).cavity,
            quotient(global_, power(unvisited_.per_example, 30)));
  EXPECT_EQ(sites_->visited(), 0u);
}

// Finds its cavity again but for rounding, of which its data say nothing.
class Quiet final : public LocalInference {
 public:
  Reach reach(const Phase&, const ClientInfo&) const override { return reach_; }
  ClientRun infer(const Visit& visit, VisitNumbers&) override {
    ++asked;
    size = visit.cavity.size();
    ClientRun run;
    run.tilted = product(visit.cavity, Message(V(size, 1e-4f), V(size, 1e-4f)));
    run.silent = silent;
    return run;
  }
  Reach reach_;
  std::vector<Range> silent;
  std::size_t size = 0, asked = 0;
};

TEST_F(Visits, SendNothingOfWhatDataAndFactorSayNothingOf) {
  settle_as(*sites_, a(), Message(V{0, 2}, V{0, 1}));
  Quiet quiet;
  const auto sent = [&] {
    const Report report = play_visit(round(), {.client = 0}, a(), sites_.get(), quiet);
    return from_grid(round().grid, report.delta);
  };
  const Message spoken = sent();
  EXPECT_NE(spoken.eta()[0], 0);
  EXPECT_NE(spoken.lambda_vector()[0], 0);
  quiet.silent = {{0, 2}};
  const Message silent = sent();
  EXPECT_EQ(silent.eta()[0], 0);
  EXPECT_EQ(silent.lambda_vector()[0], 0);
  // Its factor says something here, which may be what changes.
  EXPECT_EQ(silent.eta()[1], spoken.eta()[1]);
  EXPECT_EQ(silent.lambda_vector()[1], spoken.lambda_vector()[1]);
  EXPECT_EQ(sites_->proposed(a().key)->factor.eta()[0], 0);
  phase_.cavity =
      CavityKind::share;  // whoever replaces a part of q has something to say everywhere
  EXPECT_NE(sent().eta()[0], 0);
}

TEST_F(Visits, AreOfTheWeightsWithinReach) {
  Quiet quiet;
  quiet.reach_ = Reach({{1, 2}}, 2);
  const auto play = [&] { return play_visit(round(), {.client = 0}, a(), sites_.get(), quiet); };
  const Report part = play();
  EXPECT_EQ(quiet.size, 1u);
  EXPECT_EQ(part.delta.where, (std::vector<Range>{{1, 2}}));
  ASSERT_EQ(part.delta.eta.size(), 1u);
  const Message factor = sites_->proposed(a().key)->factor;
  EXPECT_EQ(factor.eta()[0], 0);
  EXPECT_EQ(factor.lambda_vector()[0], 0);
  // What the client remembers beyond it is not lost.
  settle_as(*sites_, a(), Message(V{2, 2}, V{0, 1}));
  EXPECT_TRUE(play().delta.where.empty());
  EXPECT_EQ(quiet.size, 2u);
  settle_as(*sites_, a(), Message(V{0, 2}, V{0, 1}));
  const Report again = play();
  EXPECT_EQ(quiet.size, 1u);
  quiet.reach_ = {};
  const Report whole = play();
  EXPECT_EQ(whole.delta.eta[1], again.delta.eta[0]);
  EXPECT_EQ(whole.delta.lambda[1], again.delta.lambda[0]);
  // Nor is a start that all clients have.
  quiet.reach_ = Reach({{1, 2}}, 2);
  unvisited_.per_example = Message(V{1, 1}, V{1, 1});
  EXPECT_TRUE(play().delta.where.empty());
}

TEST_F(Visits, MoveTheOwnFactorByExactlyWhatIsSent) {
  for (const double clip : {0.0, 0.75}) {
    for (const int bits : {64, 32}) {
      for (const bool outside : {false, true}) {
        sites_ = make_memory_store();
        const Message factor(V{0.3f, 0.7f}, V{0.1f, 0.2f});
        settle_as(*sites_, a(), factor);
        phase_.clip = clip;
        phase_.grid_bits = bits;
        phase_.damping.outside = outside;
        const RoundTask task = round();
        const Report report = play_visit(task, {.client = 0}, a(), sites_.get(), clients_);
        ASSERT_EQ(report.outcome, Outcome::delta);
        Message sent = from_grid(task.grid, report.delta);
        if (outside) sent = power(sent, 0.5f);
        EXPECT_EQ(sites_->proposed(a().key)->factor, product(factor, sent));
        EXPECT_EQ(sites_->get(a().key)->factor, factor);  // until the round is settled
        const Message delta = quotient(clients_.likelihood(a().key), factor);  // exact: p_k / q_k
        EXPECT_NEAR(report.numbers.delta_norm, joint_norm(delta), 1e-5);
        EXPECT_EQ(report.numbers.clipped, clip > 0);
        const double expected = 0.5 * (clip > 0 ? clip : joint_norm(delta));
        EXPECT_NEAR(joint_norm(sent), expected, 1e-5);
      }
    }
  }
}

TEST_F(Visits, OfAClientWithItsExactFactorSendNothing) {
  const Message exact = clients_.likelihood(a().key);
  settle_as(*sites_, a(), exact);
  const Report report = play_visit(round(), {.client = 0}, a(), sites_.get(), clients_);
  EXPECT_EQ(report.delta, (GridDelta{Family::diagonal, {0, 0}, {0, 0}}));
  EXPECT_EQ(sites_->proposed(a().key)->factor, exact);
}

TEST_F(Visits, WithoutMemoryNeedNoStoreAndOthersSayThatTheyDo) {
  phase_.cavity = CavityKind::share;
  EXPECT_EQ(play_visit(round(), {.client = 0, .share = 0.5}, a(), nullptr, clients_).outcome,
            Outcome::delta);
  phase_.cavity = CavityKind::own_factor;
  EXPECT_THROW(play_visit(round(), {.client = 0}, a(), nullptr, clients_), InputError);
}

TEST_F(Visits, ADeltaOutsideTheGridLeavesTheFactor) {
  RoundTask task = round();
  task.grid.limit = 1;
  const Report report = play_visit(task, {.client = 0}, a(), sites_.get(), clients_);
  EXPECT_EQ(report.outcome, Outcome::outside_grid);
  EXPECT_EQ(sites_->proposed(a().key), std::nullopt);
}

TEST_F(Visits, AClientThatTheGuardSkipsDoesNotInfer) {
  settle_as(*sites_, a(), Message(V{0, 0}, V{9, 1}));  // more than the global's 8
  phase_.guard.mode = GuardMode::skip;
  NeverAsked inference;
  const Report report = play_visit(round(), {.client = 0}, a(), sites_.get(), inference);
  EXPECT_EQ(report.outcome, Outcome::skipped);
  EXPECT_EQ(report.numbers.improper_cavity, 1u);
  EXPECT_EQ(sites_->proposed(a().key), std::nullopt);
}

TEST_F(Visits, HandTheGuardsCavityToTheClient) {
  settle_as(*sites_, a(), Message(V{1, 0}, V{9, 1}));
  const auto cavity_in = [&](GuardMode mode) {
    phase_.guard = {.mode = mode, .floor = 0.5};
    const PreparedVisit prepared = prepare_visit(round(), {}, a(), sites_.get());
    EXPECT_EQ(prepared.numbers.improper_cavity, 1u);
    EXPECT_FALSE(prepared.skipped);
    return prepared.cavity;
  };
  EXPECT_EQ(cavity_in(GuardMode::count).lambda_vector(), (V{-1, 7}));
  EXPECT_EQ(cavity_in(GuardMode::floor).lambda_vector(), (V{0.5f, 7}));
  EXPECT_FLOAT_EQ(cavity_in(GuardMode::back_off).lambda_vector()[0], 8 - 0.8f * 9);
}

TEST_F(Visits, SettledKeepTheServersShareOfTheirStep) {
  for (const float scale : {0.0f, 0.25f, 1.0f, 2.0f}) {
    for (const bool seen_before : {false, true}) {
      sites_ = make_memory_store();
      unvisited_.per_example = Message(V{0.125f, 0}, V{0.0625f, 0.125f});
      Message before = power(unvisited_.per_example, 30);
      if (seen_before) settle_as(*sites_, a(), before = Message(V{1, 1}, V{2, 2}));
      const RoundTask task = round();
      play_visit(task, {.client = 0}, a(), sites_.get(), clients_);
      play_visit(task, {.client = 1}, (*population_)[1], sites_.get(), clients_);
      const Message step = quotient(sites_->proposed(a().key)->factor, before);
      settle_visits(task, *population_, std::vector<std::size_t>{0}, {.kept = scale}, *sites_);
      EXPECT_EQ(sites_->get(a().key)->factor, product(before, power(step, scale)));
      EXPECT_EQ(sites_->get((*population_)[1].key), std::nullopt);  // not taken
    }
  }
}

TEST(MemoryStore, SettlesOnlyWhatThisRoundHasProposed) {
  const Message factor(V{1}, V{2});
  for (const std::int64_t round : {2, 3, 4}) {
    const auto sites = make_memory_store();
    sites->propose(7, 3, {.factor = factor, .optimizer = {}});
    sites->settle(round, std::vector<std::uint64_t>{7});
    const std::optional<SiteState> settled = sites->get(7);
    EXPECT_EQ(settled ? settled->factor : Message(), round == 3 ? factor : Message()) << round;
    EXPECT_EQ(sites->proposed(7), std::nullopt);
  }
}

template <class Error>
struct Failing final : LocalInference {
  ClientRun infer(const Visit&, VisitNumbers&) override { throw Error("no data"); }
};

TEST_F(Visits, AnErrorGainsRoundClientAndStageAndKeepsItsKind) {
  const auto message_of = [&](LocalInference& inference, auto kind) {
    using Error = decltype(kind);
    try {
      play_visit(round(), {.client = 0}, a(), sites_.get(), inference);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no such error");
  };
  Failing<InputError> input;
  Failing<RunError> run;
  Failing<std::logic_error> other;
  EXPECT_EQ(message_of(input, InputError("")), "round 4, client a, local inference: no data");
  EXPECT_EQ(message_of(run, RunError("")), "round 4, client a, local inference: no data");
  EXPECT_EQ(message_of(other, RunError("")), "round 4, client a, local inference: no data");
}

TEST_F(Visits, AnIsotropicTiltedDistributionServesADiagonalRound) {
  GaussianClients isotropic;
  isotropic.add("a", 30, Message(V{1, 2}, 3.0f));
  phase_.cavity = CavityKind::flat;
  const Report report = play_visit(round(), {.client = 0}, a(), nullptr, isotropic);
  EXPECT_EQ(report.delta.family, Family::diagonal);
  EXPECT_EQ(report.delta.lambda.size(), 2u);
}

}  // namespace
}  // namespace fedep
