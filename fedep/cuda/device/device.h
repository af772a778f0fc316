// The GPU and memory on it, without CUDA's headers. Everything fedep enqueues goes to one stream,
// in order; host code waits only where it reads something back.
//
//   if (const std::string why = device_problem(); !why.empty()) throw InputError(why);
//   DeviceArray<float> weights(clients * size);
//   weights.upload(host);
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

struct CUstream_st;

namespace fedep {

using CudaStream = CUstream_st*;  // cudaStream_t

// Empty if there is a GPU that this build can use; else one line that says what is wrong.
std::string device_problem();
// Its name, as run logs and tables show it: "NVIDIA H200".
std::string device_name();
// Of the machine's GPUs that this process may use; 0 where there is none.
std::size_t device_count();
// All that follows happens there. Before anything else of a process, and once.
void use_device(std::size_t index);
std::string device_address();   // on the machine's bus, "0000:1B:00.0": no two GPUs have the same
std::string device_software();  // "driver 13.0, runtime 13.0"
std::size_t device_memory_free();
// The one stream; made when first asked for.
CudaStream device_stream();
void wait_for_device();
// The same; `meanwhile` is called now and then.
void wait_for_device(const std::function<void()>& meanwhile);

// Memory comes from a pool of the stream: allocating and freeing in a loop costs nothing, and a
// buffer may be freed while the GPU still uses it.
void* device_allocate(std::size_t bytes);
void device_free(void* memory) noexcept;
void* pinned_allocate(std::size_t bytes);  // page-locked main memory
void pinned_free(void* memory) noexcept;
void copy_to_device(void* to, const void* from,
                    std::size_t bytes);  // returns when `from` is free again
void copy_to_host(void* to, const void* from, std::size_t bytes);  // returns when it is there
void copy_on_device(void* to, const void* from, std::size_t bytes);
void zero_on_device(void* to, std::size_t bytes);

// An array on the GPU. Moves, does not copy.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t size)
      : data_(static_cast<T*>(device_allocate(size * sizeof(T)))), size_(size) {}
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) { upload(values); }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~DeviceArray() {
    if (data_ != nullptr) device_free(data_);
  }

  std::size_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  void zero() { zero_on_device(data_, size_ * sizeof(T)); }
  void upload(std::span<const T> values) {
    copy_to_device(data_, values.data(), values.size_bytes());
  }
  std::vector<T> download() const {
    std::vector<T> values(size_);
    copy_to_host(values.data(), data_, size_ * sizeof(T));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// For buffers that are made, zeroed, when first needed and keep their place from then on.
template <class T>
void make_once(DeviceArray<T>& array, std::size_t size) {
  if (array.size() >= size) return;
  array = DeviceArray<T>(size);
  array.zero();
}

}  // namespace fedep
