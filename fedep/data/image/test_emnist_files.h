// One small EMNIST in each of its four layouts, for tests.
//
//   const TestImages images = some_emnist(1);
//   write_leaf(folder, images);
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <hdf5.h>
#include <sqlite3.h>
#include <nlohmann/json.hpp>

#include "fedep/data/test_files.h"
#include "fedep/random/stream.h"

namespace fedep {

struct TestImage {
  std::string client;
  bool test = false;
  std::int64_t label = 0;
  std::vector<double> pixels;  // 784 in 0..1
};
using TestImages = std::vector<TestImage>;

// Clients a, b and c with 3, 4 and 5 training examples and one test example each.
inline TestImages some_emnist(std::uint64_t seed) {
  Stream stream({.seed = seed, .purpose = Purpose::test});
  TestImages images;
  for (const std::string client : {"a", "b", "c"}) {
    const int count = 4 + (client[0] - 'a');
    for (int i = 0; i < count; ++i) {
      TestImage image{client, i == 1, std::int64_t(stream.below(62)), {}};
      for (int k = 0; k < 784; ++k) image.pixels.push_back(double(stream.below(256)) / 255.0);
      images.push_back(image);
    }
  }
  return images;
}

inline void write_femnist(const TemporaryFolder& folder, const TestImages& images) {
  std::vector<std::uint8_t> pixels, labels, writers, splits;
  std::vector<std::string> ids;
  std::map<std::string, int> counts;
  for (const TestImage& image : images) {
    if (counts[image.client]++ == 0) ids.push_back(image.client);
    labels.push_back(std::uint8_t(image.label));
    splits.push_back(image.test ? 1 : 0);
    writers.push_back(std::uint8_t(ids.size() - 1));
    writers.push_back(0);
    for (const double p : image.pixels) pixels.push_back(std::uint8_t(p * 255.0 + 0.5));
  }
  std::string table = "index\twriter_id\tcomplete\tn_samples\n";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    table += std::to_string(i) + "\t" + ids[i] + "\t1\t" + std::to_string(counts[ids[i]]) + "\n";
  }
  folder.write("writers.tsv", table);
  folder.write("images.u8", pixels);
  folder.write("labels.u8", labels);
  folder.write("writer.u16le", writers);
  folder.write("leaf_split.u8", splits);
}

inline nlohmann::json leaf_json(const TestImages& images, bool test) {
  nlohmann::json json{{"users", nlohmann::json::array()},
                      {"num_samples", nlohmann::json::array()},
                      {"user_data", nlohmann::json::object()},
                      {"hierarchies", {"unused"}}};
  for (const TestImage& image : images) {
    if (image.test != test) continue;
    json["user_data"][image.client]["x"].push_back(image.pixels);
    json["user_data"][image.client]["y"].push_back(image.label);
  }
  for (const auto& [id, data] : json["user_data"].items()) {
    json["users"].push_back(id);
    json["num_samples"].push_back(data["y"].size());
  }
  return json;
}

inline void write_leaf(const TemporaryFolder& folder, const TestImages& images) {
  folder.write("train/all_data_0.json", leaf_json(images, false).dump());
  folder.write("test/all_data_0.json", leaf_json(images, true).dump());
}

inline void write_hdf5_file(const std::filesystem::path& path, const TestImages& images,
                            bool test) {
  std::map<std::string, std::vector<const TestImage*>> clients;
  for (const TestImage& image : images) {
    if (image.test == test) clients[image.client].push_back(&image);
  }
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(file, "examples", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  for (const auto& [id, own] : clients) {
    std::vector<std::int32_t> labels;
    std::vector<float> pixels;
    for (const TestImage* image : own) {
      labels.push_back(std::int32_t(image->label));
      for (const double p : image->pixels) pixels.push_back(float(p));
    }
    const hid_t client = H5Gcreate2(group, id.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const auto put = [&](const char* name, std::vector<hsize_t> shape, hid_t type,
                         const void* data) {
      const hid_t space = H5Screate_simple(int(shape.size()), shape.data(), nullptr);
      const hid_t set =
          H5Dcreate2(client, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
      H5Dclose(set);
      H5Sclose(space);
    };
    put("label", {labels.size()}, H5T_NATIVE_INT32, labels.data());
    put("pixels", {labels.size(), 28, pixels.size() / labels.size() / 28}, H5T_NATIVE_FLOAT,
        pixels.data());
    H5Gclose(client);
  }
  H5Gclose(group);
  H5Fclose(file);
}

inline void write_hdf5(const TemporaryFolder& folder, const TestImages& images) {
  write_hdf5_file(folder.path() / "fed_emnist_train.h5", images, false);
  write_hdf5_file(folder.path() / "fed_emnist_test.h5", images, true);
}

// Protocol buffers by hand: a field that holds bytes.
inline std::string proto_bytes(int field, const std::string& value) {
  std::string out(1, char(field << 3 | 2));
  std::size_t size = value.size();
  while (size >= 0x80) {
    out.push_back(char((size & 0x7F) | 0x80));
    size >>= 7;
  }
  out.push_back(char(size));
  return out + value;
}

inline std::string proto_floats(const std::vector<double>& values) {
  std::string packed;
  for (const double value : values) {
    const float number = float(value);
    packed.append(reinterpret_cast<const char*>(&number), 4);
  }
  return proto_bytes(2, proto_bytes(1, packed));
}

inline std::string proto_integer(std::int64_t value) {
  std::string packed;
  for (std::uint64_t left = std::uint64_t(value); packed.empty() || left > 0; left >>= 7) {
    packed.push_back(char((left & 0x7F) | (left >= 0x80 ? 0x80 : 0)));
  }
  return proto_bytes(3, proto_bytes(1, packed));
}

inline std::string proto_entry(const std::string& name, const std::string& feature) {
  return proto_bytes(1, proto_bytes(1, name) + proto_bytes(2, feature));
}

inline std::string emnist_proto(const TestImage& image) {
  return proto_bytes(1, proto_entry("pixels", proto_floats(image.pixels)) +
                            proto_entry("label", proto_integer(image.label)));
}

// Rows of (split, client, message); client_metadata counts them, plus `miscount` for the first.
struct SqliteRow {
  std::string split, client, message;
};
inline void write_sqlite_rows(const std::filesystem::path& path, const std::vector<SqliteRow>& rows,
                              int miscount = 0) {
  sqlite3* db = nullptr;
  sqlite3_open(path.c_str(), &db);
  sqlite3_exec(db,
               "BEGIN;"
               "CREATE TABLE examples (split_name TEXT NOT NULL, client_id TEXT NOT NULL, "
               "serialized_example_proto BLOB NOT NULL);"
               "CREATE TABLE client_metadata (client_id TEXT NOT NULL, split_name TEXT NOT NULL, "
               "num_examples INTEGER NOT NULL);"
               "CREATE INDEX idx ON examples (split_name, client_id);",
               nullptr, nullptr, nullptr);
  std::map<std::pair<std::string, std::string>, int> counts;
  const auto text = [](sqlite3_stmt* s, int i, const std::string& t) {
    sqlite3_bind_text(s, i, t.data(), int(t.size()), SQLITE_TRANSIENT);
  };
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(db, "INSERT INTO examples VALUES (?, ?, ?)", -1, &insert, nullptr);
  for (const SqliteRow& row : rows) {
    ++counts[{row.client, row.split}];
    text(insert, 1, row.split);
    text(insert, 2, row.client);
    sqlite3_bind_blob(insert, 3, row.message.data(), int(row.message.size()), SQLITE_TRANSIENT);
    sqlite3_step(insert);
    sqlite3_reset(insert);
  }
  sqlite3_finalize(insert);
  sqlite3_prepare_v2(db, "INSERT INTO client_metadata VALUES (?, ?, ?)", -1, &insert, nullptr);
  for (const auto& [key, count] : counts) {
    text(insert, 1, key.first);
    text(insert, 2, key.second);
    sqlite3_bind_int(insert, 3, count + std::exchange(miscount, 0));
    sqlite3_step(insert);
    sqlite3_reset(insert);
  }
  sqlite3_finalize(insert);
  sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(db);
}

inline std::vector<SqliteRow> sqlite_rows(const TestImages& images) {
  std::vector<SqliteRow> rows;
  for (const TestImage& image : images) {
    rows.push_back({image.test ? "all_test" : "all_train", image.client, emnist_proto(image)});
  }
  return rows;
}

inline void write_sqlite(const TemporaryFolder& folder, const TestImages& images) {
  write_sqlite_rows(folder.path() / "emnist_all.sqlite", sqlite_rows(images));
}

}  // namespace fedep
