#include "fedep/data/image/tff_hdf5.h"

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>

#include "fedep/data/data_file.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;
constexpr const char* kName = "tff_hdf5";
constexpr hsize_t kMaxExamples = 1'000'000;  // of one client; beyond, the file is broken

// An HDF5 identifier that closes itself.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  explicit operator bool() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// HDF5 prints every failed call to stderr; not while this lives.
class Quiet {
 public:
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

[[noreturn]] void refuse(const fs::path& path, std::string_view expected, std::string_view came) {
  throw InputError(fmt::format("{}: {} must {}, but {}", kName, path.string(), expected, came));
}

std::vector<std::string> link_names(const fs::path& path, hid_t group) {
  H5G_info_t info{};
  if (H5Gget_info(group, &info) < 0) refuse(path, "have a group examples", "it cannot be read");
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const ssize_t size =
        H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, nullptr, 0, H5P_DEFAULT);
    std::string name(size > 0 ? std::size_t(size) : 0, '\0');
    if (size <= 0 || H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(),
                                        name.size() + 1, H5P_DEFAULT) < 0) {
      refuse(path, "name its clients", fmt::format("client {} has no name that can be read", i));
    }
    names.push_back(std::move(name));
  }
  return names;
}

// A numeric data set of a client, read as T; its extents go to `shape`.
template <class T>
std::vector<T> read_numbers(const fs::path& path, hid_t client, const std::string& id,
                            const char* name, hid_t memory_type, std::vector<hsize_t>& shape) {
  const auto thing = [&] { return fmt::format("have {}/{}", shown(id), name); };
  const Handle set(H5Dopen2(client, name, H5P_DEFAULT), H5Dclose);
  if (!set) refuse(path, thing(), "has not");
  const Handle space(H5Dget_space(set.get()), H5Sclose);
  const Handle type(H5Dget_type(set.get()), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind != H5T_INTEGER && kind != H5T_FLOAT) refuse(path, thing() + " of numbers", "has not");
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 1 || rank > 4) refuse(path, thing() + " of 1 to 4 dimensions", "has not");
  shape.resize(std::size_t(rank));
  H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr);
  std::size_t count = 1;
  for (const hsize_t extent : shape) {
    if (extent > kMaxExamples) {
      refuse(path, thing() + fmt::format(" of at most {} examples", kMaxExamples),
             fmt::format("is of shape [{}]", fmt::join(shape, ", ")));
    }
    count *= std::size_t(extent);
    if (count > kMaxExamples * kEmnistPixels) refuse(path, thing() + " of a sane size", "is huge");
  }
  std::vector<T> values(count);
  if (count > 0 &&
      H5Dread(set.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    refuse(path, thing(), "it cannot be read");
  }
  return values;
}

std::size_t read_client(const fs::path& path, hid_t group, const std::string& id, ImagePart& part) {
  const Handle client(H5Gopen2(group, id.c_str(), H5P_DEFAULT), H5Gclose);
  if (!client) refuse(path, fmt::format("have examples/{} as a group", shown(id)), "has not");
  std::vector<hsize_t> label_shape;
  std::vector<hsize_t> pixel_shape;
  const auto labels =
      read_numbers<std::int64_t>(path, client.get(), id, "label", H5T_NATIVE_INT64, label_shape);
  const auto pixels =
      read_numbers<float>(path, client.get(), id, "pixels", H5T_NATIVE_FLOAT, pixel_shape);
  if (pixels.size() != labels.size() * kEmnistPixels || pixel_shape[0] != label_shape[0]) {
    refuse(path, fmt::format("have {}/pixels of shape [{}, 28, 28]", shown(id), labels.size()),
           fmt::format("has [{}]", fmt::join(pixel_shape, ", ")));
  }
  std::size_t skipped = 0;
  std::array<std::uint8_t, kEmnistPixels> image;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    bool good = labels[i] >= 0 && labels[i] < kEmnistClasses;
    for (std::size_t k = 0; k < kEmnistPixels; ++k) {
      const auto byte = pixel_byte(double(pixels[i * kEmnistPixels + k]));
      good = good && byte.has_value();
      image[k] = byte.value_or(0);
    }
    if (good) {
      add_image(part, id, image, std::int32_t(labels[i]));
    } else {
      ++skipped;
    }
  }
  return skipped;
}

}  // namespace

std::size_t read_tff_hdf5(const fs::path& path, ImagePart& part) {
  check_data_exists(kName, path);
  const Quiet quiet;
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file) refuse(path, "be an HDF5 file", "is not, or is cut off");
  const Handle group(H5Gopen2(file.get(), "examples", H5P_DEFAULT), H5Gclose);
  if (!group) refuse(path, "have a group examples", "has none");
  std::size_t skipped = 0;
  for (const std::string& id : link_names(path, group.get())) {
    skipped += read_client(path, group.get(), id, part);
  }
  return skipped;
}

std::unique_ptr<Dataset> open_tff_hdf5(const DataSettings& settings, std::uint64_t seed,
                                       const fs::path& folder) {
  const fs::path here = folder / settings.path;
  ImageTask task{.info = emnist_info(kName), .train = {}, .test = {}};
  task.info.skipped_records += read_tff_hdf5(here / "fed_emnist_train.h5", task.train);
  task.info.skipped_records += read_tff_hdf5(here / "fed_emnist_test.h5", task.test);
  return make_image_dataset(std::move(task), settings, seed, here);
}

}  // namespace fedep
