#include "fedep/store/safetensors/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include <fmt/ranges.h>

#include "fedep/store/durable_file.h"
#include "fedep/store/safetensors/safetensors_header.h"

namespace fedep {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are written as they lie in memory");

using Path = std::filesystem::path;
using namespace safetensors;

Array make_array(std::size_t type, std::size_t count) {
  switch (type) {
    case 0:
      return std::vector<std::uint8_t>(count);
    case 1:
      return std::vector<std::int32_t>(count);
    case 2:
      return std::vector<std::int64_t>(count);
    case 3:
      return std::vector<float>(count);
    default:
      return std::vector<double>(count);
  }
}

Array read_values(const FileDescriptor& file, const Path& path, const Entry& entry,
                  const Metadata& metadata, Finite finite) {
  Array values = make_array(*entry.type, std::size_t(*element_count(*entry.shape)));
  std::visit(
      [&](auto& array) {
        const std::span<std::byte> bytes = std::as_writable_bytes(std::span(array));
        if (const std::size_t n = read_some(file, path, bytes); n != bytes.size()) {
          refuse(path.string(), "data of tensor {} must be {} bytes, but end after {}",
                 shown(entry.name), bytes.size(), n);
        }
      },
      values);
  if (const auto written = metadata.find(checksum_key(entry.name)); written != metadata.end()) {
    const std::string computed = checksum_of(bytes_of(view(values)));
    if (written->second != computed) {
      refuse(path.string(), "tensor {} must have checksum {}, but has {}", shown(entry.name),
             shown(written->second), computed);
    }
  }
  if (finite == Finite::required) {
    const std::size_t bad = first_not_finite(view(values));
    if (bad != std::size_t(*element_count(*entry.shape))) {
      refuse(path.string(), "tensor {} must be finite, but element {} is not", shown(entry.name),
             bad);
    }
  }
  return values;
}

// Checks the tensors and gives the header without data_offsets, checksums included.
Header header_of(std::string_view file, std::span<const TensorView> tensors,
                 const Metadata& metadata) {
  Header header = {{}, metadata};
  std::set<std::string> names;
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(kChecksumPrefix)) {
      refuse(file, "metadata key must not start with {}, but is {}", kChecksumPrefix, shown(key));
    }
  }
  for (const TensorView& tensor : tensors) {
    const std::string name = shown(tensor.name);
    if (tensor.name == kMetadataKey || !names.insert(tensor.name).second) {
      refuse(file, "tensor names must differ, also from {}, but {} comes again", kMetadataKey,
             name);
    }
    const std::span<const std::byte> bytes = bytes_of(tensor.values);
    const std::uint64_t count = bytes.size() / kTypeSizes[tensor.values.index()];
    const bool negative =
        std::any_of(tensor.shape.begin(), tensor.shape.end(), [](auto n) { return n < 0; });
    if (negative || element_count(tensor.shape) != count) {
      refuse(file, "shape of tensor {} must be of {} elements, but is [{}]", name, count,
             fmt::join(tensor.shape, ", "));
    }
    header.entries.push_back({tensor.name, tensor.values.index(), tensor.shape, std::nullopt});
    header.metadata[checksum_key(tensor.name)] = checksum_of(bytes);
  }
  header.metadata[checksum_key(kMetadataKey)] = header_checksum(header);
  return header;
}

}  // namespace

bool SafetensorsFile::has(std::string_view name) const {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const Tensor& t) { return t.name == name; });
}

const Tensor& SafetensorsFile::tensor(std::string_view name) const {
  for (const Tensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  refuse(origin, "tensor {} must be present, but is not among its {}", shown(name), tensors.size());
}

void SafetensorsFile::refuse_type(const Tensor& tensor, std::size_t type_index) const {
  refuse(origin, "tensor {} must hold {}, but holds {}", shown(tensor.name), kTypeNames[type_index],
         kTypeNames[tensor.values.index()]);
}

void write_safetensors(const Path& path, std::span<const TensorView> tensors,
                       const Metadata& metadata) {
  const std::string file = path.string();
  Header header = header_of(file, tensors, metadata);
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return kTypeSizes[tensors[a].values.index()] > kTypeSizes[tensors[b].values.index()];
  });
  std::uint64_t offset = 0;
  for (const std::size_t i : order) {
    const std::uint64_t end = offset + bytes_of(tensors[i].values).size();
    header.entries[i].offsets = {offset, end};
    offset = end;
  }
  const std::string text = header_text(file, header);
  const std::uint64_t text_size = text.size();
  replace_file(path, [&](const ByteSink& sink) {
    sink(std::as_bytes(std::span(&text_size, 1)));
    sink(std::as_bytes(std::span(text)));
    for (const std::size_t i : order) sink(bytes_of(tensors[i].values));
  });
}

SafetensorsFile read_safetensors(const Path& path, Finite finite) {
  const std::string name = path.string();
  const FileDescriptor file = open_file(path);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    refuse(name, "must be a regular file, but is not");
  }
  const auto file_size = std::uint64_t(status.st_size);
  std::uint64_t text_size = 0;
  if (read_some(file, path, std::as_writable_bytes(std::span(&text_size, 1))) != 8) {
    refuse(name, "must start with the 8 bytes of a safetensors file, but has {}", file_size);
  }
  if (text_size > kMaxHeader || text_size > file_size - 8) {
    refuse(name, "header must have at most {} bytes, but claims {}",
           std::min(kMaxHeader, file_size - 8), text_size);
  }
  std::string text(std::size_t(text_size), ' ');
  if (read_some(file, path, std::as_writable_bytes(std::span(text))) != text.size()) {
    refuse(name, "header must have {} bytes, but the file ends within", text_size);
  }

  const Header header = parse_header(name, text);
  const auto order = checked_layout(name, header, file_size - 8 - text_size);

  SafetensorsFile out = {.tensors = {},
                         .metadata = header.metadata,
                         .origin = name,
                         .checksums = header.metadata.contains(checksum_key(kMetadataKey))};
  std::erase_if(out.metadata,
                [](const auto& item) { return item.first.starts_with(kChecksumPrefix); });
  out.tensors.resize(header.entries.size());
  for (const std::size_t i : order) {
    const Entry& entry = header.entries[i];
    out.tensors[i] = {entry.name, *entry.shape,
                      read_values(file, path, entry, header.metadata, finite)};
  }
  return out;
}

}  // namespace fedep
