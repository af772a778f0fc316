#include "fedep/store/site_record.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/message/sparse_message.h"

namespace fedep {
namespace {

constexpr const char* kNumbers = "client_round_steps_slots";
constexpr const char* kShareRounds = "share_rounds";  // both only where there are some
constexpr const char* kShares = "shares";

std::string slot_name(std::size_t i) { return fmt::format("slot{}", i); }

// Rounds ascend, so that there is one way to write them, and end with the state's own.
std::vector<MeanShare> read_shares(const Record& record, std::int64_t last) {
  std::vector<MeanShare> out;
  if (!record.has(kShareRounds) && !record.has(kShares)) return out;
  const std::vector<std::int64_t>& rounds = record.get<std::int64_t>(kShareRounds);
  const std::vector<double>& shares = record.get<double>(kShares);
  check_same_size("site state", kShares, rounds.size(), shares.size());
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const std::int64_t least = i == 0 ? kUnvisited : rounds[i - 1] + 1;
    if (rounds[i] < least || rounds[i] > last) {
      throw InputError(
          fmt::format("state must have shares of rounds from {} to {}, but has one of {}", least,
                      last, rounds[i]));
    }
    if (shares[i] == 0) {
      throw InputError(
          fmt::format("state must have shares that are not 0, but has one of round {}", rounds[i]));
    }
    out.push_back({rounds[i], shares[i]});
  }
  return out;
}

}  // namespace

void write_site(std::uint64_t client, std::int64_t round, const StoredSite& state,
                const ByteSink& sink) {
  std::vector<SectionView> sections;
  const std::vector<std::int64_t> numbers{std::int64_t(client), round, state.steps,
                                          std::int64_t(state.slots.size())};
  sections.push_back({kNumbers, std::span<const std::int64_t>(numbers)});
  append_sections(sections, "factor", state.factor);
  for (std::size_t i = 0; i < state.slots.size(); ++i) {
    append_sections(sections, slot_name(i), state.slots[i]);
  }
  std::vector<std::int64_t> share_rounds;
  std::vector<double> shares;
  for (const MeanShare& share : state.shares) {
    share_rounds.push_back(share.round);
    shares.push_back(share.share);
  }
  if (!shares.empty()) {
    sections.push_back({kShareRounds, std::span<const std::int64_t>(share_rounds)});
    sections.push_back({kShares, std::span<const double>(shares)});
  }
  write_record(sections, sink);
}

StoredSite read_site(std::uint64_t client, std::int64_t round, Record record) {
  const std::vector<std::int64_t> numbers = record.get<std::int64_t>(kNumbers);
  if (numbers.size() != 4 || numbers[0] != std::int64_t(client) || numbers[1] != round) {
    throw InputError(
        fmt::format("state must be client {:016x}'s of round {}, but is not", client, round));
  }
  StoredSite state;
  state.factor = extract_sparse_message(record, "factor");
  state.steps = numbers[2];
  for (std::int64_t i = 0; i < numbers[3]; ++i) {
    const std::string name = slot_name(std::size_t(i));
    state.slots.push_back(extract_sparse_message(record, name));
    check_same_size("site state", name, state.factor.size(), state.slots.back().size());
  }
  state.shares = read_shares(record, round);
  return state;
}

}  // namespace fedep
