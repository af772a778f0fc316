#include "app/run/http_request.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace fedep {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find(kLineEnd);
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + kLineEnd.size());
  return line;
}

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Request Header Fields Too Large";
  }
}

}  // namespace

std::optional<HttpRequest> parse_request(std::string_view head) {
  const std::string_view first = take_line(head);
  const std::size_t before_path = first.find(' '), after_path = first.rfind(' ');
  if (before_path == first.npos || before_path == after_path) return std::nullopt;
  if (!first.substr(after_path + 1).starts_with("HTTP/1.")) return std::nullopt;
  const std::string_view target = first.substr(before_path + 1, after_path - before_path - 1);
  HttpRequest request{.method = std::string(first.substr(0, before_path)),
                      .path = std::string(target.substr(0, target.find('?'))),
                      .host = ""};
  std::size_t hosts = 0;
  while (!head.empty()) {
    const std::string_view line = take_line(head);
    const std::size_t colon = line.find(':');
    if (colon == line.npos) return std::nullopt;
    if (!same_letters(line.substr(0, colon), "host")) continue;
    request.host = ++hosts == 1 ? std::string(trimmed(line.substr(colon + 1))) : "";
  }
  return request;
}

std::string answer_head(int status, std::string_view type, std::size_t body_size) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n"
      "Connection: close\r\n\r\n",
      status, reason(status), type, body_size);
}

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace fedep
