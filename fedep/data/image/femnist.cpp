#include "fedep/data/image/femnist.h"

#include <charconv>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/data_file.h"
#include "fedep/data/image/image_dataset.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr const char* kName = "femnist";
constexpr std::uint8_t kTest = 1;
constexpr std::uint8_t kUnsplit = 2;

std::vector<std::string> split_tabs(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  return fields;
}

bool reads_as(const std::string& text, std::size_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

struct Writer {
  std::string id;
  std::size_t images = 0;
};

std::vector<Writer> read_writers(const std::filesystem::path& path) {
  std::istringstream in(read_data_text(kName, path));
  std::string line;
  std::getline(in, line);
  if (line != "index\twriter_id\tcomplete\tn_samples") {
    throw InputError(
        fmt::format("{}: first line of {} must be index, writer_id, complete, n_samples, but is {}",
                    kName, path.string(), shown(line)));
  }
  std::vector<Writer> writers;
  while (std::getline(in, line)) {
    const std::vector<std::string> fields = split_tabs(line);
    Writer writer;
    std::size_t index = 0;
    if (fields.size() != 4 || !reads_as(fields[0], index) || index != writers.size() ||
        fields[1].empty() || !reads_as(fields[3], writer.images)) {
      throw InputError(
          fmt::format("{}: line {} of {} must be {}, an id, 0 or 1, a count, but is {}", kName,
                      writers.size() + 2, path.string(), writers.size(), shown(line)));
    }
    writer.id = fields[1];
    writers.push_back(std::move(writer));
  }
  return writers;
}

}  // namespace

std::unique_ptr<Dataset> open_femnist(const DataSettings& settings, std::uint64_t seed,
                                      const std::filesystem::path& folder) {
  const std::filesystem::path here = folder / settings.path;
  const std::vector<Writer> writers = read_writers(here / "writers.tsv");
  const auto labels = read_data_file(kName, here / "labels.u8");
  const auto splits = read_data_file(kName, here / "leaf_split.u8");
  const auto writer_of = read_data_file(kName, here / "writer.u16le");
  const auto images = read_data_file(kName, here / "images.u8");
  const std::size_t count = labels.size();
  check_data_size(kName, here / "leaf_split.u8", splits.size(), count);
  check_data_size(kName, here / "writer.u16le", writer_of.size(), 2 * count);
  check_data_size(kName, here / "images.u8", images.size(), kEmnistPixels * count);

  ImageTask task{.info = emnist_info(kName), .train = {}, .test = {}};
  std::vector<std::size_t> images_of(writers.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t writer = little_u16(writer_of.data() + 2 * i);
    if (writer < writers.size()) ++images_of[writer];
    if (writer >= writers.size() || labels[i] >= kEmnistClasses || splits[i] > kUnsplit) {
      ++task.info.skipped_records;
      continue;
    }
    if (splits[i] == kUnsplit) continue;
    add_image(splits[i] == kTest ? task.test : task.train, writers[writer].id,
              std::span(images).subspan(i * kEmnistPixels, kEmnistPixels), labels[i]);
  }
  for (std::size_t w = 0; w < writers.size() && task.info.skipped_records == 0; ++w) {
    if (images_of[w] != writers[w].images) {
      throw InputError(
          fmt::format("{}: writer {} must have {} images, as writers.tsv says, but "
                      "writer.u16le has {}",
                      kName, shown(writers[w].id), writers[w].images, images_of[w]));
    }
  }
  return make_image_dataset(std::move(task), settings, seed, here);
}

}  // namespace fedep
