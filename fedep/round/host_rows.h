// Visits on a core: the operations of rows.h in main memory, and the visit of one client with them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fedep/round/rows.h"
#include "fedep/round/site_store.h"

namespace fedep {

// Local inference: what a simulator or a deployed client brings, with the client's data behind it.
// Must fill what visit.round.phase.algorithm->needs names.
class LocalInference {
 public:
  virtual ~LocalInference() = default;
  // Weights that a visit of this client can move, where those are few and known beforehand: a visit is
  // then played on them alone, with the same outcome. Of nothing: on all. May be asked while others infer.
  virtual Reach reach(const Phase& phase, const ClientInfo& client) const {
    (void)phase, (void)client;
    return {};
  }
  virtual ClientRun infer(const Visit& visit, VisitNumbers& numbers) = 0;
};

class HostRows final : public Rows<HostVector<float>> {
 public:
  using V = HostVector<float>;

  // `sites` may be null in stateless phases. With a reach the round must be of these weights alone.
  HostRows(LocalInference& inference, SiteStore* sites, const Reach* reach = nullptr)
      : inference_(inference), sites_(sites), reach_(reach) {}

  void begin(const RoundTask& round, std::span<const AskedClient> asked) override;
  std::vector<Message> form_cavities() override;
  std::vector<CavityFacts> examine(const std::vector<Message>& cavities) override;
  std::vector<ClientRun> infer(std::vector<Visit> visits, std::span<const std::size_t> rows,
                               std::vector<VisitNumbers>& numbers) override;
  void add_quotient(Message tilted, std::optional<Message> divisor) override;
  void add_move(V to) override;
  void add_points(V eta) override;
  void add_flat() override;
  void silence(std::span<const Range> silent, const std::optional<SilentLaw>& law) override;
  std::vector<double> measure() override;
  bool round_to_grid(std::size_t row, double scale) override;
  void propose(std::size_t row) override;

  // What is sent of a row that fits the grid.
  GridDelta take_sent(std::size_t row) { return std::move(*sent_[row]); }

 private:
  // Of a delta whose silent part follows a law: what is sent there is by_mean μ + by_factor η_k.
  struct SharedStep {
    std::vector<Range> silent;
    double by_mean = 0, by_factor = 0;
    double scale = 0;  // of what is sent
  };

  const Message& factor(std::size_t row) const;
  void add(Message delta);
  void silence_by_law(std::span<const Range> silent, const SilentLaw& law);
  void propose_shares(std::size_t row, double scale);

  LocalInference& inference_;
  SiteStore* sites_;
  const Reach* reach_;
  const RoundTask* round_ = nullptr;
  std::span<const AskedClient> asked_;
  std::vector<SiteState> states_;  // of a stateful phase
  std::vector<Message> wholes_;  // their factors with what they refer to, where phases share means
  std::vector<Message> deltas_;
  std::vector<std::optional<GridDelta>> sent_;
  std::vector<std::optional<SharedStep>> shared_;
};

// One client's visit. A stateful client's new state is proposed to `sites`. An error gains round,
// client and stage.
Report play_visit(const RoundTask& round, const ClientTask& task, const ClientInfo& client,
                  SiteStore* sites, LocalInference& inference);

// Puts q's mean where the factors of this round's clients refer to it, once the server has taken some
// of their deltas. `writes` as in mean_shelf.h.
void keep_mean(const RoundTask& round, SiteStore& sites, bool writes = true);

// Ends a round for stateful clients: the states that `taken` (indices in the population) proposed
// count from now on. Of their steps factors keep the part that the server kept of its own.
void settle_visits(const RoundTask& round, const Population& population,
                   std::span<const std::size_t> taken, const StepPart& part, SiteStore& sites);

}  // namespace fedep
