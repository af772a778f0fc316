#include "fedep/sim/rows/own_intercept_file.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "fedep.own_intercept";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kSuffix = ".safetensors";

std::string metadata_of(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  return found == file.metadata.end() ? "" : found->second;
}

std::string seal_text(std::uint64_t seal) { return fmt::format("{:016x}", seal); }

void check_kind(const SafetensorsFile& file) {
  if (metadata_of(file, "format") != kFormat) {
    throw InputError(fmt::format(
        "{}: must be a client's own intercept, but is another safetensors file", file.origin));
  }
  if (metadata_of(file, "version") != kVersion) {
    throw InputError(fmt::format("{}: version must be {}, but is another", file.origin, kVersion));
  }
  if (!file.checksums) {
    throw InputError(fmt::format("{}: must have checksums, but has none", file.origin));
  }
}

OwnIntercept own_in(const SafetensorsFile& file, std::size_t columns) {
  const std::vector<double>& precision = file.get<double>("precision");
  const std::vector<double>& pull = file.get<double>("pull");
  const std::vector<double>& coupling = file.get<double>("coupling");
  if (precision.size() != 1 || pull.size() != 1 || coupling.size() != columns ||
      !(precision[0] >= 0)) {
    throw InputError(fmt::format(
        "{}: must have one precision, not negative, one pull and a coupling of {} columns, but has "
        "not",
        file.origin, columns));
  }
  return {precision[0], pull[0], coupling};
}

}  // namespace

fs::path intercepts_path(const fs::path& run) { return run / "intercepts"; }

void write_own_intercepts(const fs::path& run, const OwnIntercepts& own, std::int64_t round,
                          std::uint64_t seal) {
  const fs::path folder = intercepts_path(run);
  make_folder(folder);
  for (const auto& [client, one] : own.all()) {
    const std::array precision{one.precision}, pull{one.pull};
    const std::array tensors{TensorView{"precision", {1}, std::span<const double>(precision)},
                             TensorView{"pull", {1}, std::span<const double>(pull)},
                             TensorView{"coupling",
                                        {std::int64_t(one.coupling.size())},
                                        std::span<const double>(one.coupling)}};
    write_safetensors(folder / fmt::format("{:016x}{}", client_key(client), kSuffix), tensors,
                      {{"format", std::string(kFormat)},
                       {"version", std::string(kVersion)},
                       {"client", client},
                       {"round", fmt::format("{}", round)},
                       {"checkpoint", seal_text(seal)}});
  }
}

OwnIntercepts read_own_intercepts(const fs::path& run, std::uint64_t seal, std::size_t columns) {
  OwnIntercepts out;
  std::error_code ignored;
  const fs::path folder = intercepts_path(run);
  if (!fs::is_directory(folder, ignored)) return out;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == kSuffix) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const fs::path& path : files) {
    const SafetensorsFile file = read_safetensors(path, Finite::required);
    check_kind(file);
    if (metadata_of(file, "checkpoint") != seal_text(seal)) continue;
    out.add(metadata_of(file, "client"), own_in(file, columns));
  }
  return out;
}

}  // namespace fedep
