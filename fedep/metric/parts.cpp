#include "fedep/metric/parts.h"

#include <cstring>

#include "fedep/message/error.h"

namespace fedep {
namespace {

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto part = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), part.begin(), part.end());
}

}  // namespace

void PartsWriter::count(std::int64_t& number) { append(bytes_, number); }

void PartsWriter::sum(ExactSum& sum) {
  const std::vector<double> terms = sum.terms();
  append(bytes_, std::int64_t(terms.size()));
  for (const double term : terms) append(bytes_, term);
}

void PartsWriter::scored(std::vector<std::pair<double, std::int32_t>>& list) {
  append(bytes_, std::int64_t(list.size()));
  for (const auto& [score, label] : list) {
    append(bytes_, score);
    append(bytes_, label);
  }
}

template <class T>
T PartsAdder::next() {
  if (left_.size() < sizeof(T)) {
    throw RunError("scores of another process must have all their parts, but end before");
  }
  T value;
  std::memcpy(&value, left_.data(), sizeof(T));
  left_ = left_.subspan(sizeof(T));
  return value;
}

void PartsAdder::count(std::int64_t& number) { number += next<std::int64_t>(); }

void PartsAdder::sum(ExactSum& sum) {
  for (auto terms = next<std::int64_t>(); terms > 0; --terms) sum.add(next<double>());
}

void PartsAdder::scored(std::vector<std::pair<double, std::int32_t>>& list) {
  for (auto more = next<std::int64_t>(); more > 0; --more) {
    const double score = next<double>();
    list.emplace_back(score, next<std::int32_t>());
  }
}

}  // namespace fedep
