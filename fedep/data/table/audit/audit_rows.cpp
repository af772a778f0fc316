#include "fedep/data/table/audit/audit_rows.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/message/nearest.h"

namespace fedep {
namespace {

std::vector<std::size_t> rows_per_client(const PackedTable& table) {
  std::vector<std::size_t> out(table.client_ids.size());
  for (std::uint32_t row = 0; row < table.size(); ++row) ++out[table.client(row)];
  return out;
}

// The chance that two rows are the same in a column: Σ p² of its values.
template <class Value>
double chance_of(std::vector<Value> values) {
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (auto begin = values.begin(); begin != values.end();) {
    const auto end = std::upper_bound(begin, values.end(), *begin);
    sum += double(end - begin) * double(end - begin);
    begin = end;
  }
  return sum / (double(values.size()) * double(values.size()));
}

// Pairs of equal rows that a client would have by chance, were its columns independent.
double pairs_by_chance(const AuditView& view, const std::vector<std::uint32_t>& rows) {
  constexpr double kMissing = -1.7976931348623157e308;
  double pairs = double(rows.size()) * double(rows.size() - 1) / 2;
  std::vector<double> numbers(rows.size());
  const auto take = [&](auto&& value) {
    std::ranges::transform(rows, numbers.begin(), [&](std::uint32_t row) {
      const double x = value(row);
      return std::isnan(x) ? kMissing : x;
    });
    pairs *= chance_of(numbers);
  };
  for (std::size_t j = 0; j < view.spec.numbers.size(); ++j) {
    take([&](std::uint32_t row) { return view.table.number(row, j); });
  }
  if (view.has_number_outcome()) {
    take([&](std::uint32_t row) { return view.table.label_number(row); });
  } else {
    take([&](std::uint32_t row) { return double(view.table.label(row)); });
  }
  for (std::size_t j = 0; j < view.spec.categories.size(); ++j) {
    std::vector<std::string_view> values;
    for (const std::uint32_t row : rows) values.emplace_back(view.table.category(row, j));
    pairs *= chance_of(std::move(values));
  }
  return pairs;
}

}  // namespace

std::vector<Finding> findings_of_reading(const PackedTable& table) {
  std::vector<Finding> out;
  if (const std::size_t headers = table.marks.repeated_headers; headers > 0) {
    out.push_back({"repeated-header", false,
                   fmt::format("{} of the rows {} the header again, as where files are put behind "
                               "one another ({} the first); they are not read",
                               headers, headers == 1 ? "is" : "are", table.marks.first_header)});
  }
  const std::vector<std::size_t> counts = rows_per_client(table);
  for (std::uint32_t client = 0; client < counts.size(); ++client) {
    if (counts[client] > 0) continue;
    const SkippedRecords& skipped = table.skipped_of.at(client);
    out.push_back(
        {"lost-client", false,
         fmt::format("client {} has none of its {} rows left and takes no part; the first: "
                     "{}",
                     shown(table.client_ids[client]), skipped.count, skipped.first)});
  }
  return out;
}

std::string left_out_by_client(const PackedTable& table) {
  CountByClient counts;
  std::vector<std::string> ids;
  for (std::uint32_t client = 0; client < table.client_ids.size(); ++client) {
    ids.push_back(table.client_ids[client]);
    const auto found = table.skipped_of.find(client);
    if (found != table.skipped_of.end()) counts[client] = found->second.count;
  }
  return counts.empty() ? "" : shown_counts(counts, ids);
}

void find_duplicated_rows(const AuditView& view, std::vector<Finding>& findings) {
  constexpr double kBeyondChance = 10;
  CountByClient counts;
  std::size_t total = 0;
  std::string first;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> hashes;
  for (std::size_t c = 0; c < view.size(); ++c) {
    const std::vector<std::uint32_t> rows = view.rows(c);
    hashes.clear();
    for (const std::uint32_t row : rows) hashes.emplace_back(view.table.marks.hash(row), row);
    std::sort(hashes.begin(), hashes.end());
    double pairs = 0;
    std::size_t copies = 0;
    std::pair<std::uint32_t, std::uint32_t> earliest{UINT32_MAX,
                                                     0};  // the copy, and what it copies
    for (std::size_t begin = 0, end = 0; begin < hashes.size(); begin = end) {
      while (end < hashes.size() && hashes[end].first == hashes[begin].first) ++end;
      const std::size_t same = end - begin;
      if (same == 1) continue;
      pairs += double(same) * double(same - 1) / 2;
      copies += same - 1;
      earliest = std::min(earliest, {hashes[begin + 1].second, hashes[begin].second});
    }
    if (copies == 0 || pairs <= kBeyondChance * pairs_by_chance(view, rows)) continue;
    if (first.empty()) {
      first = fmt::format("{} is {} again", view.table.marks.place(earliest.first),
                          view.table.marks.place(earliest.second));
    }
    counts[c] = copies;
    total += copies;
  }
  if (total == 0) return;
  findings.push_back(
      {"duplicated-rows", false,
       fmt::format("{} {} another of the same client in every column: {} ({}); if they are no "
                   "other patients, take them out",
                   total, total == 1 ? "row equals" : "rows equal",
                   shown_counts(counts, view.clients.ids), first)});
}

void find_torn_groups(const AuditView& view, std::vector<Finding>& findings) {
  if (view.spec.group_column.empty()) return;
  struct Seen {
    std::size_t client;
    bool torn = false, in_training = false, in_test = false;
  };
  std::unordered_map<std::string_view, Seen> groups;
  std::size_t torn = 0, parted = 0, alone = 0;
  std::string first_torn, first_parted;
  for (std::size_t c = 0; c < view.size(); ++c) {
    for (const bool test : {false, true}) {
      for (const std::uint32_t row : (test ? view.clients.test : view.clients.train).of(c)) {
        const std::string& group = view.table.group(row);
        if (group.empty()) {
          ++alone;
          continue;
        }
        Seen& seen = groups.try_emplace(group, Seen{c}).first->second;
        if (seen.client != c && !seen.torn) {
          seen.torn = true;
          if (torn++ == 0) {
            first_torn =
                fmt::format("{} at {} and {}", shown(group), shown(view.clients.ids[seen.client]),
                            shown(view.clients.ids[c]));
          }
        }
        const bool was_parted = seen.in_training && seen.in_test;
        (test ? seen.in_test : seen.in_training) = true;
        if (!was_parted && seen.in_training && seen.in_test && !seen.torn && parted++ == 0) {
          first_parted = fmt::format("{} of client {}", shown(group), shown(view.clients.ids[c]));
        }
      }
    }
  }
  const std::string column = shown(view.spec.group_column);
  if (torn > 0) {
    findings.push_back(
        {"group-at-two-clients", false,
         fmt::format("{} of {} values of {} {} rows at more than one client, the first: {}; each "
                     "client keeps its own together, but no client knows of the other's",
                     torn, groups.size(), column, torn == 1 ? "has" : "have", first_torn)});
  }
  if (parted > 0) {
    findings.push_back(
        {"group-in-training-and-test", false,
         fmt::format(
             "{} of {} values of {} {} rows in training and in test by data.test_column, the "
             "first: {}; scores then know the patients that they are of",
             parted, groups.size(), column, parted == 1 ? "has" : "have", first_parted)});
  }
  if (alone > 0) {
    findings.push_back(
        {"no-group", false,
         fmt::format("{} rows have no {} (data.group_column); each is on its own", alone, column)});
  }
}

}  // namespace fedep
