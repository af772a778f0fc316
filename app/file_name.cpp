#include "app/file_name.h"

#include <fmt/format.h>

#include "app/printable.h"
#include "fedep/data/fingerprint.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

constexpr std::size_t kLongest = 100;

bool stays(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-.+=").find(c) != std::string_view::npos;
}

}  // namespace

std::string file_name_part(std::string_view name) {
  std::string out;
  for (const char c : name) {
    out += stays(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  if (out.size() <= kLongest) return out;
  const auto bytes = std::as_bytes(std::span(name));
  return fmt::format("{}~{:016x}", out.substr(0, kLongest - 17), fingerprint(bytes));
}

void check_file_name(std::string_view what, std::string_view name) {
  if (!name.empty() && name.front() != '.' && file_name_part(name) == name) return;
  throw InputError(fmt::format(
      "{} must be at most {} letters, digits and _ - . + = and begin with no dot, since "
      "a folder is named after it, but is \"{}\"",
      what, kLongest, printable(name.substr(0, kLongest))));
}

}  // namespace fedep
