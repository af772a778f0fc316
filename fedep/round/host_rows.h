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
  void silence(std::span<const Range> silent) override;
  std::vector<double> measure() override;
  bool round_to_grid(std::size_t row, double scale) override;
  void propose(std::size_t row) override;

  // What is sent of a row that fits the grid.
  GridDelta take_sent(std::size_t row) { return std::move(*sent_[row]); }

 private:
  void add(Message delta);

  LocalInference& inference_;
  SiteStore* sites_;
  const Reach* reach_;
  const RoundTask* round_ = nullptr;
  std::span<const AskedClient> asked_;
  std::vector<SiteState> states_;  // of a stateful phase
  std::vector<Message> deltas_;
  std::vector<std::optional<GridDelta>> sent_;
};

// One client's visit. A stateful client's new state is proposed to `sites`. An error gains round,
// client and stage.
Report play_visit(const RoundTask& round, const ClientTask& task, const ClientInfo& client,
                  SiteStore* sites, LocalInference& inference);

// Ends a round for stateful clients: the states that `taken` (indices in the population) proposed
// count from now on. Of their steps factors keep the part that the server kept of its own.
void settle_visits(const RoundTask& round, const Population& population,
                   std::span<const std::size_t> taken, const StepPart& part, SiteStore& sites);

}  // namespace fedep
