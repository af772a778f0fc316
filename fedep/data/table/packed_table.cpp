#include "fedep/data/table/packed_table.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

// Whose row this is.
class ClientFinder {
 public:
  ClientFinder(const RecordParser& parser, std::vector<PackedClient>& clients)
      : parser_(parser), clients_(clients) {}

  // A client that is new comes to the others; kNobody if the row names none.
  std::size_t find(std::span<const std::string_view> fields) {
    const std::string_view cell = parser_.client_cell(fields);
    if (last_ != kNobody && clients_[last_].id == cell) return last_;  // as most rows are
    if (const auto found = places_.find(cell); found != places_.end()) return last_ = found->second;
    std::string id = parser_.client(fields);
    if (id.empty()) return kNobody;
    last_ = clients_.size();
    places_.emplace(id, last_);
    clients_.push_back({.id = std::move(id)});
    return last_;
  }

 private:
  const RecordParser& parser_;
  std::vector<PackedClient>& clients_;
  std::unordered_map<std::string, std::size_t, StringHash, std::equal_to<>> places_;
  std::size_t last_ = kNobody;
};

}  // namespace

std::uint32_t WordList::add(std::string_view word) {
  if (const auto found = numbers_.find(word); found != numbers_.end()) return found->second;
  const auto number = std::uint32_t(words_.size());
  words_.push_back(&numbers_.emplace(word, number).first->first);
  return number;
}

PackedTable::PackedTable(const TableSpec& spec)
    : number_count_(spec.numbers.size()),
      category_count_(spec.categories.size()),
      has_groups_(!spec.group_column.empty()),
      has_real_labels_(spec.target == TargetKind::real || spec.target == TargetKind::count),
      has_exposures_(!spec.exposure_column.empty()),
      numbers_(number_count_),
      words_(category_count_ + (has_groups_ ? 1 : 0)),
      label_numbers_(has_real_labels_ ? 1 : 0),
      exposures_(has_exposures_ ? 1 : 0),
      labels_(has_real_labels_ ? 0 : 1) {}

void PackedTable::add(std::size_t client, const TableRecord& record) {
  clients[client].rows.push_back(std::uint32_t(size()));
  std::copy(record.features.numbers.begin(), record.features.numbers.end(), numbers_.add());
  std::uint32_t* words = words_.add();
  for (const std::string& value : record.features.categories) *words++ = list_.add(value);
  if (has_groups_) *words = list_.add(record.group);
  if (has_real_labels_) {
    *label_numbers_.add() = record.label.number;
  } else {
    *labels_.add() = list_.add(record.label.value);
    label_of_word_.try_emplace(*labels_.row(size() - 1), record.label.number);
  }
  if (has_exposures_) *exposures_.add() = record.features.exposure;
  test_.push_back(record.test);
}

void PackedTable::read(std::uint32_t row, TableRecord& record) const {
  const double* const numbers = numbers_.row(row);
  record.features.numbers.assign(numbers, numbers + number_count_);
  const std::uint32_t* words = words_.row(row);
  record.features.categories.resize(category_count_);
  for (std::string& value : record.features.categories) value = list_[*words++];
  if (has_groups_) record.group = list_[*words];
  record.label = label(row);
  if (has_exposures_) record.features.exposure = *exposures_.row(row);
  record.test = test_[row];
}

Label PackedTable::label(std::uint32_t row) const {
  if (has_real_labels_) return {{}, *label_numbers_.row(row)};
  const std::uint32_t word = *labels_.row(row);
  return {list_[word], label_of_word_.at(word)};
}

PackedTable pack_table(RecordSource& records, const TableSpec& spec) {
  const DelimitedTable& heading = records.heading();
  const RecordParser parser(heading, spec);
  PackedTable out(spec);
  ClientFinder clients(parser, out.clients);
  TableRecord record;
  while (records.next()) {
    const std::size_t client = clients.find(records.fields());
    if (const std::string refusal = parser.refusal(records.fields()); !refusal.empty()) {
      throw InputError(fmt::format("{}: {}: {}", heading.source, records.place(), refusal));
    }
    const bool is_good = client != kNobody && parser.parse(records.fields(), record);
    if (is_good && out.size() == std::numeric_limits<std::uint32_t>::max()) {
      throw InputError(fmt::format("{}: a table must have at most {} rows, but has more",
                                   heading.source, out.size()));
    }
    if (is_good) {
      out.add(client, record);
      continue;
    }
    ++out.skipped;
    const bool is_first = client != kNobody && out.clients[client].skipped++ == 0;
    if (!is_first && !out.first_skipped.empty()) continue;
    std::string why = fmt::format("{}: {}", records.place(), parser.problem(records.fields()));
    if (out.first_skipped.empty()) out.first_skipped = why;
    if (is_first) out.clients[client].first_skipped = std::move(why);
  }
  if (heading.bad_records > 0) {
    out.skipped += heading.bad_records;
    out.first_skipped = fmt::format(
        "line {} has not the header's number of fields, or stray quotes", heading.first_bad_line);
  }
  if (out.skipped > out.size()) {
    throw InputError(
        fmt::format("{}: expected records with client, label and numbers, but {} of {} "
                    "lack one; {}",
                    heading.source, out.skipped, out.skipped + out.size(), out.first_skipped));
  }
  return out;
}

}  // namespace fedep
