#include "fedep/round/visit.h"

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

// "client a"; of a cohort "clients a, b, c and 17 more".
std::string text_of(std::span<const AskedClient> asked) {
  constexpr std::size_t kNamed = 3;
  std::string text = asked.size() == 1 ? "client" : "clients";
  for (std::size_t r = 0; r < asked.size() && r < kNamed; ++r) {
    text += (r == 0 ? " " : ", ") + asked[r].info->id;
  }
  if (asked.size() > kNamed) text += fmt::format(" and {} more", asked.size() - kNamed);
  return text;
}

}  // namespace

void rethrow_from_visit(std::int64_t round, std::span<const AskedClient> asked, const char* stage) {
  const auto with_place = [&](const std::exception& error) {
    return fmt::format("round {}, {}, {}: {}", round + 1, text_of(asked), stage, error.what());
  };
  try {
    throw;
  } catch (const InputError& error) {
    throw InputError(with_place(error));
  } catch (const std::exception& error) {
    throw RunError(with_place(error));
  }
}

}  // namespace fedep
