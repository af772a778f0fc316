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

std::string slot_name(std::size_t i) { return fmt::format("slot{}", i); }

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
  return state;
}

}  // namespace fedep
