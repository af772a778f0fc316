#include "fedep/data/append_batch.h"

namespace fedep {
namespace {

template <class T>
void cut(const std::vector<T>& from, std::size_t begin, std::size_t end, std::vector<T>& to) {
  if (from.empty()) return;
  to.assign(from.begin() + std::ptrdiff_t(begin), from.begin() + std::ptrdiff_t(end));
}

void cut_rows(const SparseRows& from, std::size_t begin, std::size_t end, SparseRows& to) {
  if (from.rows() < end) return;
  const std::uint32_t first = from.offsets[begin], last = from.offsets[end];
  to.offsets.clear();
  for (std::size_t i = begin; i <= end; ++i) to.offsets.push_back(from.offsets[i] - first);
  cut(from.columns, first, last, to.columns);
  cut(from.values, first, last, to.values);
}

template <class T>
void append_all(const std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

void append_rows(const SparseRows& from, SparseRows& to) {
  const std::uint32_t before = to.offsets.back();
  for (std::size_t i = 1; i < from.offsets.size(); ++i) {
    to.offsets.push_back(before + from.offsets[i]);
  }
  append_all(from.columns, to.columns);
  append_all(from.values, to.values);
}

}  // namespace

Batch rows_of(const Batch& batch, std::size_t begin, std::size_t end, std::size_t features) {
  Batch out;
  out.size = end - begin;
  cut(batch.dense, begin * features, end * features, out.dense);
  cut(batch.labels, begin, end, out.labels);
  cut(batch.reals, begin, end, out.reals);
  cut(batch.log_exposure, begin, end, out.log_exposure);
  cut_rows(batch.sparse, begin, end, out.sparse);
  cut_rows(batch.tags, begin, end, out.tags);
  return out;
}

void append(const Batch& from, Batch& to) {
  to.size += from.size;
  append_all(from.dense, to.dense);
  append_all(from.labels, to.labels);
  append_all(from.reals, to.reals);
  append_all(from.log_exposure, to.log_exposure);
  append_rows(from.sparse, to.sparse);
  append_rows(from.tags, to.tags);
}

}  // namespace fedep
