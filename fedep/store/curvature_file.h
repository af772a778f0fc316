// curvature.safetensors in a run directory: a last round of curvature (round/diagnosis/curvature.h), bound to the
// checkpoint whose mean it was taken at.
//
//   write_curvature(curvature_path(run), curvature, seal_of(run / "checkpoint-60.safetensors"));
//   const KeptCurvature kept = read_curvature(curvature_path(run));
//   check_own_curvature(curvature_path(run), kept, checkpoint);
//
// Tensors: mean (F32), gradient and hessian (F64, the lower triangle row by row), summed over clients and
// without the prior. Metadata: format, version, round, checkpoint (a hash of that file), and a checksum per
// tensor. Its bytes depend on recipe, seed and round alone.
#pragma once

#include <cstdint>
#include <filesystem>

#include "fedep/round/diagnosis/curvature.h"

namespace fedep {

struct KeptCurvature {
  Curvature curvature;
  std::uint64_t seal = 0;  // of the checkpoint's file

  bool operator==(const KeptCurvature&) const = default;
};

std::filesystem::path curvature_path(const std::filesystem::path& run);

// A hash of all bytes of a checkpoint.
std::uint64_t seal_of(const std::filesystem::path& checkpoint);

// Replaces the file atomically.
void write_curvature(const std::filesystem::path& path, const Curvature& curvature,
                     std::uint64_t seal);
// Throws InputError, naming it, for a file that is damaged, without checksums or of another kind.
KeptCurvature read_curvature(const std::filesystem::path& path);

// Throws InputError, naming `path`, if what was kept there is not this checkpoint's.
void check_own_curvature(const std::filesystem::path& path, const KeptCurvature& kept,
                         const std::filesystem::path& checkpoint);

}  // namespace fedep
