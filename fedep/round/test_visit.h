// A visit up to its inference, for tests that look at cavities.
#pragma once

#include <span>
#include <stdexcept>
#include <utility>

#include "fedep/round/host_rows.h"
#include "fedep/round/visit.h"

namespace fedep {

using PreparedVisit = PreparedVisitOf<HostVector<float>>;

struct NeverAsked final : LocalInference {
  ClientRun infer(const Visit&, VisitNumbers&) override { throw std::logic_error("asked"); }
};

inline PreparedVisit prepare_visit(const RoundTask& round, const ClientTask& task,
                                   const ClientInfo& client, SiteStore* sites) {
  NeverAsked inference;
  HostRows rows(inference, sites);
  const AskedClient asked{task, &client};
  rows.begin(round, std::span(&asked, 1));
  return std::move(prepare_visits<HostVector<float>>(round, std::span(&asked, 1), rows)[0]);
}

}  // namespace fedep
