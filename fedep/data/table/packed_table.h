// The good records of a table, packed: numbers as numbers, column by column, and words once each. A
// table of a million rows takes little more than its numbers do.
//
//   PackedTable packed = pack_table(*records, spec);
//   packed.number(row, 3);
//   packed.scale_numbers(scales);     // once it is known how: they take half as much from then on
//   packed.scaled(row, 3);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fedep/data/table/column_blocks.h"
#include "fedep/data/table/delimited.h"
#include "fedep/data/table/row_encoder.h"
#include "fedep/data/table/row_marks.h"
#include "fedep/data/table/table_record.h"
#include "fedep/data/table/table_scale.h"
#include "fedep/data/table/table_spec.h"
#include "fedep/data/table/word_list.h"

namespace fedep {

// Bad records.
struct SkippedRecords {
  std::size_t count = 0;
  std::string first = {};  // its place, and why
};

class PackedTable {
 public:
  explicit PackedTable(const TableSpec& spec);

  void add(std::uint32_t client, const TableRecord& record);
  std::size_t size() const { return clients_.size(); }

  std::uint32_t client(std::uint32_t row) const { return clients_.at(row, 0); }
  // NaN: missing.
  double number(std::uint32_t row, std::size_t column) const { return numbers_.at(row, column); }
  void forget_number(std::uint32_t row, std::size_t column);
  // Empty: missing.
  const std::string& category(std::uint32_t row, std::size_t column) const {
    return words_[categories_.at(row, column)];
  }
  const std::string& group(std::uint32_t row) const { return words_[groups_.at(row, 0)]; }
  double exposure(std::uint32_t row) const { return exposures_.at(row, 0); }
  // Time to event.
  double start(std::uint32_t row) const { return times_.at(row, 0); }
  double stop(std::uint32_t row) const { return times_.at(row, 1); }
  bool has_event(std::uint32_t row) const { return label_of_word[label(row)] == 1; }
  bool is_test(std::uint32_t row) const { return test_[row]; }
  // Whether labels are numbers (real ones and counts), else words.
  bool has_label_numbers() const { return has_real_labels_; }
  double label_number(std::uint32_t row) const { return label_numbers_.at(row, 0); }
  // Of the others: the number of their word in `labels`.
  std::uint32_t label(std::uint32_t row) const { return label_words_.at(row, 0); }

  // By column. Afterwards there are scaled numbers instead of numbers, NaN where one is missing.
  void scale_numbers(std::span<const ColumnScale> scales);
  float scaled(std::uint32_t row, std::size_t column) const { return scaled_.at(row, column); }
  // All of a row whose numbers are scaled. It looks into this table.
  void read_row(std::uint32_t row, ScaledRow& out) const;

  WordList client_ids;                // in order of first appearance; some may have no row
  WordList labels;                    // of yes-or-no labels and classes
  std::vector<double> label_of_word;  // as Label::number, by word of `labels`
  SkippedRecords skipped;             // of all
  std::unordered_map<std::uint32_t, SkippedRecords> skipped_of;  // by client
  RowMarks marks;                                                // of the rows here

 private:
  std::size_t number_columns_, category_columns_;
  bool has_groups_, has_real_labels_, has_exposures_, has_times_;
  ColumnBlocks<double> numbers_;
  ColumnBlocks<float> scaled_;
  ColumnBlocks<std::uint32_t> clients_, categories_, groups_, label_words_;  // words by number
  ColumnBlocks<double> label_numbers_, exposures_, times_;
  std::vector<bool> test_;
  WordList words_;  // of categories and groups
  std::vector<std::uint32_t> row_words_;
};

// Throws InputError if a column is not there, if more records are bad than good, for a record that no table may
// have (RecordParser::refusal), and where two spells of one patient overlap.
PackedTable pack_table(RecordSource& records, const TableSpec& spec);

}  // namespace fedep
