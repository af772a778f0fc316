#include "fedep/store/log/tensorboard.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

constexpr std::array<std::uint32_t, 256> crc_table() {
  constexpr std::uint32_t kCastagnoli = 0x82f63b78;  // reflected
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kCastagnoli : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = crc_table();

// Little-endian, whatever the machine.
template <class Unsigned>
void put_fixed(std::string& out, Unsigned value) {
  for (std::size_t byte = 0; byte < sizeof value; ++byte) {
    out.push_back(char((value >> (8 * byte)) & 0xff));
  }
}

// Protobuf's wire format: a key is field << 3 | type.
enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(char((value & 0x7f) | 0x80));
  out.push_back(char(value));
}
void put_key(std::string& out, int field, Wire wire) {
  put_varint(out, std::uint64_t(field << 3 | int(wire)));
}
void put_integer(std::string& out, int field, std::int64_t value) {
  put_key(out, field, Wire::varint);
  put_varint(out, std::uint64_t(value));
}
void put_double(std::string& out, int field, double value) {
  put_key(out, field, Wire::fixed64);
  put_fixed(out, std::bit_cast<std::uint64_t>(value));
}
void put_float(std::string& out, int field, float value) {
  put_key(out, field, Wire::fixed32);
  put_fixed(out, std::bit_cast<std::uint32_t>(value));
}
void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// Fields of TensorFlow's event.proto and summary.proto.
namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace summary {
constexpr int kValue = 1;
}
namespace value {
constexpr int kTag = 1, kSimpleValue = 2;
}
namespace session_log {
constexpr int kStatus = 1, kStart = 1;
}

std::string event_at(std::int64_t step, double unix_seconds) {
  std::string out;
  put_double(out, event::kWallTime, unix_seconds);
  if (step != 0) put_integer(out, event::kStep, step);
  return out;
}

std::string version_event(double unix_seconds) {
  std::string out = event_at(0, unix_seconds);
  put_bytes(out, event::kFileVersion, "brain.Event:2");
  return out;
}

std::string start_event(std::int64_t step, double unix_seconds) {
  std::string log;
  put_integer(log, session_log::kStatus, session_log::kStart);
  std::string out = event_at(step, unix_seconds);
  put_bytes(out, event::kSessionLog, log);
  return out;
}

// Readers take files in the order of their names, so starts within one second are numbered.
std::size_t starts_before(const std::filesystem::path& directory) {
  std::size_t starts = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    starts += entry.path().filename().string().starts_with(kPrefix);
  }
  return starts;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string tf_record(std::string_view payload) {
  std::string out;
  put_fixed(out, std::uint64_t(payload.size()));
  put_fixed(out, masked_crc32c(out));
  out += payload;
  put_fixed(out, masked_crc32c(payload));
  return out;
}

std::string scalars_event(std::int64_t step, double unix_seconds, const Metrics& scalars) {
  std::string values;
  for (const auto& [name, number] : scalars) {
    if (!std::isfinite(number)) continue;
    std::string one;
    put_bytes(one, value::kTag, name);
    put_float(one, value::kSimpleValue, float(number));
    put_bytes(values, summary::kValue, one);
  }
  std::string out = event_at(step, unix_seconds);
  put_bytes(out, event::kSummary, values);
  return out;
}

EventFile::EventFile(const std::filesystem::path& directory, std::int64_t first_step,
                     double unix_seconds) {
  // An earlier file may be lost while a later one is there: a number that is taken is not the end.
  for (std::size_t number = starts_before(directory); !file_; ++number) {
    path_ = directory / fmt::format("{}{:010}.{:04}", kPrefix, std::int64_t(unix_seconds), number);
    file_ = FileDescriptor(
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
    if (!file_ && errno != EEXIST) break;
  }
  if (!file_) {
    throw RunError(fmt::format("{}: cannot make file: {}", path_.string(), std::strerror(errno)));
  }
  append(tf_record(version_event(unix_seconds)) + tf_record(start_event(first_step, unix_seconds)));
}

void EventFile::write(std::int64_t step, double unix_seconds, const Metrics& scalars) {
  append(tf_record(scalars_event(step, unix_seconds, scalars)));
}

void EventFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      throw RunError(fmt::format("{}: cannot write: {}", path_.string(), std::strerror(errno)));
    }
    bytes.remove_prefix(std::size_t(written));
  }
}

}  // namespace fedep
