#include "fedep/data/image/cropped_dataset.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

void check_ids(std::string_view what, std::span<const std::string> ids) {
  std::set<std::string_view> seen;
  for (const std::string& id : ids) {
    if (!seen.insert(id).second) fail(what, "client ids", "different", shown(id) + " twice");
  }
}

class CroppedDataset final : public Dataset {
 public:
  CroppedDataset(DatasetInfo info, CroppedImages train, Part test, bool augment)
      : info_(std::move(info)),
        train_(std::move(train)),
        test_(std::move(test)),
        augment_(augment) {
    const std::string what = fmt::format("data set {}", info_.name);
    const std::size_t images = train_.clients.offsets.back();
    check_same_size(what, "pixels", images * train_.crop.image_size(), train_.pixels.size());
    check_same_size(what, "labels", images, train_.labels.size());
    check_same_size(what, "features",
                    train_.projection ? train_.projection->components() : train_.crop.crop_size(),
                    info_.feature_count());
    if (train_.projection) {
      check_same_size(what, "pixels of a crop", train_.crop.crop_size(),
                      train_.projection->features());
    }
    check_same_size(what, "held-out rows", test_.clients.offsets.back(), test_.rows->rows());
    check_ids(what, train_.clients.ids);
    check_ids(what, test_.clients.ids);
    for (std::size_t k = 0; k < train_.clients.ids.size(); ++k) {
      const std::size_t begin = train_.clients.offsets[k], end = train_.clients.offsets[k + 1];
      if (begin == end) fail(what, "client " + train_.clients.ids[k], "with images", "without any");
      clients_.emplace_back(train_.clients.ids[k], end - begin);
      images_.emplace_back(end - begin);
      std::iota(images_.back().begin(), images_.back().end(), std::uint32_t(begin));
    }
    if (clients_.empty()) fail(what, "clients", "at least one", "none");
  }

  const DatasetInfo& info() const override { return info_; }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }

  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override {
    const std::vector<std::uint32_t>& own = images_.at(client);
    const std::optional<Stream> stream =
        augment_ && augmentation ? std::optional<Stream>(*augmentation) : std::nullopt;
    const std::size_t pixels = train_.crop.crop_size(), stored = train_.crop.image_size();
    out.size = examples.size();
    out.labels.resize(out.size);
    std::vector<float> crops;  // to be projected
    if (train_.projection) crops.resize(out.size * pixels);
    out.dense.resize(out.size * info_.feature_count());
    std::vector<float>& to = train_.projection ? crops : out.dense;
    for (std::size_t i = 0; i < out.size; ++i) {
      const std::size_t image = own.at(examples[i]);
      const Crop crop =
          stream ? random_crop(train_.crop, *stream, examples[i]) : centre_crop(train_.crop);
      standardised_crop(train_.crop, std::span(train_.pixels).subspan(image * stored, stored), crop,
                        std::span(to).subspan(i * pixels, pixels));
      out.labels[i] = train_.labels[image];
    }
    if (train_.projection) (*train_.projection)(crops, out.dense);
  }

  std::optional<RawImages> raw_images() const override {
    return RawImages{.pixels = train_.pixels,
                     .labels = train_.labels,
                     .clients = images_,
                     .crop = train_.crop,
                     .random_crops = augment_,
                     .projection = train_.projection.get()};
  }

  std::size_t test_size() const override { return test_.size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    test_.batch(begin, end, out);
  }
  const std::vector<std::string>& test_clients() const override { return test_.clients.ids; }
  std::size_t test_client(std::size_t example) const override { return test_.client_of(example); }

 private:
  DatasetInfo info_;
  CroppedImages train_;
  Part test_;
  bool augment_;
  std::vector<std::pair<std::string, std::size_t>> clients_;
  std::vector<std::vector<std::uint32_t>> images_;  // of each client
};

}  // namespace

std::unique_ptr<Dataset> cropped_dataset(DatasetInfo info, CroppedImages train, Part test,
                                         bool augment) {
  return std::make_unique<CroppedDataset>(std::move(info), std::move(train), std::move(test),
                                          augment);
}

}  // namespace fedep
