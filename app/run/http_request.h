// The head of a request to the server of `--watch`, as far as it matters there.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fedep {

inline constexpr std::size_t kLongestHead = 8192;  // bytes

struct HttpRequest {
  std::string method;
  std::string path;  // without what follows a '?'
  std::string host;  // empty: not said, or said twice
};

// Nothing for what is no head of HTTP/1.x. `head` ends before the empty line.
std::optional<HttpRequest> parse_request(std::string_view head);

// A whole answer but its body; the connection is closed after it.
std::string answer_head(int status, std::string_view type, std::size_t body_size);

// Takes as long for the wrong text as for the right one, so that time tells nothing of it.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace fedep
