#include "fedep/store/site_files.h"

#include <unistd.h>

#include <set>
#include <utility>

#include "fedep/message/check.h"
#include "fedep/message/record.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/site_record.h"

namespace fedep {

std::filesystem::path site_file(const std::filesystem::path& folder, std::uint64_t client,
                                std::int64_t round) {
  return folder / fmt::format("{:016x}-{}.site", client, round);
}

SiteSeals seals_of(const std::filesystem::path& folder, const SiteManifest& manifest) {
  SiteSeals seals;
  for (const auto& [client, round] : manifest) {
    const std::filesystem::path path = site_file(folder, client, round);
    const FileDescriptor file = open_file(path);
    std::uint64_t& seal = seals[client];
    if (::lseek(file.get(), -off_t(sizeof seal), SEEK_END) < 0 ||
        read_some(file, path, std::as_writable_bytes(std::span(&seal, 1))) != sizeof seal) {
      throw InputError(fmt::format("{}: must end in a checksum, but is shorter", path.string()));
    }
  }
  return seals;
}

SiteFiles::SiteFiles(std::filesystem::path folder, std::size_t weights)
    : folder_(std::move(folder)), weights_(weights) {
  make_folder(folder_);
}

std::filesystem::path SiteFiles::path_of(std::uint64_t client, std::int64_t round) const {
  return site_file(folder_, client, round);
}

void SiteFiles::write(std::uint64_t client, std::int64_t round, const StoredSite& state) {
  replace_file(path_of(client, round),
               [&](const ByteSink& sink) { write_site(client, round, state, sink); });
}

StoredSite SiteFiles::read(std::uint64_t client, std::int64_t round) const {
  const std::filesystem::path path = path_of(client, round);
  try {
    RecordReader reader;
    read_file_chunks(path, [&](std::span<const std::byte> bytes) { reader.feed(bytes); });
    StoredSite state = read_site(client, round, reader.take());
    if (weights_ > 0) check_same_size("site state", "factor", weights_, state.factor.size());
    return state;
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

bool SiteFiles::has(std::uint64_t client, std::int64_t round) const {
  return std::filesystem::exists(path_of(client, round));
}

void SiteFiles::remove(std::uint64_t client, std::int64_t round) const {
  std::error_code ignored;  // a file left behind costs space, not correctness
  std::filesystem::remove(path_of(client, round), ignored);
}

void SiteFiles::keep_only(std::span<const SiteManifest> manifests) {
  std::set<std::filesystem::path> wanted;
  for (const SiteManifest& manifest : manifests) {
    for (const auto& [client, round] : manifest) wanted.insert(path_of(client, round));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.path().extension() == ".site" && !wanted.contains(entry.path())) {
      std::error_code ignored;
      std::filesystem::remove(entry.path(), ignored);
    }
  }
}

}  // namespace fedep
