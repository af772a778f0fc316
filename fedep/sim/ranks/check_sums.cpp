#include "fedep/sim/ranks/check_sums.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

// How a library adds depends on how much there is: one number, some, and a piece of a round's sum.
constexpr std::size_t kLengths[] = {1, 10007, std::size_t(1) << 18};

template <class T>
std::string wrong_sum_of(Ranks& ranks, std::size_t length) {
  constexpr std::int64_t kStep = sizeof(T) == 8 ? std::int64_t(1) << 33 : 1;
  const auto size = std::int64_t(ranks.size());
  const auto common = [](std::size_t i) { return (std::int64_t(i % 1009) - 500) * kStep; };
  std::vector<T> numbers;
  for (std::size_t i = 0; i < length; ++i) numbers.push_back(T(common(i) + ranks.rank()));
  ranks.sum(std::span<T>(numbers));
  for (std::size_t i = 0; i < length; ++i) {
    const std::int64_t sum = size * common(i) + size * (size - 1) / 2;
    if (numbers[i] == sum) continue;
    return fmt::format("{}, but is {} (place {} of {}, {} bits)", sum, numbers[i], i + 1, length,
                       8 * sizeof(T));
  }
  return {};
}

std::string wrong_sum(Ranks& ranks) {
  std::string first;
  for (const std::size_t length : kLengths) {
    const std::string wide = wrong_sum_of<std::int64_t>(ranks, length);
    const std::string narrow = wrong_sum_of<std::int32_t>(ranks, length);
    if (first.empty()) first = wide.empty() ? narrow : wide;
  }
  if (first.empty()) return {};
  return fmt::format(
      "({}) the sum of integers over {} ranks must be {}: this MPI library cannot be relied on",
      ranks.host(), ranks.size(), first);
}

}  // namespace

void check_sums(Ranks& adding, Ranks& all) {
  const std::string own = wrong_sum(adding);
  const std::vector<Bytes> verdicts = all.gather(bytes_of(std::span<const char>(own)));
  for (std::size_t rank = 0; rank < verdicts.size(); ++rank) {
    const std::vector<char> wrong = values_of<char>(verdicts[rank]);
    if (wrong.empty()) continue;
    throw RunError(
        fmt::format("MPI: on rank {} {}", rank, std::string_view(wrong.data(), wrong.size())));
  }
}

}  // namespace fedep
