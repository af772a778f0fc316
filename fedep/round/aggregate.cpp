#include "fedep/round/aggregate.h"

#include <algorithm>

#include "fedep/message/check.h"
#include "fedep/message/reach.h"

namespace fedep {
namespace {

bool all_within(const std::vector<std::int64_t>& units, std::int64_t limit) {
  // A sum of two legal numbers must not reach the sign.
  if (limit >= std::int64_t(1) << 62) {
    return std::all_of(units.begin(), units.end(),
                       [=](std::int64_t unit) { return unit <= limit && unit >= -limit; });
  }
  // A unit beyond either limit makes one of two sums negative; where one wraps round, the other one
  // does not. No comparison of 64 bits, so the loop vectorises everywhere.
  std::uint64_t signs = 0;
  const std::uint64_t most = std::uint64_t(limit);
  for (const std::int64_t unit : units) {
    signs |= (most + std::uint64_t(unit)) | (most - std::uint64_t(unit));
  }
  return signs >> 63 == 0;
}

void add_to(std::span<std::int64_t> sum, std::span<const std::int64_t> units) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += units[i];
}

// Units of coordinates in these ranges.
void add_to(std::vector<std::int64_t>& sum, const std::vector<std::int64_t>& units,
            const std::vector<Range>& where) {
  std::size_t read = 0;
  for (const Range& range : where) {
    const std::size_t size = range.end - range.begin;
    add_to(std::span(sum).subspan(range.begin, size), std::span(units).subspan(read, size));
    read += size;
  }
}

}  // namespace

Aggregate::Aggregate(const Grid& grid, std::size_t size, Family family) : grid_(grid) {
  sum_.family = family;
  sum_.eta.assign(size, 0);
  sum_.lambda.assign(lambda_size(family, size), 0);
}

void Aggregate::check_shape(const GridDelta& delta) const {
  if (delta.family != sum_.family) fail("Aggregate", "delta", "of the round's family", "not");
  std::size_t size = sum_.eta.size();
  if (!delta.where.empty()) {
    if (delta.family == Family::full) fail("Aggregate", "delta of a matrix", "whole", "a part");
    size = Reach(delta.where, size).size();
  }
  check_same_size("Aggregate", "delta's eta", size, delta.eta.size());
  check_same_size("Aggregate", "delta's lambda", lambda_size(delta.family, size),
                  delta.lambda.size());
}

void Aggregate::add(const GridDelta& delta) {
  check_shape(delta);
  if (!all_within(delta.eta, grid_.limit) || !all_within(delta.lambda, grid_.limit)) {
    fail("Aggregate", "delta", fmt::format("within {} units", grid_.limit), "beyond");
  }
  const std::vector<Range> all{{0, sum_.eta.size()}}, all_of_lambda{{0, sum_.lambda.size()}};
  const bool part = !delta.where.empty();
  add_to(sum_.eta, delta.eta, part ? delta.where : all);
  const bool one = delta.family == Family::isotropic;
  add_to(sum_.lambda, delta.lambda, part && !one ? delta.where : all_of_lambda);
  ++deltas_;
}

void Aggregate::merge(const Aggregate& other) {
  check_shape(other.sum_);
  if (!(other.grid_ == grid_)) fail("Aggregate", "other sum", "on the same grid", "not");
  add_to(sum_.eta, other.sum_.eta);
  add_to(sum_.lambda, other.sum_.lambda);
  deltas_ += other.deltas_;
}

}  // namespace fedep
