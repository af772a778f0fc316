#include "fedep/sim/place/places.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/nearest.h"
#include "fedep/sim/gpu/cuda_place.h"
#include "fedep/sim/place/host_place.h"
#include "fedep/sim/place/mpi_place.h"

namespace fedep {
namespace {

constexpr std::size_t kAnyThreads = std::numeric_limits<std::size_t>::max();

constexpr std::array kPlaces{
    PlaceRow{.name = "serial",
             .summary = "one client after another on one core: the specification of all others",
             .device = "cpu",
             .most_threads = 1,
             .over_ranks = false,
             .own_memory = false,
             .problem = host_problem,
             .text = host_text,
             .processor = nullptr,
             .remark = host_remark,
             .check = check_host_place,
             .make = make_serial_place},
    PlaceRow{.name = "threads",
             .summary = "several clients at once, each on one core, to the same bits",
             .device = "cpu",
             .most_threads = kAnyThreads,
             .over_ranks = false,
             .own_memory = false,
             .problem = host_problem,
             .text = host_text,
             .processor = nullptr,
             .remark = host_remark,
             .check = check_host_place,
             .make = make_threads_place},
    PlaceRow{.name = "cuda",
             .summary = "all clients of a round at once on one NVIDIA GPU",
             .device = "cuda",
             .most_threads = kAnyThreads,
             .over_ranks = false,
             .own_memory = true,
             .problem = cuda_problem,
             .text = cuda_text,
             .processor = cuda_processor,
             .remark = cuda_remark,
             .check = check_cuda_place,
             .make = make_cuda_place},
    PlaceRow{.name = "mpi",
             .summary = "several processes, on one machine or many, to the same bits",
             .device = "cpu",
             .most_threads = kAnyThreads,
             .over_ranks = true,
             .own_memory = false,
             .problem = mpi_problem,
             .text = mpi_text,
             .processor = nullptr,
             .remark = host_remark,
             .check = check_host_place,
             .make = make_mpi_place},
    PlaceRow{.name = "mpi_cuda",
             .summary = "several processes with a GPU each, on one machine or many",
             .device = "cuda",
             .most_threads = kAnyThreads,
             .over_ranks = true,
             .own_memory = true,
             .claim = claim_cuda_of_rank,
             .problem = cuda_ranks_problem,
             .text = cuda_ranks_text,
             .processor = cuda_processor,
             .remark = cuda_remark,
             .check = check_cuda_place,
             .make = make_cuda_ranks_place},
};

}  // namespace

std::span<const PlaceRow> places() { return kPlaces; }

const PlaceRow& find_place(std::string_view device, std::size_t threads, bool over_ranks) {
  std::vector<std::string_view> devices;
  for (const PlaceRow& row : kPlaces) {
    if (row.device == device && threads <= row.most_threads && row.over_ranks == over_ranks)
      return row;
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
