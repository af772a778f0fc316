#include "fedep/data/image/leaf.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fedep/data/data_file.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;
constexpr const char* kName = "leaf";

// Follows the JSON as it is parsed. depth_, section_ and field_ say where we are; what lies outside
// the parts we know (LEAF also writes "hierarchies") is passed over.
class LeafHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  LeafHandler(fs::path path, ImagePart& part) : file_(std::move(path)), part_(part) {}

  std::size_t skipped() const { return skipped_; }

  void finish() const {
    if (!seen_user_data_) refuse("have user_data", "has none");
    if (announced_.size() != users_.size()) {
      refuse(fmt::format("have one num_samples for each of {} users", users_.size()),
             fmt::format("has {}", announced_.size()));
    }
    for (std::size_t u = 0; u < users_.size(); ++u) {
      const auto found = counted_.find(users_[u]);
      const std::size_t came = found == counted_.end() ? 0 : found->second;
      if (announced_[u] != double(came)) {
        refuse(fmt::format("have {} samples of user {}", announced_[u], shown(users_[u])),
               fmt::format("has {}", came));
      }
    }
  }

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool number_integer(number_integer_t value) override { return number(double(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(double(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }

  bool string(string_t& value) override {
    if (depth_ == 2 && section_ == "users") {
      users_.push_back(value);
      return true;
    }
    return other();
  }

  bool start_object(std::size_t) override {
    // Depth 1: the file; 2: user_data; 3: a user.
    if (field_ != Field::none) refuse("have numbers in x and y", "has an object there");
    ++depth_;
    if (depth_ == 2 && section_ == "user_data") seen_user_data_ = true;
    return true;
  }

  bool key(string_t& value) override {
    if (depth_ == 1) section_ = value;
    if (in_user_data() && depth_ == 2) user_ = value;
    if (in_user_data() && depth_ == 3) {
      field_ = value == "x" ? Field::x : value == "y" ? Field::y : Field::none;
    }
    return true;
  }

  bool end_object() override {
    if (in_user_data() && depth_ == 3) end_user();
    --depth_;
    return true;
  }

  bool start_array(std::size_t) override {
    ++depth_;
    // Depth 4: all images or labels of a user; 5: one image.
    if (in_user_data() && depth_ == 5 && field_ == Field::x) begin_image();
    return true;
  }

  bool end_array() override {
    if (in_user_data() && depth_ == 5 && field_ == Field::x) end_image();
    if (in_user_data() && depth_ == 4) field_ = Field::none;
    --depth_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    refuse("be JSON", fmt::format("is not, at byte {}", position));
  }

 private:
  enum class Field { none, x, y };

  [[noreturn]] void refuse(std::string_view expected, const std::string& came) const {
    throw InputError(fmt::format("{}: {} must {}, but {}", kName, file_.string(), expected, came));
  }

  bool in_user_data() const { return seen_user_data_ && section_ == "user_data"; }

  bool number(double value) {
    if (depth_ == 2 && section_ == "num_samples") announced_.push_back(value);
    if (!in_user_data()) return true;
    if (field_ == Field::x && depth_ == 5) {
      const auto byte = pixel_byte(value);
      image_is_good_ = image_is_good_ && byte.has_value();
      if (++image_size_ <= kEmnistPixels) pixels_.push_back(byte.value_or(0));
    } else if (field_ == Field::x) {
      refuse(fmt::format("have a list of {} numbers per image", kEmnistPixels), "has a number");
    } else if (field_ == Field::y && depth_ == 4) {
      const bool good = value >= 0 && value < kEmnistClasses && value == double(int(value));
      labels_.push_back(good ? std::int32_t(value) : -1);
    }
    return true;
  }

  // A string, null or truth value where a number belongs spoils that record only.
  bool other() {
    if (in_user_data() && field_ == Field::x && depth_ == 5) image_is_good_ = false;
    if (in_user_data() && field_ == Field::y && depth_ == 4) labels_.push_back(-1);
    return true;
  }

  void begin_image() {
    image_is_good_ = true;
    image_size_ = 0;
  }

  void end_image() {
    good_.push_back(image_is_good_ && image_size_ == kEmnistPixels);
    // A bad image leaves nothing: "[]" would cost 784 bytes.
    good_images_ += good_.back();
    pixels_.resize(good_images_ * kEmnistPixels);
  }

  void end_user() {
    if (good_.size() != labels_.size()) {
      refuse(fmt::format("have as many labels as images of user {}", shown(user_)),
             fmt::format("has {} images and {} labels", good_.size(), labels_.size()));
    }
    if (!counted_.emplace(user_, good_.size()).second) {
      refuse(fmt::format("have user {} once", shown(user_)), "has it twice");
    }
    std::size_t place = 0;  // among the good images
    for (std::size_t i = 0; i < good_.size(); ++i) {
      if (good_[i] && labels_[i] >= 0) {
        add_image(part_, user_, std::span(pixels_).subspan(place * kEmnistPixels, kEmnistPixels),
                  labels_[i]);
      } else {
        ++skipped_;
      }
      place += good_[i];
    }
    pixels_.clear();
    good_images_ = 0;
    good_.clear();
    labels_.clear();
    field_ = Field::none;
  }

  fs::path file_;
  ImagePart& part_;
  std::vector<std::string> users_;
  std::vector<double> announced_;
  std::map<std::string, std::size_t> counted_;  // records of each user, bad ones too
  std::size_t skipped_ = 0;

  int depth_ = 0;
  bool seen_user_data_ = false;
  std::string section_;
  std::string user_;
  Field field_ = Field::none;
  bool image_is_good_ = true;
  std::size_t image_size_ = 0;
  std::vector<std::uint8_t> pixels_;  // of the good images of the user at hand
  std::size_t good_images_ = 0;
  std::vector<bool> good_;
  std::vector<std::int32_t> labels_;
};

std::size_t read_folder(const fs::path& folder, ImagePart& part) {
  std::vector<fs::path> files = files_in(kName, folder);
  std::erase_if(files, [](const fs::path& file) { return file.extension() != ".json"; });
  if (files.empty()) throw InputError(missing_data(kName, folder / "*.json"));
  std::size_t skipped = 0;
  for (const fs::path& file : files) skipped += read_leaf_file(file, part);
  return skipped;
}

}  // namespace

std::size_t read_leaf_file(const fs::path& path, ImagePart& part) {
  FileDescriptor file = open_data_file(kName, path);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(::fdopen(file.get(), "rb"), std::fclose);
  if (!in) throw RunError(fmt::format("{}: cannot read {}", kName, path.string()));
  file.release();  // fclose closes it
  LeafHandler handler(path, part);
  nlohmann::json::sax_parse(in.get(), &handler);
  handler.finish();
  return handler.skipped();
}

std::unique_ptr<Dataset> open_leaf(const DataSettings& settings, std::uint64_t seed,
                                   const fs::path& folder) {
  const fs::path here = folder / settings.path;
  ImageTask task{.info = emnist_info(kName), .train = {}, .test = {}};
  task.info.skipped_records += read_folder(here / "train", task.train);
  task.info.skipped_records += read_folder(here / "test", task.test);
  return make_image_dataset(std::move(task), settings, seed, here);
}

}  // namespace fedep
