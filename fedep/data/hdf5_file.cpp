#include "fedep/data/hdf5_file.h"

#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytesOfALink = 8;  // at least, with its name

bool is_own_link(hid_t in, const std::string& name) {
  if (name.empty() || name == "." || name.find('/') != std::string::npos) return false;
  H5L_info_t info{};
  return H5Lget_info(in, name.c_str(), &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_HARD;
}

// A product that stays at the largest number rather than wrap around.
std::uint64_t capped_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

// Texts that HDF5 makes while it reads, within a budget.
class TextArena {
 public:
  explicit TextArena(UnpackBudget& budget) : budget_(budget) {}

  static void* allocate(std::size_t size, void* self) {
    auto& arena = *static_cast<TextArena*>(self);
    if (size > arena.budget_.left()) return nullptr;
    arena.budget_.take(size);
    return arena.texts_.emplace_back(new char[size + 1]).get();
  }
  static void keep(void*, void*) {}

 private:
  UnpackBudget& budget_;
  std::vector<std::unique_ptr<char[]>> texts_;
};

}  // namespace

Hdf5Handle::Hdf5Handle(Hdf5Handle&& other) noexcept
    : id_(std::exchange(other.id_, -1)), close_(other.close_) {}

Hdf5Handle::~Hdf5Handle() {
  if (id_ >= 0) close_(id_);
}

Hdf5File::Hdf5File(std::string_view dataset, const fs::path& path) : budget_(dataset, path, 0) {
  const FileDescriptor held = open_data_file(dataset, path);
  const std::uint64_t size = size_of(held, path);
  budget_ = UnpackBudget(dataset, path, size);
  most_names_ = std::size_t(size / kBytesOfALink);
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);
  file_ =
      std::make_unique<Hdf5Handle>(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!*file_) {
    H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
    throw InputError(fmt::format("{}: {} must be an HDF5 file, but is not, or is cut off", dataset,
                                 path.string()));
  }
}

Hdf5File::~Hdf5File() {
  file_.reset();
  H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
}

Hdf5Handle open_hdf5_group(hid_t in, const std::string& name) {
  return {is_own_link(in, name) ? H5Gopen2(in, name.c_str(), H5P_DEFAULT) : H5I_INVALID_HID,
          H5Gclose};
}

Hdf5Handle open_hdf5_array(hid_t in, const std::string& name) {
  Hdf5Handle array(
      is_own_link(in, name) ? H5Dopen2(in, name.c_str(), H5P_DEFAULT) : H5I_INVALID_HID, H5Dclose);
  if (!array) return array;
  const Hdf5Handle made(H5Dget_create_plist(array.id()), H5Pclose);
  const bool lies_here =
      made && H5Pget_external_count(made.id()) == 0 && H5Pget_layout(made.id()) != H5D_VIRTUAL;
  return lies_here ? std::move(array) : Hdf5Handle(H5I_INVALID_HID, H5Dclose);
}

bool list_hdf5_names(hid_t group, std::size_t most, std::vector<std::string>& names) {
  struct List {
    std::size_t most;
    std::vector<std::string>& names;
  } list{most, names};
  hsize_t at = 0;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
    auto& [limit, all] = *static_cast<List*>(to);
    if (all.size() >= limit) return -1;
    all.emplace_back(name);
    return 0;
  };
  return H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, add, &list) >= 0;
}

std::vector<hsize_t> hdf5_extents(hid_t array, std::size_t element, UnpackBudget& budget) {
  const Hdf5Handle space(H5Dget_space(array), H5Sclose);
  const Hdf5Handle type(H5Dget_type(array), H5Tclose);
  const Hdf5Handle made(H5Dget_create_plist(array), H5Pclose);
  const int rank = space ? H5Sget_simple_extent_ndims(space.id()) : -1;
  if (!type || !made || rank < 1 || rank > 4) return {};
  std::vector<hsize_t> extents(std::size_t(rank), 0);
  H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr);
  std::uint64_t bytes = element;
  for (const hsize_t extent : extents) bytes = capped_product(bytes, extent);
  budget.take(bytes);
  if (H5Pget_layout(made.id()) == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(std::size_t(rank), 0);
    if (H5Pget_chunk(made.id(), rank, chunk.data()) != rank) return {};
    std::uint64_t chunk_bytes = H5Tget_size(type.id());
    for (const hsize_t extent : chunk) chunk_bytes = capped_product(chunk_bytes, extent);
    budget.take(chunk_bytes);
  }
  return extents;
}

bool read_hdf5_strings(hid_t array, UnpackBudget& budget, std::vector<std::string>& out) {
  const Hdf5Handle type(H5Dget_type(array), H5Tclose);
  if (!type || H5Tget_class(type.id()) != H5T_STRING) return false;
  const bool varies = H5Tis_variable_str(type.id()) > 0;
  const std::size_t width = varies ? sizeof(char*) : H5Tget_size(type.id());
  const std::vector<hsize_t> extents = hdf5_extents(array, width + sizeof(std::string), budget);
  if (extents.size() != 1 || width == 0) return false;
  const auto count = std::size_t(extents[0]);
  if (varies) {
    TextArena arena(budget);
    const Hdf5Handle transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
    H5Pset_vlen_mem_manager(transfer.id(), &TextArena::allocate, &arena, &TextArena::keep, &arena);
    std::vector<char*> texts(count, nullptr);
    if (H5Dread(array, type.id(), H5S_ALL, H5S_ALL, transfer.id(), texts.data()) < 0) return false;
    for (const char* text : texts) out.emplace_back(text == nullptr ? "" : text);
    return true;
  }
  std::vector<char> texts(count * width);
  if (H5Dread(array, type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data()) < 0) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view text(texts.data() + i * width, width);
    out.emplace_back(text.substr(0, text.find('\0')));
  }
  return true;
}

}  // namespace fedep
