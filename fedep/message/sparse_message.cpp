#include "fedep/message/sparse_message.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/message/message_bytes.h"

namespace fedep {
namespace {

// Of the bits: -0 is a number to keep.
bool is_zero(float x) { return std::bit_cast<std::uint32_t>(x) == 0; }

std::size_t next_number(std::span<const float> numbers, std::size_t i) {
  constexpr std::size_t kBlock = 64;
  while (i + kBlock <= numbers.size()) {
    std::uint32_t bits = 0;  // no early end, so that the loop vectorises
    for (std::size_t j = 0; j < kBlock; ++j) bits |= std::bit_cast<std::uint32_t>(numbers[i + j]);
    if (bits != 0) break;
    i += kBlock;
  }
  while (i < numbers.size() && is_zero(numbers[i])) ++i;
  return i;
}

std::size_t next_zero(std::span<const float> numbers, std::size_t i) {
  while (i < numbers.size() && !is_zero(numbers[i])) ++i;
  return i;
}

// Where numbers stand in the whole array, with zeros between them that are too few to be left out.
std::vector<Range> runs_of(std::span<const float> numbers, std::span<const Range> where,
                           std::size_t size) {
  std::vector<Range> runs;
  std::size_t last = 0, read = 0;  // the end of the run before, and what was read of numbers
  const auto add = [&](std::size_t begin, std::size_t end) {
    const bool joins = begin - last < kZerosLeftOut;  // with the run before, or with the beginning
    if (joins && !runs.empty()) {
      runs.back().end = end;
    } else {
      runs.push_back({joins ? 0 : begin, end});
    }
    last = end;
  };
  for (const Range& range : where) {
    const auto own = numbers.subspan(read, range.end - range.begin);
    for (std::size_t i = next_number(own, 0); i < own.size();) {
      const std::size_t end = next_zero(own, i);
      add(range.begin + i, range.begin + end);
      i = next_number(own, end);
    }
    read += own.size();
  }
  if (size - last < kZerosLeftOut && size > 0) {
    if (runs.empty()) runs.push_back({0, size});
    runs.back().end = size;
  }
  return runs;
}

// Sections of an array of a message.
std::string part_name(std::string_view prefix, std::string_view array, std::string_view part) {
  return fmt::format("{}.{}.{}", prefix, array, part);
}

void append_array(std::vector<SectionView>& sections, std::string_view prefix,
                  std::string_view name, const SparseArray& array) {
  if (array.is_whole()) {
    sections.push_back({fmt::format("{}.{}", prefix, name), std::span(array.values)});
    return;
  }
  sections.push_back({part_name(prefix, name, "size"), std::span(&array.size, 1)});
  sections.push_back({part_name(prefix, name, "runs"), std::span(array.runs)});
  sections.push_back({part_name(prefix, name, "values"), std::span(array.values)});
}

void check_runs(const std::string& name, const SparseArray& array) {
  const auto refuse = [&](std::string_view what, std::int64_t found) {
    fail("sparse message", name, what, fmt::format("{}", found));
  };
  if (array.runs.size() % 2 != 0) refuse("pairs", std::int64_t(array.runs.size()));
  const auto least = std::int64_t(kZerosLeftOut);
  std::int64_t left = array.size, numbers = std::int64_t(array.values.size());
  if (left < 0) refuse("of a size that is not negative", left);
  for (std::size_t run = 0; run < array.runs.size(); run += 2) {
    const std::int64_t zeros = array.runs[run], count = array.runs[run + 1];
    const bool few = zeros < least && !(run == 0 && zeros == 0);
    if (few || zeros > left) refuse(fmt::format("zeros from {} to {}", least, left), zeros);
    left -= zeros;
    if (count < 1 || count > left || count > numbers) refuse("as many numbers as it has", count);
    left -= count;
    numbers -= count;
  }
  if (numbers != 0) refuse("runs for all of its numbers", numbers);
  if (left > 0 && left < least) refuse(fmt::format("none or {} zeros at its end", least), left);
  if (array.is_whole()) refuse("one array where nothing is left out", array.size);
}

SparseArray whole_array(std::vector<float> values) {
  SparseArray array{.size = std::int64_t(values.size()), .runs = {}, .values = std::move(values)};
  if (array.size > 0) array.runs = {0, array.size};
  return array;
}

SparseArray extract_array(Record& record, std::string_view prefix, std::string_view name) {
  const std::string whole = fmt::format("{}.{}", prefix, name);
  if (record.has(whole)) return whole_array(record.extract<float>(whole));
  const std::vector<std::int64_t> size =
      record.extract<std::int64_t>(part_name(prefix, name, "size"));
  check_same_size("sparse message", part_name(prefix, name, "size"), 1, size.size());
  SparseArray array{.size = size[0],
                    .runs = record.extract<std::int64_t>(part_name(prefix, name, "runs")),
                    .values = record.extract<float>(part_name(prefix, name, "values"))};
  check_runs(whole, array);
  return array;
}

std::size_t bytes_of(const SparseArray& array) {
  return array.runs.size() * sizeof(std::int64_t) + array.values.size() * sizeof(float);
}

}  // namespace

std::size_t SparseMessage::bytes() const { return bytes_of(eta) + bytes_of(lambda); }

SparseArray without_zeros(std::span<const float> numbers) {
  const Range all{0, numbers.size()};
  return without_zeros(numbers, std::span(&all, 1), numbers.size());
}

SparseArray without_zeros(std::span<const float> numbers, std::span<const Range> where,
                          std::size_t size) {
  SparseArray array{.size = std::int64_t(size), .runs = {}, .values = {}};
  const std::vector<Range> runs = runs_of(numbers, where, size);
  std::size_t count = 0, last = 0;
  for (const Range& run : runs) count += run.end - run.begin;
  array.values.reserve(count);
  const Range* range = where.data();  // the one that is read next
  std::size_t read = 0;               // of numbers, where it begins
  for (const Range& run : runs) {
    array.runs.push_back(std::int64_t(run.begin - last));
    array.runs.push_back(std::int64_t(run.end - run.begin));
    last = run.end;
    for (std::size_t at = run.begin; at < run.end;) {
      while (range != where.data() + where.size() && range->end <= at) {
        read += range->end - range->begin;
        ++range;
      }
      const bool within = range != where.data() + where.size() && range->begin < run.end;
      const std::size_t begin = within ? std::max(at, range->begin) : run.end;
      array.values.insert(array.values.end(), begin - at, 0.0f);
      const std::size_t end = within ? std::min(run.end, range->end) : run.end;
      if (within) {
        const auto part = numbers.subspan(read + (begin - range->begin), end - begin);
        array.values.insert(array.values.end(), part.begin(), part.end());
      }
      at = end;
    }
  }
  return array;
}

SparseMessage without_zeros(const Message& message) {
  return {.family = message.family(),
          .eta = without_zeros(message.eta().span()),
          .lambda = without_zeros(message.lambda_span())};
}

HostVector<float> expanded(const SparseArray& array) {
  if (array.is_whole()) return HostVector<float>(array.values);
  HostVector<float> out(std::size_t(array.size), 0.0f);
  for_each_run(array, [&](std::size_t begin, std::span<const float> numbers) {
    std::ranges::copy(numbers, out.span().begin() + std::ptrdiff_t(begin));
  });
  return out;
}

Message expanded(const SparseMessage& message) {
  HostVector<float> eta = expanded(message.eta), lambda = expanded(message.lambda);
  switch (message.family) {
    case Family::isotropic:
      return {std::move(eta), lambda[0]};
    case Family::diagonal:
      return {std::move(eta), std::move(lambda)};
    case Family::full:
      break;
  }
  return {std::move(eta), Packed<HostVector<float>>{std::move(lambda)}};
}

void append_sections(std::vector<SectionView>& sections, std::string_view prefix,
                     const SparseMessage& message) {
  append_family(sections, prefix, message.family);
  append_array(sections, prefix, "eta", message.eta);
  append_array(sections, prefix, "lambda", message.lambda);
}

SparseMessage extract_sparse_message(Record& record, std::string_view prefix) {
  SparseMessage message{.family = family_from(record, prefix),
                        .eta = extract_array(record, prefix, "eta"),
                        .lambda = extract_array(record, prefix, "lambda")};
  check_same_size("sparse message", fmt::format("{}.lambda", prefix),
                  lambda_size(message.family, message.size()), std::size_t(message.lambda.size));
  return message;
}

}  // namespace fedep
