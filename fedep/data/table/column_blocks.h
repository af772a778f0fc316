// A table's columns in blocks of rows: no value moves as more rows come, and a column is read without
// its neighbours.
//
//   ColumnBlocks<double> numbers(3);
//   numbers.add(std::array{1.0, 2.0, 3.0});
//   numbers.at(0, 2);                                  // 3
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace fedep {

template <class T>
class ColumnBlocks {
 public:
  explicit ColumnBlocks(std::size_t columns)
      : columns_(columns),
        shift_(unsigned(std::bit_width(kValues / std::clamp<std::size_t>(columns, 1, kValues))) -
               1) {}

  // Of another's values: make(value, j) for each of column j. A block of the other is let go once its
  // values are here.
  template <class From, class Make>
  ColumnBlocks(ColumnBlocks<From> from, Make&& make) : ColumnBlocks(from.columns_) {
    for (auto& block : from.blocks_) {
      T* const into = add_block();
      const std::size_t rows = std::min(rows_in_block(), from.rows_ - rows_);
      for (std::size_t j = 0; j < columns_; ++j) {
        const From* const column = block.get() + j * stride();
        std::transform(column, column + rows, into + j * stride(),
                       [&](From value) { return make(value, j); });
      }
      rows_ += rows;
      block.reset();
    }
  }

  std::size_t size() const { return rows_; }

  // As many values as there are columns.
  void add(std::span<const T> row) {
    const std::size_t place = rows_ & (rows_in_block() - 1);
    T* to = (place == 0 ? add_block() : blocks_.back().get()) + place;
    for (const T value : row) {
      *to = value;
      to += stride();
    }
    ++rows_;
  }

  T& at(std::size_t row, std::size_t column) {
    return blocks_[row >> shift_][column * stride() + (row & (rows_in_block() - 1))];
  }
  const T& at(std::size_t row, std::size_t column) const {
    return blocks_[row >> shift_][column * stride() + (row & (rows_in_block() - 1))];
  }

 private:
  template <class>
  friend class ColumnBlocks;

  static constexpr std::size_t kValues = std::size_t(1) << 17;  // of a block, about

  std::size_t rows_in_block() const { return std::size_t(1) << shift_; }
  // From column to column: were it a power of two, all of a row would compete for one set of the cache.
  std::size_t stride() const { return rows_in_block() + (shift_ < 6 ? 0 : 8); }
  T* add_block() {
    blocks_.push_back(std::make_unique_for_overwrite<T[]>(columns_ * stride()));
    return blocks_.back().get();
  }

  std::size_t columns_;
  unsigned shift_;
  std::size_t rows_ = 0;
  std::vector<std::unique_ptr<T[]>> blocks_;
};

}  // namespace fedep
