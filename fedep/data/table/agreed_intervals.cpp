#include "fedep/data/table/agreed_intervals.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/table/person_time.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

std::vector<double> own_event_times(const PackedTable& table, std::span<const std::uint32_t> rows) {
  std::vector<double> times;
  for (const std::uint32_t row : rows) {
    if (table.has_event(row)) times.push_back(table.stop(row));
  }
  return times;
}

std::vector<double> own_pieces(const PackedTable& table, std::span<const std::uint32_t> rows,
                               std::span<const double> cuts) {
  std::vector<double> counts(cuts.size() + 1);
  for (const std::uint32_t row : rows) {
    for (const Piece& piece : pieces_of(table.start(row), table.stop(row), cuts)) {
      ++counts[piece.interval];
    }
  }
  return counts;
}

void add(const std::vector<double>& counts, std::vector<double>& sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += counts[i];
}

}  // namespace

void agree_on_intervals(const PackedTable& table, const ClientTables& clients,
                        const DataSettings& settings, const std::string& source,
                        TableScale& scale) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const std::uint32_t row : clients.train.rows) {
    least = std::min(least, table.start(row));
    most = std::max(most, table.stop(row));
  }
  if (clients.train.rows.empty()) return;
  const TimeGrid grid = common_grid(least, most);
  std::vector<double> events(grid.steps);
  for (std::size_t c = 0; c < clients.ids.size(); ++c) {
    add(event_counts(grid, own_event_times(table, clients.train.of(c))), events);
  }
  if (std::ranges::all_of(events, [](double count) { return count == 0; })) {
    throw InputError(
        fmt::format("{}: column {} must say of some training row that it ended with "
                    "the event, but says so of none",
                    source, shown(settings.label_column)));
  }
  scale.cuts = cuts_of(grid, events, std::size_t(settings.intervals));

  std::vector<double> pieces(scale.cuts.size() + 1);
  for (std::size_t c = 0; c < clients.ids.size(); ++c) {
    add(own_pieces(table, clients.train.of(c), scale.cuts), pieces);
  }
  double all = 0;
  for (const double count : pieces) all += count;
  for (std::size_t j = 1; j < pieces.size(); ++j) {
    ColumnScale& column = scale.intervals.emplace_back(share_scale(pieces[j], all));
    if (settings.scale == ColumnScaling::none) column = {.varies = column.varies};
  }
}

}  // namespace fedep
