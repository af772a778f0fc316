// Files in the safetensors format, which others read: 8 bytes length of the header (little-endian),
// a JSON header {"__metadata__": {key: text}, name: {"dtype", "shape", "data_offsets"}}, then the
// tensors' bytes.
//
//   write_safetensors(path, tensors, {{"round", "401"}});
//   const SafetensorsFile file = read_safetensors(path);
//   const std::vector<float>& eta = file.get<float>("eta.weight");
//
// Element types F32, F64, I64, I32, U8. The bytes depend on the arguments alone. Headers name
// tensors in the given order; their data lie by falling element size, so that all are aligned for
// readers that map the file.
//
// Beside what it is given, metadata hold a checksum (XXH3, 16 hex digits) of each tensor's bytes as
// "xxh3.<name>" and one of the names, types, shapes and metadata as "xxh3.__metadata__". Files by
// others may have none of them; where there is one, all must be there and right. They are not
// handed on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fedep/message/array.h"

namespace fedep {

using Metadata = std::map<std::string, std::string>;

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;  // empty: a scalar
  Array values;
  bool operator==(const Tensor&) const = default;
};

// A tensor whose values live elsewhere and must outlive it.
struct TensorView {
  std::string name;
  std::vector<std::int64_t> shape;
  ArrayView values;
};

struct SafetensorsFile {
  std::vector<Tensor> tensors;
  Metadata metadata;
  std::string origin = {};  // what errors call it: the path it was read from
  bool checksums = false;   // it has them, and they are right

  bool has(std::string_view name) const;
  // Throws InputError if there is no such tensor.
  const Tensor& tensor(std::string_view name) const;
  // Throws InputError if there is no such tensor or its elements are not of type T.
  template <ArrayElement T>
  const std::vector<T>& get(std::string_view name) const;

 private:
  [[noreturn]] void refuse_type(const Tensor& tensor, std::size_t type_index) const;
};

// Replaces the file (durable_file.h) without copying the arrays. Throws InputError if a name comes
// twice, a shape does not fit its values, a text is not UTF-8, or a metadata key starts with
// "xxh3.".
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const Metadata& metadata);

enum class Finite { any, required };

// Throws InputError, naming the file, if anything in it is not as the format asks. Allocates what
// the file's real size allows, not what its header claims. With Finite::required, NaN and infinity
// are refused too.
SafetensorsFile read_safetensors(const std::filesystem::path& path, Finite finite = Finite::any);

template <ArrayElement T>
const std::vector<T>& SafetensorsFile::get(std::string_view name) const {
  const Tensor& found = tensor(name);
  if (const auto* values = std::get_if<std::vector<T>>(&found.values)) return *values;
  refuse_type(found, Array(std::in_place_type<std::vector<T>>).index());
}

}  // namespace fedep
