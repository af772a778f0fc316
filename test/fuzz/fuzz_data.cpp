#include <memory>

#include "fedep/data/image/idx.h"
#include "fedep/data/image/leaf.h"
#include "fedep/data/image/tff_hdf5.h"
#include "fedep/data/image/tff_sqlite.h"
#include "fedep/data/shard/shard.h"
#include "fedep/data/shard/shard_manifest.h"
#include "fedep/data/table/table_features.h"
#include "fedep/data/table/tabular.h"
#include "fedep/data/table/unlike_rows.h"
#include "fedep/data/text/stackoverflow_tff.h"
#include "test/fuzz/fuzz_targets.h"

namespace fedep {
namespace {

const DataSettings kWards{.name = "tabular",
                          .path = "table.csv",
                          .client_column = "ward",
                          .label_column = "died",
                          .categories = {"unit"}};

void check_part(const ImagePart& part, std::size_t pixels) {
  if (part.pixels.size() != pixels * part.labels.size()) report_finding("images lack pixels");
}

}  // namespace

void fuzz_csv(FuzzInput input) {
  fuzz_file("table.csv", input);
  expect_taken_or_refused([&] {
    const DelimitedTable table = parse_delimited(text_of(input), kCsv, "table.csv");
    for (const auto& row : table.rows) {
      if (row.size() != table.columns.size()) report_finding("a row has not the columns' number");
    }
    const auto records = read_records(fuzz_folder() / "table.csv", kCsv);
    std::size_t rows = 0;
    while (records->next()) ++rows;
    if (rows != table.rows.size()) report_finding("a file has not the rows of its text");
  });
  expect_taken_or_refused([&] { open_tabular(kWards, 1, fuzz_folder()); });
}

void fuzz_features(FuzzInput input) {
  expect_taken_or_refused([&] {
    const TableFeatures features = parse_table_features(text_of(input), "features.json");
    const std::string text = to_json(features);
    if (to_json(parse_table_features(text, "again")) != text) {
      report_finding("features are not what they are written as");
    }
    info_of(features);
    constant_columns(features);
    const DelimitedTable rows = parse_delimited("age,unit\n1,ICU\n-2e9,x\n", kCsv, "rows.csv");
    expect_taken_or_refused([&] { unlike_rows(rows, encode_table(rows, features), features); });
  });
}

void fuzz_idx(FuzzInput input) {
  const auto file = fuzz_file("images.idx", input);
  expect_taken_or_refused([&] {
    const IdxArray array = read_idx("idx", file);
    std::size_t count = 1;
    for (const std::size_t extent : array.dimensions) count *= extent;
    if (count != array.values.size()) report_finding("an array has not as many values as it says");
  });
}

void fuzz_leaf(FuzzInput input) {
  const auto file = fuzz_file("leaf.json", input);
  ImagePart part;
  expect_taken_or_refused([&] { read_leaf_file(file, part); });
  check_part(part, kEmnistPixels);
}

void fuzz_hdf5(FuzzInput input) {
  const auto file = fuzz_file("emnist.h5", input);
  ImagePart part;
  expect_taken_or_refused([&] { read_tff_hdf5(file, part); });
  check_part(part, kEmnistPixels);
}

void fuzz_hdf5_text(FuzzInput input) {
  fuzz_file(kTffTrainFile, input);
  fuzz_file(kTffTestFile, input);
  expect_taken_or_refused([&] { open_stackoverflow_tff({}, 1, fuzz_folder()); });
}

void fuzz_sqlite(FuzzInput input) {
  fuzz_file("emnist_all.sqlite", input);
  expect_taken_or_refused([&] { open_tff_sqlite({}, 1, fuzz_folder()); });
}

void fuzz_shard(FuzzInput input) {
  const std::string repaired = with_right_checksums(input);
  for (const std::string_view bytes : {text_of(input), std::string_view(repaired)}) {
    expect_taken_or_refused([&] {
      const Shard shard = parse_shard(std::as_bytes(std::span(bytes)), "a.shard");
      if (parse_shard(shard_bytes(shard), "again").client != shard.client) {
        report_finding("a shard is not what it is written as");
      }
    });
  }
}

void fuzz_manifest(FuzzInput input) {
  const auto file = fuzz_file("shards/manifest.json", input);
  expect_taken_or_refused([&] {
    const ShardManifest manifest = read_manifest(file.parent_path());
    for (const ShardEntry& entry : manifest.shards) {
      if (entry.file.find('/') != entry.file.npos) report_finding("a shard lies elsewhere");
    }
  });
}

}  // namespace fedep
