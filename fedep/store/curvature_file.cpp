#include "fedep/store/curvature_file.h"

#include <array>
#include <charconv>
#include <string>
#include <string_view>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include "fedep/message/error.h"
#include "fedep/message/packed.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

constexpr std::string_view kFormat = "fedep.curvature";
constexpr std::string_view kVersion = "1";

// Whole text as a number; anything else is refused.
template <class T>
T number_in(const SafetensorsFile& file, const std::string& key, int base) {
  const auto found = file.metadata.find(key);
  const std::string text = found == file.metadata.end() ? "" : found->second;
  T value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size()) {
    throw InputError(fmt::format("{}: {} must be a number, but is \"{}\"", file.origin, key, text));
  }
  return value;
}

void check_kind(const SafetensorsFile& file) {
  const auto is = [&](const char* key, std::string_view value) {
    const auto found = file.metadata.find(key);
    return found != file.metadata.end() && found->second == value;
  };
  if (!is("format", kFormat)) {
    throw InputError(fmt::format(
        "{}: must be a last round of curvature, but is another safetensors file", file.origin));
  }
  if (!is("version", kVersion)) {
    throw InputError(fmt::format("{}: version must be {}, but is another", file.origin, kVersion));
  }
  if (!file.checksums) {
    throw InputError(fmt::format("{}: must have checksums, but has none", file.origin));
  }
}

}  // namespace

std::filesystem::path curvature_path(const std::filesystem::path& run) {
  return run / "curvature.safetensors";
}

std::uint64_t seal_of(const std::filesystem::path& checkpoint) {
  const std::vector<std::byte> bytes = read_file(checkpoint);
  return XXH3_64bits(bytes.data(), bytes.size());
}

void write_curvature(const std::filesystem::path& path, const Curvature& curvature,
                     std::uint64_t seal) {
  const auto shape = [](const auto& values) {
    return std::vector<std::int64_t>{std::int64_t(values.size())};
  };
  const auto& [gradient, hessian] = curvature.sum;
  const std::array tensors{
      TensorView{"mean", shape(curvature.mean), std::span<const float>(curvature.mean)},
      TensorView{"gradient", shape(gradient), std::span<const double>(gradient)},
      TensorView{"hessian", shape(hessian), std::span<const double>(hessian)}};
  write_safetensors(path, tensors,
                    {{"format", std::string(kFormat)},
                     {"version", std::string(kVersion)},
                     {"round", fmt::format("{}", curvature.round)},
                     {"checkpoint", fmt::format("{:016x}", seal)}});
}

KeptCurvature read_curvature(const std::filesystem::path& path) {
  const SafetensorsFile file = read_safetensors(path, Finite::required);
  check_kind(file);
  KeptCurvature kept{
      .curvature = {.round = number_in<std::int64_t>(file, "round", 10),
                    .mean = file.get<float>("mean"),
                    .sum = {file.get<double>("gradient"), file.get<double>("hessian")}},
      .seal = number_in<std::uint64_t>(file, "checkpoint", 16)};
  const auto& [gradient, hessian] = kept.curvature.sum;
  const std::size_t weights = kept.curvature.mean.size();
  if (gradient.size() != weights || hessian.size() != packed_size(weights)) {
    throw InputError(fmt::format("{}: gradient and hessian must be of {} weights, but are not",
                                 path.string(), weights));
  }
  return kept;
}

void check_own_curvature(const std::filesystem::path& path, const KeptCurvature& kept,
                         const std::filesystem::path& checkpoint) {
  if (kept.seal == seal_of(checkpoint)) return;
  throw InputError(fmt::format("{}: must have been taken at {}, but was at another checkpoint",
                               path.string(), checkpoint.filename().string()));
}

}  // namespace fedep
