#include "fedep/message/nesting.h"

#include <algorithm>
#include <vector>

namespace fedep {
namespace {

// Takes TOML apart as far as depth goes: strings and comments are passed over, dots and brackets
// counted.
class TomlDepth {
 public:
  explicit TomlDepth(std::string_view text) : text_(text) {}

  std::optional<std::size_t> deep_line() {
    while (at_ < text_.size()) {
      if (depth() > kMostNesting) return line_;
      step();
    }
    return depth() > kMostNesting ? std::optional(line_) : std::nullopt;
  }

 private:
  // Of the key or value at hand: the header's table, all that is open, the dots of this key.
  std::size_t depth() const { return header_ + open_sum_ + dots_; }

  void step() {
    const char c = text_[at_];
    switch (c) {
      case '"':
      case '\'':
        return skip_string(c);
      case '#':
        at_ = std::min(text_.find('\n', at_), text_.size());
        return;
      case '\n':
        if (in_header_) header_ = header_dots_ + 1;
        in_header_ = false;
        ++line_;
        at_line_start_ = true;
        dots_ = 0;
        ++at_;
        return;
      case '[':
        if (open_.empty() && at_line_start_) {
          in_header_ = true;
          header_ = header_dots_ = 0;
        }
        if (!in_header_) open();
        break;
      case '{':
        open();
        break;
      case ']':
      case '}':
        close();
        break;
      case '.':
        ++dots_;
        if (in_header_) header_dots_ = std::max(header_dots_, dots_);
        break;
      case ',':
        dots_ = 0;
        break;
      default:
        break;
    }
    if (c != ' ' && c != '\t' && c != '\r') at_line_start_ = false;
    ++at_;
  }

  // What is open keeps the dots of the key before it.
  void open() {
    open_.push_back(dots_ + 1);
    open_sum_ += dots_ + 1;
    dots_ = 0;
  }

  void close() {
    dots_ = 0;
    if (open_.empty()) return;
    open_sum_ -= open_.back();
    open_.pop_back();
  }

  void skip_string(char quote) {
    at_line_start_ = false;
    const std::string_view rest = text_.substr(at_);
    const char three[] = {quote, quote, quote};
    const std::string_view long_quote(three, 3);
    const bool is_long = rest.starts_with(long_quote);
    at_ += is_long ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      if (quote == '"' && text_[at_] == '\\') {
        ++at_;
        if (at_ < text_.size() && text_[at_] == '\n') ++line_;
      } else if (text_[at_] == '\n') {
        if (!is_long) return;  // no TOML any more
        ++line_;
      } else if (is_long ? text_.substr(at_).starts_with(long_quote) : text_[at_] == quote) {
        break;
      }
    }
    at_ = std::min(at_ + (is_long ? 3 : 1), text_.size());
    // One or two quotes may stand before the three that end a long string.
    for (int i = 0; is_long && i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  bool at_line_start_ = true;
  bool in_header_ = false;
  std::size_t header_ = 0;       // depth of the table that keys belong to
  std::size_t header_dots_ = 0;  // of the header that is being read
  std::size_t dots_ = 0;         // of the key at hand
  std::vector<std::size_t> open_;
  std::size_t open_sum_ = 0;
};

}  // namespace

std::string_view shallow_json(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\';
    } else if (c == '[' || c == '{') {
      if (++depth > kMostNesting) return {};
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return text;
}

std::optional<std::size_t> deep_toml_line(std::string_view text) {
  return TomlDepth(text).deep_line();
}

}  // namespace fedep
