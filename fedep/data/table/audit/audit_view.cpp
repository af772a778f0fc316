#include "fedep/data/table/audit/audit_view.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/message/nearest.h"

namespace fedep {

std::vector<std::uint32_t> AuditView::rows(std::size_t client) const {
  const auto train = clients.train.of(client), test = clients.test.of(client);
  std::vector<std::uint32_t> out;
  out.reserve(train.size() + test.size());
  std::ranges::merge(train, test, std::back_inserter(out));
  return out;
}

bool AuditView::has_events() const {
  return spec.target == TargetKind::binary || spec.target == TargetKind::count;
}

bool AuditView::has_number_outcome() const { return table.has_label_numbers(); }

double AuditView::events(std::uint32_t row) const {
  if (!has_events()) return 0;
  return has_number_outcome() ? table.label_number(row) : table.label_of_word[table.label(row)];
}

std::string shown_counts(const CountByClient& counts, const std::vector<std::string>& ids) {
  constexpr std::size_t kMost = 4;
  std::vector<std::pair<std::size_t, std::size_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kMost, sorted.size()); ++i) {
    parts.push_back(fmt::format("{} at {}", sorted[i].second, shown(ids[sorted[i].first])));
  }
  const std::size_t more = sorted.size() - parts.size();
  return fmt::format("{}{}", fmt::join(parts, ", "),
                     more == 0   ? ""
                     : more == 1 ? " and 1 more client"
                                 : fmt::format(" and {} more clients", more));
}

}  // namespace fedep
