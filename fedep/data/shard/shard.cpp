#include "fedep/data/shard/shard.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "fedep/data/image/image_dataset.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/check.h"
#include "fedep/message/parse_json.h"
#include "fedep/message/record.h"

namespace fedep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "fedep.shard";
constexpr int kVersion = 1;
constexpr const char* kTargets[] = {"label", "binary", "tags", "real",
                                    "count"};  // as in TargetKind

std::string text_of(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::exception&) {
    throw InputError("shard: names must be UTF-8, but are not");
  }
}

// Sizes that others multiply: none so large that a product of theirs could begin again at zero.
constexpr double kMostFeatures = std::numeric_limits<std::int32_t>::max();
constexpr double kMostSide = 1 << 15;

void check_names(std::string_view name, std::span<const std::string> names, std::size_t count) {
  if (!names.empty()) check_same_size("about", name, count, names.size());
}

void check_info(const DatasetInfo& info) {
  double features = 1;
  for (const std::int64_t extent : info.features) {
    check_in("about", "extent of features", double(extent), 1, kMostFeatures);
    features *= double(extent);
    check_in("about", "number of features", features, 1, kMostFeatures);
  }
  const bool has_one = info.target != TargetKind::label && info.target != TargetKind::tags;
  check_in("about", "outputs", double(info.outputs), 1, has_one ? 1 : kMostFeatures);
  check_names("feature_names", info.feature_names, info.feature_count());
  check_names("output_names", info.output_names, info.outputs);
}

DatasetInfo info_of(const Json& json) {
  DatasetInfo info;
  info.name = json.at("data");
  info.features = json.at("features").get<std::vector<std::int64_t>>();
  info.sparse = json.at("sparse");
  const auto target = std::find(std::begin(kTargets), std::end(kTargets), json.at("target"));
  if (target == std::end(kTargets)) {
    throw InputError(fmt::format("target must be {}, but is {}", fmt::join(kTargets, ", "),
                                 json.at("target").dump().substr(0, 80)));
  }
  info.target = TargetKind(target - std::begin(kTargets));
  info.outputs = json.at("outputs");
  info.feature_names = json.at("feature_names").get<std::vector<std::string>>();
  info.output_names = json.at("output_names").get<std::vector<std::string>>();
  const std::string table = json.at("table");
  if (!table.empty()) {
    info.table = std::make_shared<const TableFeatures>(parse_table_features(table, "table"));
    info.has_exposure = info.table->spec.has_exposure();
  }
  check_info(info);
  return info;
}

// Images in [0, 1] that were bytes once; none if a value was not.
std::optional<std::vector<std::uint8_t>> as_bytes_over_255(std::span<const float> values) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(values.size());
  for (const float value : values) {
    const std::optional<std::uint8_t> byte = pixel_byte(double(value));
    if (!byte || float(*byte) / 255.0f != value || std::signbit(value)) return std::nullopt;
    bytes.push_back(*byte);
  }
  return bytes;
}

// Sections whose arrays live here until they are written.
class Sections {
 public:
  void add(std::string name, Array values) {
    record_.sections.push_back({std::move(name), std::move(values)});
  }
  void add(const std::string& prefix, const SparseRows& rows) {
    add(prefix + "offsets", std::vector<std::int64_t>(rows.offsets.begin(), rows.offsets.end()));
    add(prefix + "columns", std::vector<std::int32_t>(rows.columns.begin(), rows.columns.end()));
    add(prefix + "values", rows.values);
  }
  void add(const std::string& prefix, const Batch& batch, bool is_image) {
    std::optional<std::vector<std::uint8_t>> bytes;
    if (is_image) bytes = as_bytes_over_255(batch.dense);
    if (bytes) {
      add(prefix + "bytes", *std::move(bytes));
    } else {
      add(prefix + "dense", batch.dense);
    }
    if (batch.sparse.rows() > 0) add(prefix + "sparse.", batch.sparse);
    if (batch.tags.rows() > 0) add(prefix + "tags.", batch.tags);
    if (!batch.labels.empty()) add(prefix + "labels", batch.labels);
    if (!batch.reals.empty()) add(prefix + "reals", batch.reals);
    if (!batch.log_exposure.empty()) add(prefix + "log_exposure", batch.log_exposure);
  }
  std::vector<std::byte> bytes() const { return record_bytes(view(record_)); }

 private:
  Record record_;
};

// Whether `came` values are `size` rows of `each`, which is positive; products may be too large.
void check_rows(std::string_view prefix, std::string_view name, std::size_t size, std::size_t each,
                std::size_t came) {
  if (came % each == 0 && came / each == size) return;
  fail(prefix, name, fmt::format("of {} rows of {}", size, each), fmt::format("of {}", came));
}

SparseRows take_rows(Record& record, const std::string& prefix, std::size_t columns) {
  SparseRows rows;
  const auto offsets = record.extract<std::int64_t>(prefix + "offsets");
  const auto places = record.extract<std::int32_t>(prefix + "columns");
  rows.values = record.extract<float>(prefix + "values");
  std::int64_t before = 0;
  const bool starts = !offsets.empty() && offsets.front() == 0;
  bool ascending = starts && offsets.back() == std::int64_t(places.size());
  for (const std::int64_t offset : offsets)
    ascending = ascending && offset >= std::exchange(before, offset);
  if (!ascending) throw InputError(prefix + "offsets must ascend from 0, but do not");
  for (const std::int32_t place : places) {
    if (place < 0 || std::size_t(place) >= columns) {
      throw InputError(
          fmt::format("{}columns must be below {}, but one is {}", prefix, columns, place));
    }
  }
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    const auto begin = places.begin() + offsets[row], end = places.begin() + offsets[row + 1];
    if (std::adjacent_find(begin, end, std::greater_equal()) == end) continue;
    throw InputError(fmt::format("{}columns of row {} must ascend, but do not", prefix, row));
  }
  if (!rows.values.empty()) check_same_size(prefix, "values", places.size(), rows.values.size());
  rows.offsets.assign(offsets.begin(), offsets.end());
  rows.columns.assign(places.begin(), places.end());
  return rows;
}

void check_labels(std::span<const std::int32_t> labels, const DatasetInfo& info) {
  const std::int64_t most = info.target == TargetKind::binary ? 2 : std::int64_t(info.outputs);
  for (const std::int32_t label : labels) {
    if (label >= 0 && label < most) continue;
    throw InputError(fmt::format("labels must be below {}, but one is {}", most, label));
  }
}

// Counts are read already; exposures are there or not.
void take_counts(Record& record, const std::string& prefix, Batch& batch) {
  for (const float count : batch.reals) {
    if (count >= 0 && count == std::floor(count) && std::isfinite(count)) continue;
    throw InputError(
        fmt::format("{}reals must be whole, zero or more, but one is {}", prefix, count));
  }
  if (!record.has(prefix + "log_exposure")) return;
  batch.log_exposure = record.extract<float>(prefix + "log_exposure");
  check_same_size(prefix, "exposures", batch.size, batch.log_exposure.size());
  for (const float exposure : batch.log_exposure) {
    check_finite(prefix, "log_exposure", double(exposure));
  }
}

// `size` examples; what they must have follows from what the data are.
Batch take_batch(Record& record, const std::string& prefix, std::size_t size,
                 const DatasetInfo& info) {
  Batch batch;
  batch.size = size;
  if (record.has(prefix + "bytes")) {
    for (const std::uint8_t byte : record.extract<std::uint8_t>(prefix + "bytes")) {
      batch.dense.push_back(float(byte) / 255.0f);
    }
  } else {
    batch.dense = record.extract<float>(prefix + "dense");
  }
  check_rows(prefix, "features", info.sparse ? 0 : size, info.feature_count(), batch.dense.size());
  if (size == 0) return batch;
  if (info.sparse) {
    batch.sparse = take_rows(record, prefix + "sparse.", info.feature_count());
    check_same_size(prefix, "rows", size, batch.sparse.rows());
  }
  if (info.target == TargetKind::tags) {
    batch.tags = take_rows(record, prefix + "tags.", info.outputs);
    check_same_size(prefix, "rows of tags", size, batch.tags.rows());
    check_same_size(prefix, "values of tags", 0, batch.tags.values.size());
  } else if (info.target == TargetKind::real || info.target == TargetKind::count) {
    batch.reals = record.extract<float>(prefix + "reals");
    check_same_size(prefix, "numbers to predict", size, batch.reals.size());
    if (info.target == TargetKind::count) take_counts(record, prefix, batch);
  } else {
    batch.labels = record.extract<std::int32_t>(prefix + "labels");
    check_same_size(prefix, "labels", size, batch.labels.size());
    check_labels(batch.labels, info);
  }
  return batch;
}

ShardImages take_images(Record& record, const Json& crop, std::size_t size,
                        const DatasetInfo& info) {
  ShardImages images;
  images.crop = {crop.at("side"), crop.at("crop_side"), crop.at("channels")};
  check_in("crop", "side", double(images.crop.side), 1, kMostSide);
  check_in("crop", "crop_side", double(images.crop.crop_side), 1, double(images.crop.side));
  check_in("crop", "channels", double(images.crop.channels), 1, kMostSide);
  images.pixels = record.extract<std::uint8_t>("train.images");
  images.labels = record.extract<std::int32_t>("train.labels");
  check_rows("train", "pixels", size, images.crop.image_size(), images.pixels.size());
  check_same_size("train", "labels", size, images.labels.size());
  check_labels(images.labels, info);
  if (record.has("projection.panels")) {
    images.projection = std::make_shared<const PcaProjection>(
        images.crop.crop_size(), record.extract<float>("projection.panels"),
        record.extract<float>("projection.offset"));
  }
  return images;
}

Shard shard_of(Record record, const Shard* known) {
  const auto text = record.extract<std::uint8_t>("header");
  const Json header = parse_json({reinterpret_cast<const char*>(text.data()), text.size()});
  if (header.at("format") != kFormat) throw InputError("format must be fedep.shard, but is not");
  if (header.at("version") != kVersion) {
    throw InputError(fmt::format("version must be {}, but is {}", kVersion,
                                 header.at("version").dump().substr(0, 80)));
  }
  Shard shard;
  shard.client = header.at("client");
  const auto about = record.extract<std::uint8_t>("about");
  shard.about.assign(about.begin(), about.end());
  const bool is_known = known != nullptr && !known->about.empty() && known->about == shard.about;
  shard.info = is_known ? known->info : info_of(parse_json(shard.about));
  const std::size_t train = header.at("train"), test = header.at("test");
  if (header.at("crop").is_null()) {
    shard.train = take_batch(record, "train.", train, shard.info);
  } else {
    shard.images = take_images(record, header.at("crop"), train, shard.info);
  }
  if (record.has("train.groups")) {
    shard.groups = record.extract<std::int32_t>("train.groups");
    check_same_size("train", "groups", train, shard.groups.size());
  }
  shard.test = take_batch(record, "test.", test, shard.info);
  return shard;
}

}  // namespace

std::string about_data(const DatasetInfo& info) {
  return text_of({{"data", info.name},
                  {"features", info.features},
                  {"sparse", info.sparse},
                  {"target", kTargets[std::size_t(info.target)]},
                  {"outputs", info.outputs},
                  {"feature_names", info.feature_names},
                  {"output_names", info.output_names},
                  {"table", info.table ? to_json(*info.table) : ""}});
}

std::vector<std::byte> shard_bytes(const Shard& shard) {
  Json header{{"format", kFormat},           {"version", kVersion},     {"client", shard.client},
              {"train", shard.train_size()}, {"test", shard.test.size}, {"crop", nullptr}};
  if (shard.images) {
    const CropShape& crop = shard.images->crop;
    header["crop"] = {
        {"side", crop.side}, {"crop_side", crop.crop_side}, {"channels", crop.channels}};
  }
  const std::string text = text_of(header);
  const std::string about = shard.about.empty() ? about_data(shard.info) : shard.about;
  Sections sections;
  sections.add("header", std::vector<std::uint8_t>(text.begin(), text.end()));
  sections.add("about", std::vector<std::uint8_t>(about.begin(), about.end()));
  const bool is_image = shard.info.features.size() == 3;
  if (shard.images) {
    sections.add("train.images", shard.images->pixels);
    sections.add("train.labels", shard.images->labels);
    if (const PcaProjection* projection = shard.images->projection.get()) {
      const auto panels = projection->panels(), offset = projection->offset();
      sections.add("projection.panels", std::vector<float>(panels.begin(), panels.end()));
      sections.add("projection.offset", std::vector<float>(offset.begin(), offset.end()));
    }
  } else {
    sections.add("train.", shard.train, is_image);
  }
  if (!shard.groups.empty()) sections.add("train.groups", shard.groups);
  sections.add("test.", shard.test, is_image);
  return sections.bytes();
}

Shard parse_shard(std::span<const std::byte> bytes, const std::string& source, const Shard* known) {
  try {
    return shard_of(read_record(bytes), known);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", source, error.what()));
  } catch (const Json::exception&) {
    throw InputError(fmt::format("{}: header must be a shard's, but cannot be read", source));
  }
}

}  // namespace fedep
