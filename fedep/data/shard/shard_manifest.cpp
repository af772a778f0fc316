#include "fedep/data/shard/shard_manifest.h"

#include <charconv>
#include <fstream>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fedep/data/data_file.h"
#include "fedep/message/error.h"
#include "fedep/message/parse_json.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFile = "manifest.json";
constexpr const char* kFormat = "fedep.shards";
constexpr int kVersion = 1;

std::string hex(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::uint64_t number_of(const std::string& digits) {
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, failure] = std::from_chars(digits.data(), end, number, 16);
  if (failure != std::errc() || stopped != end) throw InputError("checksum");
  return number;
}

// A file of the folder itself: a manifest does not reach elsewhere.
std::string plain_name(const std::string& file) {
  const bool is_plain = fs::path(file).filename() == fs::path(file) && file != "." && file != "..";
  if (file.empty() || !is_plain) throw InputError("file");
  return file;
}

ShardManifest manifest_of(const Json& json) {
  ShardManifest manifest{.data = json.at("data"),
                         .seed = json.at("seed"),
                         .fingerprint = number_of(json.at("fingerprint"))};
  for (const Json& shard : json.at("shards")) {
    manifest.shards.push_back({.file = plain_name(shard.at("file")),
                               .client = shard.at("client"),
                               .train = shard.at("train"),
                               .test = shard.at("test"),
                               .bytes = shard.at("bytes"),
                               .checksum = number_of(shard.at("xxh3"))});
  }
  manifest.test_order = json.at("test_order").get<std::vector<std::size_t>>();
  std::set<std::size_t> seen;
  for (const std::size_t place : manifest.test_order) {
    if (place >= manifest.shards.size() || !seen.insert(place).second) throw InputError("order");
  }
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {  // nobody's examples are left out
    if (manifest.shards[i].test > 0 && !seen.contains(i)) throw InputError("order");
  }
  if (manifest.shards.empty()) throw InputError("shards");
  return manifest;
}

}  // namespace

void write_manifest(const fs::path& folder, const ShardManifest& manifest) {
  Json shards = Json::array();
  std::size_t train = 0, test = 0, clients = 0;
  for (const ShardEntry& shard : manifest.shards) {
    shards.push_back({{"file", shard.file},
                      {"client", shard.client},
                      {"train", shard.train},
                      {"test", shard.test},
                      {"bytes", shard.bytes},
                      {"xxh3", hex(shard.checksum)}});
    train += shard.train;
    test += shard.test;
    clients += shard.train > 0;
  }
  const Json json{{"format", kFormat},
                  {"version", kVersion},
                  {"data", manifest.data},
                  {"seed", manifest.seed},
                  {"clients", clients},
                  {"train", train},
                  {"test", test},
                  {"fingerprint", hex(manifest.fingerprint)},
                  {"shards", std::move(shards)},
                  {"test_order", manifest.test_order}};
  const fs::path path = folder / kFile;
  const fs::path part = folder / fmt::format(".{}.part", kFile);
  std::ofstream out(part, std::ios::binary);
  out << json.dump(1) << "\n";
  out.close();
  std::error_code error;
  if (out) fs::rename(part, path, error);
  if (!out || error) throw RunError(fmt::format("{}: cannot write", path.string()));
}

ShardManifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / kFile;
  if (std::error_code error; !fs::exists(path, error)) {
    throw InputError(fmt::format(
        "{} is missing: its folder is none of shards, or one of an import that did not finish",
        path.string()));
  }
  const std::string text = read_data_text("shards", path);
  Json version;
  try {
    const Json json = parse_json(text);
    version = json.at("version");
    if (json.at("format") == kFormat && version == kVersion) return manifest_of(json);
  } catch (const std::exception&) {  // not JSON, or not ours
  }
  if (version.is_number() && version != kVersion) {
    throw InputError(
        fmt::format("{}: version must be {}, but is {}", path.string(), kVersion, version.dump()));
  }
  throw InputError(fmt::format(
      "{}: must be the manifest that `fedep data import` writes, but is not", path.string()));
}

}  // namespace fedep
