#include "fedep/store/safetensors/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fedep::safetensors {
namespace {

std::string hex(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

// Takes the header apart while it is parsed, and refuses whatever the format does not know. No tree
// is built: a header made of a million brackets costs nothing.
class HeaderParser : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderParser(std::string_view file, Header& header) : file_(file), header_(header) {}

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    unexpected(fmt::format("number {}", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    unexpected("number " + shown(text));
  }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape && value <= number_unsigned_t(INT64_MAX)) {
      entry().shape->push_back(std::int64_t(value));
    } else if (place_ == Place::offsets && entry().offsets->size() < 2) {
      entry().offsets->push_back(value);
    } else {
      unexpected(fmt::format("number {}", value));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      header_.metadata[key_] = std::move(value);
    } else if (place_ == Place::tensor && key_ == "dtype") {
      const auto* found = std::find(kTypeNames.begin(), kTypeNames.end(), value);
      if (found == kTypeNames.end()) {
        refuse(file_, "dtype of tensor {} must be one of {}, but is {}", shown(entry().name),
               fmt::join(kTypeNames, ", "), shown(value));
      }
      entry().type = std::size_t(found - kTypeNames.begin());
    } else {
      unexpected("text " + shown(value));
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::start) {
      place_ = Place::top;
    } else if (place_ == Place::top) {
      const bool metadata = key_ == kMetadataKey;
      place_ = metadata ? Place::metadata : Place::tensor;
      if (!metadata) header_.entries.push_back({key_, {}, {}, {}});
      inner_keys_.clear();
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& key) override {
    key_ = std::move(key);
    if (!(place_ == Place::top ? top_keys_ : inner_keys_).insert(key_).second) {
      refuse(file_, "keys of its header must differ, but {} comes twice", shown(key_));
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      const Entry& done = entry();
      if (!done.type || !done.shape || !done.offsets || done.offsets->size() != 2) {
        refuse(file_, "tensor {} must have dtype, shape and two data_offsets, but has not",
               shown(done.name));
      }
    }
    place_ = place_ == Place::top ? Place::end : Place::top;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::tensor && key_ == "shape") {
      entry().shape.emplace();
      place_ = Place::shape;
    } else if (place_ == Place::tensor && key_ == "data_offsets") {
      entry().offsets.emplace();
      place_ = Place::offsets;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    refuse(file_, "header must be JSON, but is not at byte {}", 8 + position);
  }

 private:
  enum class Place { start, top, metadata, tensor, shape, offsets, end };

  Entry& entry() { return header_.entries.back(); }

  [[noreturn]] void unexpected(const std::string& what) const {
    if (place_ == Place::start) refuse(file_, "header must be an object, but is {}", what);
    if (place_ == Place::top) {
      refuse(file_, "{} in its header must be an object, but is {}", shown(key_), what);
    }
    const std::string_view owner =
        place_ == Place::metadata ? kMetadataKey : std::string_view(header_.entries.back().name);
    refuse(file_, "header must be as safetensors has it, but {} of {} has {}", shown(key_),
           shown(owner), what);
  }

  std::string_view file_;
  Header& header_;
  Place place_ = Place::start;
  std::string key_;
  std::set<std::string> top_keys_;
  std::set<std::string> inner_keys_;
};

// Checksums come all or not at all, so that damage to the name of one does not make it unseen.
void check_metadata(std::string_view file, const Header& header) {
  std::set<std::string> expected = {checksum_key(kMetadataKey)};
  for (const Entry& entry : header.entries) expected.insert(checksum_key(entry.name));
  bool any = false;
  for (const auto& [key, value] : header.metadata) {
    if (!key.starts_with(kChecksumPrefix)) continue;
    any = true;
    if (!expected.contains(key)) {
      refuse(file, "checksum {} must be that of a tensor, but there is no such tensor", shown(key));
    }
  }
  if (!any) return;
  for (const std::string& key : expected) {
    if (!header.metadata.contains(key)) {
      refuse(file, "checksum {} must be present as others are, but is not", shown(key));
    }
  }
  const std::string& written = header.metadata.at(checksum_key(kMetadataKey));
  if (const std::string computed = header_checksum(header); written != computed) {
    refuse(file, "header must have checksum {}, but has {}", shown(written), computed);
  }
}

}  // namespace

Header parse_header(std::string_view file, const std::string& text) {
  if (!text.starts_with('{')) refuse(file, "header must start with {{, but does not");

  // The parser would take a zero byte for the end, and not look at what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    refuse(file, "header must be JSON, but is not at byte {}", 8 + zero);
  }

  Header header;
  HeaderParser parser(file, header);
  nlohmann::json::sax_parse(text, &parser);
  check_metadata(file, header);
  return header;
}

std::vector<std::size_t> checked_layout(std::string_view file, const Header& header,
                                        std::uint64_t data_size) {
  const std::vector<Entry>& entries = header.entries;
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return *entries[a].offsets < *entries[b].offsets;
  });
  std::uint64_t expected = 0;
  for (const std::size_t i : order) {
    const std::string name = shown(entries[i].name);
    const std::uint64_t begin = (*entries[i].offsets)[0];
    const std::uint64_t end = (*entries[i].offsets)[1];
    if (begin != expected) {
      refuse(file, "data of tensor {} must begin at {}, but begin at {}", name, expected, begin);
    }
    if (end < begin || end > data_size) {
      refuse(file, "data of tensor {} must end in [{}, {}], but end at {}", name, begin, data_size,
             end);
    }
    const auto count = element_count(*entries[i].shape);
    const std::size_t size = kTypeSizes[*entries[i].type];
    if (!count || *count * size != end - begin) {
      refuse(file, "tensor {} must have {} bytes by its shape, but has {}", name,
             count ? fmt::format("{}", *count * size) : "too many", end - begin);
    }
    expected = end;
  }
  if (expected != data_size) {
    refuse(file, "tensors must cover all {} bytes of data, but cover {}", data_size, expected);
  }
  return order;
}

std::string header_text(std::string_view file, const Header& header) {
  nlohmann::ordered_json json;
  json[std::string(kMetadataKey)] = header.metadata;
  for (const Entry& entry : header.entries) {
    json[entry.name] = {{"dtype", kTypeNames[*entry.type]},
                        {"shape", *entry.shape},
                        {"data_offsets", *entry.offsets}};
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::exception&) {
    refuse(file, "names and metadata must be UTF-8, but are not");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxHeader) {
    refuse(file, "header must have at most {} bytes, but has {}", kMaxHeader, text.size());
  }
  return text;
}

std::string header_checksum(const Header& header) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : header.metadata) {
    if (key == checksum_key(kMetadataKey)) continue;
    lines.push_back(fmt::format("m {} {} {} {}", key.size(), key, value.size(), value));
  }
  for (const Entry& entry : header.entries) {
    lines.push_back(fmt::format("t {} {} {} {}", entry.name.size(), entry.name,
                                kTypeNames[*entry.type], fmt::join(*entry.shape, ",")));
  }
  std::sort(lines.begin(), lines.end());
  std::uint64_t checksum = 0;
  for (const std::string& line : lines) {
    checksum = XXH3_64bits_withSeed(line.data(), line.size(), checksum);
  }
  return hex(checksum);
}

std::string checksum_key(std::string_view name) {
  return fmt::format("{}{}", kChecksumPrefix, name);
}

std::string checksum_of(std::span<const std::byte> bytes) {
  return hex(XXH3_64bits(bytes.data(), bytes.size()));
}

std::optional<std::uint64_t> element_count(std::span<const std::int64_t> shape) {
  std::uint64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, std::uint64_t(extent), &count)) return std::nullopt;
    if (count > std::uint64_t(std::numeric_limits<std::int64_t>::max()) / 8) return std::nullopt;
  }
  return count;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string out = nlohmann::json(text.substr(0, kMost))
                        .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  out = out.substr(1, out.size() - 2);
  return text.size() > kMost ? out + "..." : out;
}

}  // namespace fedep::safetensors
