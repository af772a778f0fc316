// Site states as files <folder>/<client key>-<round>.site, in the byte format of message/record.h.
#pragma once

#include <filesystem>
#include <span>

#include "fedep/round/site_store.h"

namespace fedep {

class SiteFiles {
 public:
  // Makes the folder if it is missing.
  explicit SiteFiles(std::filesystem::path folder);

  void write(std::uint64_t client, std::int64_t round, const SiteState& state) const;
  // Throws InputError for a file that is missing or damaged.
  SiteState read(std::uint64_t client, std::int64_t round) const;
  bool has(std::uint64_t client, std::int64_t round) const;
  void remove(std::uint64_t client, std::int64_t round) const;
  // Removes every state that no manifest names.
  void keep_only(std::span<const SiteManifest> manifests) const;

 private:
  std::filesystem::path path_of(std::uint64_t client, std::int64_t round) const;

  std::filesystem::path folder_;
};

}  // namespace fedep
