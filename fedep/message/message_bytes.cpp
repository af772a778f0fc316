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
constexpr std::array<std::uint8_t, 1> kIsotropic = {0};
constexpr std::array<std::uint8_t, 1> kDiagonal = {1};

std::string section_name(std::string_view prefix, std::string_view part) {
  return fmt::format("{}.{}", prefix, part);
}

Family family_of(const Record& record, std::string_view prefix) {
  const std::string name = section_name(prefix, "family");
  const std::vector<std::uint8_t>& code = record.get<std::uint8_t>(name);
  check_same_size("message_from", name, 1, code.size());
  if (code[0] == kIsotropic[0]) return Family::isotropic;
  if (code[0] == kDiagonal[0]) return Family::diagonal;
  fail("message_from", name, "0 (isotropic) or 1 (diagonal)", fmt::format("{}", code[0]));
}

template <class Get>
Message assemble(const Record& record, std::string_view prefix, Get get) {
  const Family family = family_of(record, prefix);
  const std::string eta_name = section_name(prefix, "eta");
  const std::string lambda_name = section_name(prefix, "lambda");
  const std::size_t size = record.get<float>(eta_name).size();
  const std::vector<float>& lambda = record.get<float>(lambda_name);
  check_same_size("message_from", lambda_name, family == Family::isotropic ? 1 : size,
                  lambda.size());
  if (family == Family::isotropic) {
    const float scalar = lambda[0];
    return {HostVector<float>(get(eta_name)), scalar};
  }
  HostVector<float> eta(get(eta_name));
  return {std::move(eta), HostVector<float>(get(lambda_name))};
}

}  // namespace

void append_sections(std::vector<SectionView>& sections, std::string_view prefix,
                     const Message& message) {
  const bool isotropic = message.isotropic();
  const std::span<const std::uint8_t> family = isotropic ? kIsotropic : kDiagonal;
  // A const message gives its one precision by value; the section has to look at where it lives.
  const std::span<const float> lambda =
      isotropic ? std::span<const float>(&const_cast<Message&>(message).lambda_scalar(), 1)
                : message.lambda_vector().span();
  sections.push_back({section_name(prefix, "family"), family});
  sections.push_back({section_name(prefix, "eta"), message.eta().span()});
  sections.push_back({section_name(prefix, "lambda"), lambda});
}

Message message_from(const Record& record, std::string_view prefix) {
  return assemble(record, prefix, [&](const std::string& name) { return record.get<float>(name); });
}

Message extract_message(Record& record, std::string_view prefix) {
  return assemble(record, prefix,
                  [&](const std::string& name) { return record.extract<float>(name); });
}

}  // namespace fedep
