#include "fedep/data/table/packed_table.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"

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

}  // namespace

PackedTable::PackedTable(const TableSpec& spec)
    : number_columns_(spec.numbers.size()),
      category_columns_(spec.categories.size()),
      has_groups_(!spec.group_column.empty()),
      has_real_labels_(spec.target == TargetKind::real || spec.target == TargetKind::count),
      has_exposures_(!spec.exposure_column.empty()),
      numbers_(spec.numbers.size()),
      scaled_(0),
      clients_(1),
      categories_(spec.categories.size()),
      groups_(1),
      label_words_(1),
      label_numbers_(1),
      exposures_(1) {}

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
      continue;
    }
    ++out.skipped.count;
    const bool is_first = client != kNobody && out.skipped_of[client].count++ == 0;
    if (!is_first && !out.skipped.first.empty()) continue;
    std::string why = fmt::format("{}: {}", records.place(), parser.problem(records.fields()));
    if (out.skipped.first.empty()) out.skipped.first = why;
    if (is_first) out.skipped_of[client].first = std::move(why);
  }
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
