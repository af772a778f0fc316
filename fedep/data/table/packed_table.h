// The good records of a table, packed: numbers as numbers, words once each. A table of a million
// rows takes little more than its numbers do.
//
//   const PackedTable packed = pack_table(*records, spec);
//   for (const PackedClient& client : packed.clients)
//     for (const std::uint32_t row : client.rows) packed.read(row, record);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fedep/data/table/delimited.h"
#include "fedep/data/table/table_record.h"
#include "fedep/data/table/table_spec.h"

namespace fedep {

struct StringHash : std::hash<std::string_view> {
  using is_transparent = void;  // a view finds a string
};

// Words by number, each kept once.
class WordList {
 public:
  std::uint32_t add(std::string_view word);
  const std::string& operator[](std::uint32_t number) const { return *words_[number]; }
  std::size_t size() const { return words_.size(); }

 private:
  std::unordered_map<std::string, std::uint32_t, StringHash, std::equal_to<>> numbers_;
  std::vector<const std::string*> words_;
};

// Rows of the same width in blocks, so that no row moves as more come.
template <class T>
class RowBlocks {
 public:
  explicit RowBlocks(std::size_t width)
      : width_(width),
        rows_in_block_(std::max<std::size_t>(1, kBlock / std::max<std::size_t>(1, width))) {}

  T* add() {
    if (rows_ == blocks_.size() * rows_in_block_) {
      blocks_.push_back(std::make_unique_for_overwrite<T[]>(rows_in_block_ * width_));
    }
    return row(rows_++);
  }
  T* row(std::size_t i) const {
    return blocks_[i / rows_in_block_].get() + i % rows_in_block_ * width_;
  }
  std::size_t size() const { return rows_; }

 private:
  static constexpr std::size_t kBlock = std::size_t(1) << 17;  // values

  std::size_t width_;
  std::size_t rows_in_block_;
  std::size_t rows_ = 0;
  std::vector<std::unique_ptr<T[]>> blocks_;
};

// What a client has, by rows of the table it is packed in.
struct PackedClient {
  std::string id;
  std::vector<std::uint32_t> rows = {};  // in the file's order
  std::size_t skipped = 0;               // bad records of this client
  std::string first_skipped = {};        // the first one's place, and why
};

class PackedTable {
 public:
  explicit PackedTable(const TableSpec& spec);

  void add(std::size_t client, const TableRecord& record);
  // Into a record that is there already, whose memory is used again.
  void read(std::uint32_t row, TableRecord& record) const;
  Label label(std::uint32_t row) const;
  std::size_t size() const { return numbers_.size(); }

  std::vector<PackedClient> clients;  // in order of first appearance; some may have no row
  std::size_t skipped = 0;
  std::string first_skipped;  // its place, and why

 private:
  std::size_t number_count_, category_count_;
  bool has_groups_, has_real_labels_, has_exposures_;
  RowBlocks<double> numbers_;
  RowBlocks<std::uint32_t> words_;   // of each row: categories, then the group if there are groups
  RowBlocks<double> label_numbers_;  // real labels and counts; of others the word says it
  RowBlocks<double> exposures_;
  RowBlocks<std::uint32_t> labels_;  // words
  std::vector<bool> test_;
  WordList list_;
  std::unordered_map<std::uint32_t, double> label_of_word_;
};

// Throws InputError if a column is not there, or if more records are bad than good.
PackedTable pack_table(RecordSource& records, const TableSpec& spec);

}  // namespace fedep
