// TensorFlow's tf.train.Example, a protocol buffer message that maps names to lists of bytes,
// floats or integers.
//
//   if (const auto example = parse_tf_example(bytes)) {
//     const std::vector<float>* pixels = example->floats("pixels");
//
// Only what is there is allocated: a message that claims more than its bytes hold is malformed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace fedep {

using TfFeature =
    std::variant<std::vector<std::string_view>, std::vector<float>, std::vector<std::int64_t>>;

// Names and bytes look into the message that was parsed, which must outlive this.
struct TfExample {
  std::map<std::string_view, TfFeature> features;

  // Null if there is no such feature or it is of another kind.
  const std::vector<std::string_view>* bytes(std::string_view name) const;
  const std::vector<float>* floats(std::string_view name) const;
  const std::vector<std::int64_t>* integers(std::string_view name) const;
};

// None if the bytes are not such a message.
std::optional<TfExample> parse_tf_example(std::span<const std::uint8_t> message);

}  // namespace fedep
