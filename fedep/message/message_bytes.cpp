#include "fedep/message/message_bytes.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/check.h"

namespace fedep {
namespace {

// What a family is called in bytes; sections look at these.
constexpr std::array<std::uint8_t, 3> kCodes = {0, 1, 2};

std::span<const std::uint8_t> code_of(Family family) {
  return std::span(kCodes).subspan(std::size_t(family), 1);
}

std::string section_name(std::string_view prefix, std::string_view part) {
  return fmt::format("{}.{}", prefix, part);
}

template <class Get>
Message assemble(const Record& record, std::string_view prefix, Get get) {
  const Family family = family_from(record, prefix);
  const std::string eta_name = section_name(prefix, "eta");
  const std::string lambda_name = section_name(prefix, "lambda");
  const std::size_t size = record.get<float>(eta_name).size();
  const std::vector<float>& lambda = record.get<float>(lambda_name);
  check_same_size("message_from", lambda_name, lambda_size(family, size), lambda.size());
  if (family == Family::isotropic) {
    const float scalar = lambda[0];
    return {HostVector<float>(get(eta_name)), scalar};
  }
  HostVector<float> eta(get(eta_name)), elements(get(lambda_name));
  if (family == Family::full)
    return {std::move(eta), Packed<HostVector<float>>{std::move(elements)}};
  return {std::move(eta), std::move(elements)};
}

}  // namespace

void append_family(std::vector<SectionView>& sections, std::string_view prefix, Family family) {
  sections.push_back({section_name(prefix, "family"), code_of(family)});
}

Family family_from(const Record& record, std::string_view prefix) {
  const std::string name = section_name(prefix, "family");
  const std::vector<std::uint8_t>& code = record.get<std::uint8_t>(name);
  check_same_size("message_from", name, 1, code.size());
  for (const Family family : {Family::isotropic, Family::diagonal, Family::full}) {
    if (code[0] == code_of(family)[0]) return family;
  }
  fail("message_from", name, "0 (isotropic), 1 (diagonal) or 2 (full)", fmt::format("{}", code[0]));
}

void append_sections(std::vector<SectionView>& sections, std::string_view prefix,
                     const Message& message) {
  append_family(sections, prefix, message.family());
  sections.push_back({section_name(prefix, "eta"), message.eta().span()});
  sections.push_back({section_name(prefix, "lambda"), message.lambda_span()});
}

Message message_from(const Record& record, std::string_view prefix) {
  return assemble(record, prefix, [&](const std::string& name) { return record.get<float>(name); });
}

Message extract_message(Record& record, std::string_view prefix) {
  return assemble(record, prefix,
                  [&](const std::string& name) { return record.extract<float>(name); });
}

}  // namespace fedep
