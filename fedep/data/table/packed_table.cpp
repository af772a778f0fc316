#include "fedep/data/table/packed_table.h"

#include <array>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/table/person_time.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr std::uint32_t kNobody = WordList::kNone;

// Whose row this is.
class ClientFinder {
 public:
  ClientFinder(const RecordParser& parser, WordList& ids) : parser_(parser), ids_(ids) {}

  // A client that is new comes to the others; kNobody if the row names none.
  std::uint32_t find(std::span<const std::string_view> fields) {
    const std::string_view cell = parser_.client_cell(fields);
    if (last_ != kNobody && ids_[last_] == cell) return last_;  // as most rows are
    if (const std::uint32_t found = ids_.find(cell); found != kNobody) return last_ = found;
    const std::string id = parser_.client(fields);
    return id.empty() ? kNobody : last_ = ids_.add(id);
  }

 private:
  const RecordParser& parser_;
  WordList& ids_;
  std::uint32_t last_ = kNobody;
};

// Spells of patients, each at its hospital, who are at risk once at a time.
class SpellsOfPatients {
 public:
  explicit SpellsOfPatients(const TableSpec& spec)
      : spec_(spec), is_read_(spec.is_time_to_event() && !spec.group_column.empty()) {}

  void add(std::uint32_t client, const TableRecord& record, std::size_t place) {
    if (!is_read_ || record.group.empty()) return;
    spells_[{client, record.group}].push_back({record.features.start, record.features.stop, place});
  }
  // After the last record.
  void check(const RecordSource& records) const {
    for (const auto& [patient, spells] : spells_) {
      const Overlap found = overlap_of(spells);
      if (!found.there) continue;
      const std::string place = records.place();  // "line 7"
      throw InputError(
          fmt::format("{0}: {1} {2} and {1} {3}: spells of {4} {5} must not overlap, but go from "
                      "{6} to {7} and "
                      "from {8} to {9}",
                      records.heading().source, place.substr(0, place.find(' ')), found.one.place,
                      found.other.place, shown(spec_.group_column), shown(patient.second),
                      found.one.start, found.one.stop, found.other.start, found.other.stop));
    }
  }

 private:
  const TableSpec& spec_;
  bool is_read_;
  std::map<std::pair<std::uint32_t, std::string>, std::vector<Spell>> spells_;
};

}  // namespace

PackedTable::PackedTable(const TableSpec& spec)
    : number_columns_(spec.numbers.size()),
      category_columns_(spec.categories.size()),
      has_groups_(!spec.group_column.empty()),
      has_real_labels_(spec.cell_target() == TargetKind::real ||
                       spec.cell_target() == TargetKind::count),
      has_exposures_(!spec.exposure_column.empty()),
      has_times_(spec.is_time_to_event()),
      numbers_(spec.numbers.size()),
      scaled_(0),
      clients_(1),
      categories_(spec.categories.size()),
      groups_(1),
      label_words_(1),
      label_numbers_(1),
      exposures_(1),
      times_(2) {}

void PackedTable::add(std::uint32_t client, const TableRecord& record) {
  clients_.add({&client, 1});
  numbers_.add(record.features.numbers);
  row_words_.clear();
  for (const std::string& value : record.features.categories) {
    row_words_.push_back(words_.add(value));
  }
  categories_.add(row_words_);
  if (has_groups_) {
    const std::uint32_t group = words_.add(record.group);
    groups_.add({&group, 1});
  }
  if (has_real_labels_) {
    label_numbers_.add({&record.label.number, 1});
  } else {
    const std::uint32_t label = labels.add(record.label.value);
    if (label == label_of_word.size()) label_of_word.push_back(record.label.number);
    label_words_.add({&label, 1});
  }
  if (has_exposures_) exposures_.add({&record.features.exposure, 1});
  if (has_times_) times_.add(std::array{record.features.start, record.features.stop});
  test_.push_back(record.test);
}

void PackedTable::forget_number(std::uint32_t row, std::size_t column) {
  numbers_.at(row, column) = std::numeric_limits<double>::quiet_NaN();
}

void PackedTable::scale_numbers(std::span<const ColumnScale> scales) {
  scaled_ = ColumnBlocks<float>(
      std::exchange(numbers_, ColumnBlocks<double>(0)), [&](double value, std::size_t j) {
        return scales[j].allows(value) ? encoded(value, scales[j])
                                       : std::numeric_limits<float>::quiet_NaN();
      });
}

void PackedTable::read_row(std::uint32_t row, ScaledRow& out) const {
  out.numbers.resize(number_columns_);
  for (std::size_t j = 0; j < number_columns_; ++j) out.numbers[j] = scaled(row, j);
  out.categories.resize(category_columns_);
  for (std::size_t j = 0; j < category_columns_; ++j) out.categories[j] = &category(row, j);
}

PackedTable pack_table(RecordSource& records, const TableSpec& spec) {
  const DelimitedTable& heading = records.heading();
  const RecordParser parser(heading, spec);
  PackedTable out(spec);
  const HeaderFinder headers(heading);
  ClientFinder clients(parser, out.client_ids);
  SpellsOfPatients spells(spec);
  TableRecord record;
  const auto is_header = [&](bool usable) {
    if (!headers.is_header(records, usable)) return false;
    if (out.marks.repeated_headers++ == 0) out.marks.first_header = records.place();
    return true;
  };
  while (records.next()) {
    const bool is_record = parser.parse(records.fields(), record);
    if (is_header(is_record)) continue;
    const std::uint32_t client = clients.find(records.fields());
    if (const std::string refusal = parser.refusal(records.fields()); !refusal.empty()) {
      throw InputError(fmt::format("{}: {}: {}", heading.source, records.place(), refusal));
    }
    const bool is_good = client != kNobody && is_record;
    if (is_good && out.size() == std::numeric_limits<std::uint32_t>::max()) {
      throw InputError(fmt::format("{}: a table must have at most {} rows, but has more",
                                   heading.source, out.size()));
    }
    if (is_good) {
      out.add(client, record);
      out.marks.add(records);
      spells.add(client, record, records.number());
      continue;
    }
    ++out.skipped.count;
    const bool is_first = client != kNobody && out.skipped_of[client].count++ == 0;
    if (!is_first && !out.skipped.first.empty()) continue;
    std::string why = fmt::format("{}: {}", records.place(), parser.problem(records.fields()));
    if (out.skipped.first.empty()) out.skipped.first = why;
    if (is_first) out.skipped_of[client].first = std::move(why);
  }
  spells.check(records);
  if (heading.bad_records > 0) {
    out.skipped.count += heading.bad_records;
    out.skipped.first = fmt::format(
        "line {} has not the header's number of fields, or stray quotes", heading.first_bad_line);
  }
  if (out.skipped.count > out.size()) {
    throw InputError(fmt::format(
        "{}: expected records with client, label and numbers, but {} of {} "
        "lack one; {}",
        heading.source, out.skipped.count, out.skipped.count + out.size(), out.skipped.first));
  }
  return out;
}

}  // namespace fedep
