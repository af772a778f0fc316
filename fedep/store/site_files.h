// Site states as files <folder>/<client key>-<round>.site, in the byte format of message/record.h,
// without their zeros (site_record.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>

#include "fedep/round/site_store.h"

namespace fedep {

class SiteFiles final : public SiteArchive {
 public:
  // Makes the folder if it is missing. Factors that are read must have so many weights; 0: any number,
  // which who expands one should have checked.
  explicit SiteFiles(std::filesystem::path folder, std::size_t weights = 0);

  void write(std::uint64_t client, std::int64_t round, const StoredSite& state) override;
  StoredSite read(std::uint64_t client, std::int64_t round) const override;
  bool has(std::uint64_t client, std::int64_t round) const override;
  void remove(std::uint64_t client, std::int64_t round) const;
  void keep_only(std::span<const SiteManifest> manifests) override;

 private:
  std::filesystem::path path_of(std::uint64_t client, std::int64_t round) const;

  std::filesystem::path folder_;
  std::size_t weights_;
};

std::filesystem::path site_file(const std::filesystem::path& folder, std::uint64_t client,
                                std::int64_t round);

// A file's last checksum, which covers all of it: by it a checkpoint knows the states that it was
// written with. Whether it is right shows when the file is read.
using SiteSeals = std::map<std::uint64_t, std::uint64_t>;  // by client
// Throws InputError, naming the file, for one that is not there.
SiteSeals seals_of(const std::filesystem::path& folder, const SiteManifest& manifest);

// States in those files only; memory does not grow with the clients visited.
std::unique_ptr<SiteStore> make_disk_store(const std::filesystem::path& folder,
                                           std::size_t weights = 0);

}  // namespace fedep
