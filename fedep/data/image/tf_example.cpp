#include "fedep/data/image/tf_example.h"

#include <bit>
#include <utility>

namespace fedep {
namespace {

// The wire format: a field is a varint (number << 3 | type) and its value.
enum class Wire : std::uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

using Bytes = std::span<const std::uint8_t>;

// Walks over a message and never past its end; `failed` once something did not fit.
class WireReader {
 public:
  explicit WireReader(Bytes bytes) : left_(bytes) {}

  bool failed() const { return failed_; }
  bool more() const { return !failed_ && !left_.empty(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) break;
      const std::uint8_t byte = left_.front();
      left_ = left_.subspan(1);
      value |= std::uint64_t(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }

  Bytes take(std::uint64_t size) {
    if (failed_ || size > left_.size()) {
      failed_ = true;
      return {};
    }
    const Bytes taken = left_.first(std::size_t(size));
    left_ = left_.subspan(std::size_t(size));
    return taken;
  }

  Bytes block() { return take(varint()); }

  float fixed_float() {
    const Bytes b = take(4);
    if (failed_) return 0;
    return std::bit_cast<float>(std::uint32_t(b[0]) | std::uint32_t(b[1]) << 8 |
                                std::uint32_t(b[2]) << 16 | std::uint32_t(b[3]) << 24);
  }

  struct Tag {
    std::uint64_t field;
    Wire wire;
  };
  Tag tag() {
    const std::uint64_t value = varint();
    return {value >> 3, Wire(value & 7)};
  }

  // A field this reader does not know.
  void skip(Wire wire) {
    switch (wire) {
      case Wire::varint:
        varint();
        return;
      case Wire::fixed64:
        take(8);
        return;
      case Wire::bytes:
        block();
        return;
      case Wire::fixed32:
        take(4);
        return;
    }
    failed_ = true;
  }

 private:
  Bytes left_;
  bool failed_ = false;
};

std::string_view text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// BytesList, FloatList, Int64List: field 1, repeated; numbers one by one or packed into a block.
bool parse_list(Bytes message, std::vector<std::string_view>& values) {
  WireReader reader(message);
  while (reader.more()) {
    const auto [field, wire] = reader.tag();
    if (field == 1 && wire == Wire::bytes) {
      values.push_back(text(reader.block()));
    } else {
      reader.skip(wire);
    }
  }
  return !reader.failed();
}

bool parse_list(Bytes message, std::vector<float>& values) {
  WireReader reader(message);
  while (reader.more()) {
    const auto [field, wire] = reader.tag();
    if (field == 1 && wire == Wire::bytes) {
      const Bytes block = reader.block();
      if (block.size() % 4 != 0) return false;
      values.reserve(values.size() + block.size() / 4);
      for (WireReader packed(block); packed.more();) values.push_back(packed.fixed_float());
    } else if (field == 1 && wire == Wire::fixed32) {
      values.push_back(reader.fixed_float());
    } else {
      reader.skip(wire);
    }
  }
  return !reader.failed();
}

bool parse_list(Bytes message, std::vector<std::int64_t>& values) {
  WireReader reader(message);
  while (reader.more()) {
    const auto [field, wire] = reader.tag();
    if (field == 1 && wire == Wire::bytes) {
      WireReader packed(reader.block());
      while (packed.more()) values.push_back(std::int64_t(packed.varint()));
      if (packed.failed()) return false;
    } else if (field == 1 && wire == Wire::varint) {
      values.push_back(std::int64_t(reader.varint()));
    } else {
      reader.skip(wire);
    }
  }
  return !reader.failed();
}

template <class T>
bool parse_into(Bytes message, TfFeature& feature) {
  // A second list of the same kind continues the first, as protocol buffers merge.
  if (!std::holds_alternative<T>(feature)) feature = T();
  return parse_list(message, std::get<T>(feature));
}

// Feature: bytes_list = 1, float_list = 2, int64_list = 3; the last one given counts.
bool parse_feature(Bytes message, TfFeature& feature) {
  WireReader reader(message);
  while (reader.more()) {
    const auto [field, wire] = reader.tag();
    if (wire != Wire::bytes || field < 1 || field > 3) {
      reader.skip(wire);
      continue;
    }
    const Bytes list = reader.block();
    const bool good = field == 1   ? parse_into<std::vector<std::string_view>>(list, feature)
                      : field == 2 ? parse_into<std::vector<float>>(list, feature)
                                   : parse_into<std::vector<std::int64_t>>(list, feature);
    if (!good) return false;
  }
  return !reader.failed();
}

// An entry of the map: key = 1, value = 2.
bool parse_entry(Bytes message, TfExample& example) {
  WireReader reader(message);
  std::string_view key;
  TfFeature feature;
  while (reader.more()) {
    const auto [field, wire] = reader.tag();
    if (field == 1 && wire == Wire::bytes) {
      key = text(reader.block());
    } else if (field == 2 && wire == Wire::bytes) {
      if (!parse_feature(reader.block(), feature)) return false;
    } else {
      reader.skip(wire);
    }
  }
  example.features[key] = std::move(feature);
  return !reader.failed();
}

template <class Parse>
bool parse_first_field(Bytes message, const Parse& parse) {
  WireReader reader(message);
  while (reader.more()) {
    const auto [field, wire] = reader.tag();
    if (field == 1 && wire == Wire::bytes) {
      const Bytes block = reader.block();
      if (reader.failed() || !parse(block)) return false;
    } else {
      reader.skip(wire);
    }
  }
  return !reader.failed();
}

template <class T>
const T* feature_of(const TfExample& example, std::string_view name) {
  const auto found = example.features.find(name);
  return found == example.features.end() ? nullptr : std::get_if<T>(&found->second);
}

}  // namespace

const std::vector<std::string_view>* TfExample::bytes(std::string_view name) const {
  return feature_of<std::vector<std::string_view>>(*this, name);
}

const std::vector<float>* TfExample::floats(std::string_view name) const {
  return feature_of<std::vector<float>>(*this, name);
}

const std::vector<std::int64_t>* TfExample::integers(std::string_view name) const {
  return feature_of<std::vector<std::int64_t>>(*this, name);
}

std::optional<TfExample> parse_tf_example(std::span<const std::uint8_t> message) {
  TfExample example;
  // Example: features = 1. Features: feature = 1, a map.
  const bool good = parse_first_field(message, [&](Bytes features) {
    return parse_first_field(features, [&](Bytes entry) { return parse_entry(entry, example); });
  });
  return good ? std::optional(std::move(example)) : std::nullopt;
}

}  // namespace fedep
