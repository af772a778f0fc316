// `fedep export RUN|CHECKPOINT --out DIR`: a posterior for other programs.
//
//   safetensors   mean.safetensors and std.safetensors, tensors named and shaped as in the model; with a
//                 full covariance matrix also covariance.safetensors, [weights, weights]
//                 --draws N: draws.safetensors, each tensor with its N draws one after another, [N, …]
//                 Where deviations are withheld, mean.safetensors says why in its metadata
//   torchscript   model.pt, a module whose parameters are the posterior's mean
//
// No data are needed: the checkpoint says what the tensors are.
#pragma once

#include <filesystem>
#include <vector>

#include "app/command.h"

namespace fedep {

// What was written. There is no std.safetensors where the algorithm estimates a point, or
// deviations are withheld.
std::vector<std::filesystem::path> export_safetensors(
    const std::filesystem::path& run_or_checkpoint, const std::filesystem::path& folder);

// Draws 0, 1, … are those that scores and predictions average. Throws InputError where there is no
// posterior to draw from, and for more than 2^30 numbers.
std::filesystem::path export_draws(const std::filesystem::path& run_or_checkpoint,
                                   const std::filesystem::path& folder, int draws);

// Throws InputError in a build without torch.
std::filesystem::path export_module(const std::filesystem::path& run_or_checkpoint,
                                    const std::filesystem::path& folder);

void add_export_command(Command& app, int& exit_code);

}  // namespace fedep
