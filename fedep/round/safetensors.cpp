#include "fedep/round/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fedep/message/error.h"
#include "fedep/round/durable_file.h"

namespace fedep {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are written as they lie in memory");

using Path = std::filesystem::path;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // as in the reference implementation
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kChecksumPrefix = "xxh3.";
// In the order of Array's alternatives.
constexpr std::array<std::string_view, 5> kTypeNames = {"U8", "I32", "I64", "F32", "F64"};
constexpr std::array<std::size_t, 5> kTypeSizes = {1, 4, 8, 4, 8};
static_assert(kTypeNames.size() == std::variant_size_v<Array>);

template <class... Args>
[[noreturn]] void refuse(std::string_view file, fmt::format_string<Args...> text, Args&&... args) {
  throw InputError(fmt::format("{}: {}", file, fmt::format(text, std::forward<Args>(args)...)));
}

// Any text, made fit to be shown in one line.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string out = nlohmann::json(text.substr(0, kMost))
                        .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  out = out.substr(1, out.size() - 2);
  return text.size() > kMost ? out + "..." : out;
}

std::string hex(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

std::string checksum_of(std::span<const std::byte> bytes) {
  return hex(XXH3_64bits(bytes.data(), bytes.size()));
}

std::string checksum_key(std::string_view name) {
  return fmt::format("{}{}", kChecksumPrefix, name);
}

// What the header says about one tensor.
struct Entry {
  std::string name;
  std::optional<std::size_t> type;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::vector<std::uint64_t>> offsets;
};

struct Header {
  std::vector<Entry> entries;
  Metadata metadata;
};

// Over what the header means rather than its text, so that another program may lay the file out
// anew. Lengths go before texts: no two headers run together the same way.
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

// Elements of that shape, or nothing if there are more than any file can hold.
std::optional<std::uint64_t> element_count(std::span<const std::int64_t> shape) {
  std::uint64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, std::uint64_t(extent), &count)) return std::nullopt;
    if (count > std::uint64_t(std::numeric_limits<std::int64_t>::max()) / 8) return std::nullopt;
  }
  return count;
}

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

// Entries in the order of their data, checked: each as long as type and shape say, together all of
// the data.
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
  if (!text.starts_with('{')) refuse(name, "header must start with {{, but does not");

  // The parser would take a zero byte for the end, and not look at what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    refuse(name, "header must be JSON, but is not at byte {}", 8 + zero);
  }

  Header header;
  HeaderParser parser(name, header);
  nlohmann::json::sax_parse(text, &parser);
  check_metadata(name, header);
  const auto order = checked_layout(name, header, file_size - 8 - text_size);

  SafetensorsFile out = {.tensors = {}, .metadata = header.metadata, .origin = name};
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
