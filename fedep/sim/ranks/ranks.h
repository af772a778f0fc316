// The processes that play one run together, on one machine or on many. Every one of them is a rank,
// plays the same rounds and makes the same calls here, in the same order and from one thread.
//
//   ranks.sum(units);                                     // exact: integers, whatever the order
//   for (const Bytes& told : ranks.gather(bytes_of(mine))) …   // by rank
//
// mpi_ranks.h has the one that clusters use, test_thread_ranks.h one of threads, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fedep {

using Bytes = std::vector<std::byte>;

// Something that one rank has and another one needs.
struct Transfer {
  std::size_t from = 0;
  std::size_t to = 0;
};

class Ranks {
 public:
  virtual ~Ranks() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  virtual std::string host() const = 0;  // the machine that this rank runs on

  // In place, over all ranks. Whoever asks sees to it that sums fit.
  virtual void sum(std::span<std::int64_t> numbers) = 0;
  virtual void sum(std::span<std::int32_t> numbers) = 0;
  // What every rank has to say, by rank, to all of them.
  virtual std::vector<Bytes> gather(std::span<const std::byte> mine) = 0;
  // What rank 0 says, to all of them; others' bytes are not looked at.
  virtual Bytes broadcast(Bytes bytes) = 0;
  // All ranks name the same transfers, and `mine` are those from this rank, in their order. They are on
  // their way until end_exchange(), which gives those to this rank, in their order. One exchange at a
  // time.
  virtual void begin_exchange(std::vector<Transfer> transfers, std::vector<Bytes> mine) = 0;
  // What is on its way goes on. To be called now and then.
  virtual void progress() {}
  virtual std::vector<Bytes> end_exchange() = 0;
  std::vector<Bytes> exchange(std::vector<Transfer> transfers, std::vector<Bytes> mine) {
    begin_exchange(std::move(transfers), std::move(mine));
    return end_exchange();
  }

  // The first `size` ranks, the next so many, and so on: those that this one is among. Of a last group
  // there may be fewer. All ranks ask for it together, and it must not outlive this.
  virtual std::unique_ptr<Ranks> group(std::size_t size) = 0;

  bool is_first() const { return rank() == 0; }
  // Nobody goes on before all are here, however long that takes.
  virtual void wait_for_all() { gather({}); }
};

// Numbers and structs of them as bytes, and back.
template <class T>
Bytes bytes_of(std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}
template <class T>
Bytes bytes_of(const T& value) {
  return bytes_of(std::span<const T>(&value, 1));
}
template <class T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace fedep
