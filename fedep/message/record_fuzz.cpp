// libFuzzer target of the byte format. Whatever arrives, in whatever pieces: a reader either
// refuses it with an InputError or gives a record whose encoding is those very bytes, and holds
// memory in proportion to its input.
//
//   clang++-14 -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -I. fedep/message/array.cpp
//       fedep/message/record{,_layout,_reader,_fuzz}.cpp -lfmt -o record_fuzz
//   ./record_fuzz -runs=2000000
//
// The first byte of an input chooses how the rest is used, since checksums would keep random bytes
// from ever passing the preamble: as bytes; as headers and data to which right checksums are added;
// as values of a valid record that is then damaged. One input in 1024, being slow, makes a record
// of more than one chunk.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <sanitizer/allocator_interface.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fedep/message/error.h"
#include "fedep/message/record.h"

namespace {

using namespace fedep;
using Bytes = std::vector<std::byte>;

// Bytes held by the reader, counted by the allocator's hooks while counting is on.
bool counting = false;
std::ptrdiff_t held = 0;
std::ptrdiff_t most_held = 0;

void on_malloc(const volatile void*, std::size_t size) {
  if (!counting) return;
  held += std::ptrdiff_t(size);
  most_held = std::max(most_held, held);
}

void on_free(const volatile void* pointer) {
  if (!counting || pointer == nullptr) return;
  held -= std::ptrdiff_t(__sanitizer_get_allocated_size(const_cast<const void*>(pointer)));
}

[[noreturn]] void report(const std::string& what) {
  fmt::print(stderr, "record_fuzz: {}\n", what);
  std::abort();
}

// The fuzzer's input, read from the front; zeros once it is used up.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  Bytes take(std::size_t n) {
    const auto front = bytes_.first(std::min(n, bytes_.size()));
    bytes_ = bytes_.subspan(front.size());
    Bytes out(front.begin(), front.end());
    out.resize(n);
    return out;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  Bytes rest() { return take(bytes_.size()); }

 private:
  std::span<const std::byte> bytes_;
};

void append(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

void append_checksum(Bytes& bytes, std::size_t covered, std::uint64_t& checksum) {
  checksum = XXH3_64bits_withSeed(bytes.data() + bytes.size() - covered, covered, checksum);
  bytes.resize(bytes.size() + 8);
  std::memcpy(bytes.data() + bytes.size() - 8, &checksum, 8);
}

// Reads in irregular pieces, of sizes that follow from the seed. Gives whether the record was
// accepted.
bool accepts(const Bytes& bytes, std::uint32_t seed, Record& record) {
  held = most_held = 0;
  counting = true;
  bool accepted = false;
  try {
    RecordReader reader;
    for (std::size_t at = 0; at < bytes.size();) {
      seed = seed * 1664525 + 1013904223;
      const std::size_t step = seed % 4 == 0 ? bytes.size() : 1 + seed / 4 % 97;
      const std::size_t n = std::min(step, bytes.size() - at);
      // A copy of its own, so that the address sanitizer sees a read beyond the piece.
      counting = false;
      const Bytes piece(bytes.begin() + std::ptrdiff_t(at), bytes.begin() + std::ptrdiff_t(at + n));
      counting = true;
      reader.feed(piece);
      at += n;
      counting = false;
    }
    counting = true;
    record = reader.take();
    accepted = true;
  } catch (const InputError& error) {
    counting = false;
    const std::string text = error.what();
    if (text.find('\n') != std::string::npos || text.size() > 400) report("not one line: " + text);
  }
  counting = false;
  // Growth by doubling holds the old and the new array at once, and a piece that waits; 4096 for
  // the rest.
  if (const auto bound = std::ptrdiff_t(5 * bytes.size() + 4096); most_held > bound) {
    report(fmt::format("{} bytes held for an input of {}", most_held, bytes.size()));
  }
  return accepted;
}

void check_finite_values(const Section& section) {
  const auto check = [&](const auto& values) {
    for (const auto value : values) {
      if (!std::isfinite(double(value))) report("a value is not finite in " + section.name);
    }
  };
  std::visit(check, section.values);
}

void read_and_compare(const Bytes& bytes, std::uint32_t seed) {
  Record record;
  if (!accepts(bytes, seed, record)) return;
  for (const Section& section : record.sections) check_finite_values(section);
  if (record_bytes(view(record)) != bytes)
    report("a record does not encode to the bytes it came from");
}

// A record by the input's choice, in which at most a few fields lie, each with the checksum a
// writer would give it: what remains to refuse it is what the fields say.
Bytes with_right_checksums(Input& input, bool large) {
  enum Lie : unsigned { preamble, section_count, name, type, reserved, element_count, length };
  const auto lies = input.number<std::uint8_t>();
  const auto lying_section = input.number<std::uint8_t>() % 4u;
  const auto count = std::uint32_t(input.number<std::uint8_t>() % 4);
  // A large one has a whole chunk, and claims that more follow.
  const std::size_t most_data = large ? kRecordChunkBytes : 4096;
  const auto lie = [&](Lie what) {
    return large ? what == element_count : lies < 128 && (lies & 7) == what;
  };

  Bytes out = lie(preamble) ? input.take(16) : Bytes(16);
  if (!lie(preamble)) {
    const auto claimed = lie(section_count) ? input.number<std::uint32_t>() : count;
    std::memcpy(out.data(), "FEDEPREC\1\0\0", 12);
    std::memcpy(out.data() + 12, &claimed, 4);
  }
  std::uint64_t checksum = 0;
  append_checksum(out, 16, checksum);

  for (unsigned i = 0; i < count; ++i) {
    const auto lie_here = [&](Lie what) { return i == lying_section && lie(what); };
    const auto shape = input.number<std::uint8_t>();
    Bytes header = lie_here(name) ? input.take(kRecordMaxName) : input.take(1 + shape / 8u);
    if (!lie_here(name)) {
      for (std::byte& c : header) c = std::byte("abcdefghij_.0123"[std::size_t(c) % 16]);
    }
    header.resize(48);
    const std::uint32_t type_code = lie_here(type) ? input.number<std::uint32_t>() : 1 + shape % 5u;
    const std::uint32_t zero = lie_here(reserved) ? input.number<std::uint32_t>() : 0;
    const auto few = std::uint64_t(input.number<std::uint8_t>() % 40);
    // Few bits anywhere in the word: sizes that overflow, to little or to much.
    const std::uint64_t elements =
        lie_here(element_count) ? std::rotr(few, input.number<std::uint8_t>() % 64) : few;
    std::memcpy(header.data() + 32, &type_code, 4);
    std::memcpy(header.data() + 36, &zero, 4);
    std::memcpy(header.data() + 40, &elements, 8);
    append(out, header);
    append_checksum(out, 48, checksum);
    const std::uint64_t size = type_code == 1 ? 1 : type_code == 2 || type_code == 4 ? 4 : 8;
    auto data_size = std::size_t(std::min<std::uint64_t>(elements * size, most_data));
    if (lie_here(length)) data_size = input.number<std::uint8_t>();
    if (data_size == 0) continue;
    append(out, input.take(data_size));
    append_checksum(out, data_size, checksum);
  }
  return out;
}

template <class T>
Array array_from(Input& input, std::size_t count) {
  const Bytes bytes = input.take(count * sizeof(T));
  std::vector<T> values(count);
  if (count != 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Record valid_record(Input& input, std::size_t extra_bytes) {
  Record record;
  const std::size_t sections = input.number<std::uint8_t>() % 4;
  for (std::size_t i = 0; i < sections; ++i) {
    const auto shape = input.number<std::uint8_t>();
    const std::size_t count = shape / 5u;
    Array values;
    if (shape % 5 == 0) values = array_from<std::uint8_t>(input, count + extra_bytes);
    if (shape % 5 == 1) values = array_from<std::int32_t>(input, count + extra_bytes / 4);
    if (shape % 5 == 2) values = array_from<std::int64_t>(input, count + extra_bytes / 8);
    if (shape % 5 == 3) values = array_from<float>(input, count + extra_bytes / 4);
    if (shape % 5 == 4) values = array_from<double>(input, count + extra_bytes / 8);
    record.sections.push_back({fmt::format("s{}", i), std::move(values)});
  }
  return record;
}

// A valid record must come back; damaged, it must be refused, unless the damage undid itself.
void damage(Input& input, std::size_t extra_bytes) {
  const auto seed = input.number<std::uint32_t>();
  const std::size_t flips = input.number<std::uint8_t>() % 4;
  const Bytes places = input.take(5 * flips);
  const Record record = valid_record(input, extra_bytes);
  Bytes bytes;
  try {
    bytes = record_bytes(view(record));
  } catch (const InputError&) {
    return;  // NaN or infinity
  }
  Record came;
  if (!accepts(bytes, seed, came) || record_bytes(view(came)) != bytes) {
    report("a valid record does not come back");
  }
  Bytes damaged = bytes;
  for (std::size_t i = 0; i < flips; ++i) {
    std::uint32_t place = 0;
    std::memcpy(&place, places.data() + 5 * i, 4);
    damaged[place % damaged.size()] ^= places[5 * i + 4];
  }
  const Bytes tail = input.rest();  // cut or lengthened by what is left of the input
  if (!tail.empty() && tail.size() % 2 == 0) append(damaged, tail);
  if (tail.size() % 2 == 1) damaged.resize(damaged.size() - std::min(damaged.size(), tail.size()));
  if (accepts(damaged, seed, came) != (damaged == bytes)) report("damage was not noticed");
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(std::as_bytes(std::span(data, size)));
  // By the input's hash, so that the fuzzer cannot come to prefer what is slow.
  const bool large = XXH3_64bits(data, size) % 1024 == 0;
  const auto mode = input.number<std::uint8_t>() % 4;
  if (mode == 0) {
    damage(input, large ? kRecordChunkBytes - 64 : 0);
    return 0;
  }
  const auto seed = input.number<std::uint32_t>();
  read_and_compare(mode == 1 ? input.rest() : with_right_checksums(input, large), seed);
  return 0;
}
