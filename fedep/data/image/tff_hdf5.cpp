#include "fedep/data/image/tff_hdf5.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/data/hdf5_file.h"
#include "fedep/data/read_apart.h"
#include "fedep/message/check.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;
constexpr const char* kName = "tff_hdf5";

[[noreturn]] void refuse(const fs::path& path, std::string_view expected, std::string_view came) {
  throw InputError(fmt::format("{}: {} must {}, but {}", kName, path.string(), expected, came));
}

// A numeric data set of a client, read as T; its extents go to `shape`.
template <class T>
std::vector<T> read_numbers(const fs::path& path, hid_t client, const std::string& id,
                            const char* name, hid_t memory_type, UnpackBudget& budget,
                            std::vector<hsize_t>& shape) {
  const auto thing = [&] { return fmt::format("have {}/{}", shown(id), name); };
  const Hdf5Handle set = open_hdf5_array(client, name);
  if (!set) refuse(path, thing(), "has not");
  const Hdf5Handle type(H5Dget_type(set.id()), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.id());
  const bool is_number = (kind == H5T_INTEGER || kind == H5T_FLOAT) && H5Tget_size(type.id()) <= 16;
  if (!is_number) refuse(path, thing() + " of numbers", "has not");
  shape = hdf5_extents(set.id(), sizeof(T), budget);
  if (shape.empty()) refuse(path, thing() + " of 1 to 4 dimensions", "has not");
  std::size_t count = 1;
  for (const hsize_t extent : shape) count *= std::size_t(extent);
  std::vector<T> values(count);
  if (count > 0 &&
      H5Dread(set.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    refuse(path, thing(), "it cannot be read");
  }
  return values;
}

// In the other process: a record for each client, its bad examples left out and counted.
void send_client(const fs::path& path, hid_t group, const std::string& id, UnpackBudget& budget,
                 const RecordSender& send) {
  const Hdf5Handle client = open_hdf5_group(group, id);
  if (!client) refuse(path, fmt::format("have examples/{} as a group", shown(id)), "has not");
  std::vector<hsize_t> label_shape;
  std::vector<hsize_t> pixel_shape;
  const auto labels = read_numbers<std::int64_t>(path, client.id(), id, "label", H5T_NATIVE_INT64,
                                                 budget, label_shape);
  const auto pixels =
      read_numbers<float>(path, client.id(), id, "pixels", H5T_NATIVE_FLOAT, budget, pixel_shape);
  if (pixels.size() != labels.size() * kEmnistPixels || pixel_shape[0] != label_shape[0]) {
    refuse(path, fmt::format("have {}/pixels of shape [{}, 28, 28]", shown(id), labels.size()),
           fmt::format("has [{}]", fmt::join(pixel_shape, ", ")));
  }
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> good_labels;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    bool good = labels[i] >= 0 && labels[i] < kEmnistClasses;
    for (std::size_t k = 0; k < kEmnistPixels; ++k) {
      const auto byte = pixel_byte(double(pixels[i * kEmnistPixels + k]));
      good = good && byte.has_value();
      images.push_back(byte.value_or(0));
    }
    if (good) good_labels.push_back(std::int32_t(labels[i]));
    images.resize(good_labels.size() * kEmnistPixels);
  }
  const std::vector<std::uint8_t> name(id.begin(), id.end());
  const std::vector<std::int64_t> skipped{std::int64_t(labels.size() - good_labels.size())};
  const std::vector<SectionView> sections{{"client", std::span<const std::uint8_t>(name)},
                                          {"pixels", std::span<const std::uint8_t>(images)},
                                          {"labels", std::span<const std::int32_t>(good_labels)},
                                          {"skipped", std::span<const std::int64_t>(skipped)}};
  send(sections);
}

void send_file(const fs::path& path, const RecordSender& send) {
  Hdf5File file(kName, path);
  const Hdf5Handle group = open_hdf5_group(file.id(), "examples");
  if (!group) refuse(path, "have a group examples", "has none");
  std::vector<std::string> names;
  if (!list_hdf5_names(group.id(), file.most_names(), names)) {
    refuse(path, "name its clients", "their list cannot be read");
  }
  for (const std::string& id : names) send_client(path, group.id(), id, file.budget(), send);
}

}  // namespace

std::size_t read_tff_hdf5(const fs::path& path, ImagePart& part) {
  std::size_t skipped = 0;
  const auto take = [&](Record record) {
    const auto name = record.extract<std::uint8_t>("client");
    const auto pixels = record.extract<std::uint8_t>("pixels");
    const auto labels = record.extract<std::int32_t>("labels");
    check_same_size("client", "pixels", labels.size() * kEmnistPixels, pixels.size());
    skipped += std::size_t(record.extract<std::int64_t>("skipped").at(0));
    for (std::size_t i = 0; i < labels.size(); ++i) {
      check_in("client", "label", labels[i], 0, kEmnistClasses - 1);
      add_image(part, {reinterpret_cast<const char*>(name.data()), name.size()},
                std::span(pixels).subspan(i * kEmnistPixels, kEmnistPixels), labels[i]);
    }
  };
  read_apart(
      kName, path, [&](const RecordSender& send) { send_file(path, send); }, take);
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
