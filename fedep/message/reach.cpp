#include "fedep/message/reach.h"

#include <bit>
#include <cstdint>

#include "fedep/message/check.h"

namespace fedep {
namespace {

// Calls both(begin, end) for what two ascending ranges have in common, in the order of either.
template <class Both>
void overlap(const std::vector<Range>& ranges, std::size_t& first, const Range& with,
             const Both& both) {
  while (first < ranges.size() && ranges[first].end <= with.begin) ++first;
  for (std::size_t i = first; i < ranges.size() && ranges[i].begin < with.end; ++i) {
    both(i, Range{std::max(ranges[i].begin, with.begin), std::min(ranges[i].end, with.end)});
  }
}

std::size_t numbers_of(std::span<const float> values) {
  return std::size_t(
      std::ranges::count_if(values, [](float x) { return std::bit_cast<std::uint32_t>(x) != 0; }));
}

}  // namespace

Reach::Reach(std::vector<Range> ranges, std::size_t whole_size)
    : ranges_(std::move(ranges)), whole_size_(whole_size) {
  std::size_t last = 0, count = 0;
  for (const Range& range : ranges_) {
    if (range.begin < last || range.end <= range.begin || range.end > whole_size) {
      fail("Reach", "ranges", fmt::format("ascending within [0, {})", whole_size),
           fmt::format("[{}, {})", range.begin, range.end));
    }
    begins_.push_back(count);
    count += length(range);
    last = range.end;
  }
}

std::size_t Reach::place(std::size_t i) const {
  const auto after = std::ranges::upper_bound(begins_, i);
  const auto range = std::size_t(after - begins_.begin()) - 1;
  return ranges_[range].begin + (i - begins_[range]);
}

HostVector<float> Reach::gather(const HostVector<float>& whole) const {
  check_same_size("Reach", "vector", whole_size_, whole.size());
  HostVector<float> out(size());
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    std::ranges::copy(whole.span().subspan(ranges_[i].begin, length(ranges_[i])),
                      out.span().begin() + std::ptrdiff_t(begins_[i]));
  }
  return out;
}

Message Reach::gather(const Message& whole) const {
  if (whole.full()) fail("Reach", "message", "isotropic or diagonal", "full");
  if (whole.isotropic()) return {gather(whole.eta()), whole.lambda_scalar()};
  return {gather(whole.eta()), gather(whole.lambda_vector())};
}

HostVector<float> Reach::gather(const SparseArray& whole) const {
  HostVector<float> out(size());
  std::size_t first = 0;
  for_each_run(whole, [&](std::size_t begin, std::span<const float> numbers) {
    overlap(ranges_, first, {begin, begin + numbers.size()}, [&](std::size_t i, const Range& both) {
      std::ranges::copy(
          numbers.subspan(both.begin - begin, length(both)),
          out.span().begin() + std::ptrdiff_t(begins_[i] + (both.begin - ranges_[i].begin)));
    });
  });
  return out;
}

Message Reach::gather(const SparseMessage& whole) const {
  check_same_size("Reach", "sparse message", whole_size_, whole.size());
  if (whole.family == Family::full) fail("Reach", "message", "isotropic or diagonal", "full");
  if (whole.family == Family::isotropic) return {gather(whole.eta), expanded(whole.lambda)[0]};
  return {gather(whole.eta), gather(whole.lambda)};
}

bool Reach::has_all_of(const SparseMessage& whole) const {
  if (whole.size() != whole_size_ || whole.family == Family::full) return false;
  const auto within = [&](const SparseArray& array) {
    return array.size == 1 || numbers_of(gather(array).span()) == numbers_of(array.values);
  };
  return within(whole.eta) && within(whole.lambda);
}

SparseMessage Reach::scatter(const Message& part) const {
  check_same_size("Reach", "message", size(), part.size());
  if (part.full()) fail("Reach", "message", "isotropic or diagonal", "full");
  return {.family = part.family(),
          .eta = without_zeros(part.eta().span(), ranges_, whole_size_),
          .lambda = part.isotropic() ? without_zeros(part.lambda_span())
                                     : without_zeros(part.lambda_span(), ranges_, whole_size_)};
}

}  // namespace fedep
