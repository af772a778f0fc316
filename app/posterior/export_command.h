// `fedep export RUN|CHECKPOINT --out DIR`: a posterior for other programs.
//
//   safetensors   mean.safetensors and std.safetensors, tensors named and shaped as in the model; with a
//                 full covariance matrix also covariance.safetensors, [weights, weights]
//                 --draws N: draws.safetensors, each tensor with its N draws one after another, [N, …]
//                 Where deviations are withheld, mean.safetensors says why in its metadata
//                 average.safetensors and average_spread.safetensors, where the run kept an average
//   torchscript   model.pt, a module whose parameters are the posterior's mean, and average.pt; the
//                 safetensors' metadata are extra files of theirs, `temperature` among them
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

// What was written. Throws InputError in a build without torch.
std::vector<std::filesystem::path> export_modules(const std::filesystem::path& run_or_checkpoint,
                                                  const std::filesystem::path& folder);

void add_export_command(Command& app, int& exit_code);

}  // namespace fedep
