#include "fedep/sim/place/places.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "fedep/message/nearest.h"
#include "fedep/sim/gpu/cuda_place.h"
#include "fedep/sim/place/host_place.h"

namespace fedep {
namespace {

constexpr std::size_t kAnyThreads = std::numeric_limits<std::size_t>::max();

constexpr std::array kPlaces{
    PlaceRow{.name = "serial",
             .summary = "one client after another on one core: the specification of all others",
             .device = "cpu",
             .most_threads = 1,
             .own_memory = false,
             .problem = host_problem,
             .text = host_text,
             .remark = host_remark,
             .check = check_host_place,
             .make = make_serial_place},
    PlaceRow{.name = "threads",
             .summary = "several clients at once, each on one core, to the same bits",
             .device = "cpu",
             .most_threads = kAnyThreads,
             .own_memory = false,
             .problem = host_problem,
             .text = host_text,
             .remark = host_remark,
             .check = check_host_place,
             .make = make_threads_place},
    PlaceRow{.name = "cuda",
             .summary = "all clients of a round at once on one NVIDIA GPU",
             .device = "cuda",
             .most_threads = kAnyThreads,
             .own_memory = true,
             .problem = cuda_problem,
             .text = cuda_text,
             .remark = cuda_remark,
             .check = check_cuda_place,
             .make = make_cuda_place},
};

}  // namespace

std::span<const PlaceRow> places() { return kPlaces; }

const PlaceRow& find_place(std::string_view device, std::size_t threads) {
  std::vector<std::string_view> devices;
  for (const PlaceRow& row : kPlaces) {
    if (row.device == device && threads <= row.most_threads) return row;
    if (std::ranges::count(devices, row.device) == 0) devices.push_back(row.device);
  }
  throw InputError(unknown_name("device", device, devices));
}

ProductPrecision find_precision(std::string_view name) {
  constexpr std::array<std::string_view, 2> kNames{"tf32", "float32"};
  if (name == kNames[0]) return ProductPrecision::tf32;
  if (name == kNames[1]) return ProductPrecision::float32;
  throw InputError(unknown_name("precision", name, kNames));
}

}  // namespace fedep
