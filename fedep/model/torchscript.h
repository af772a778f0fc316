// Any TorchScript module as a model: model.path names a file written by torch.jit.save or
// torch::jit::Module::save.
//
// Its forward takes float images or rows [n, features...] in the data's shape and gives logits
// [n, outputs]. The weights are its parameters, in the module's order; initial weights are those in
// the file, whatever the seed. Modules whose training changes more than parameters (running means
// of batch norm) are refused: such state would be lost between a client and the server. So are those
// that draw random numbers in eval mode. Dropout in training is seeded from its address; torch has
// one generator for the whole process, so such forward passes take turns.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/model/model.h"

namespace fedep {

std::unique_ptr<Model> make_torchscript(const ModelSettings& settings, const DatasetInfo& data);

// Writes a module that computes the model's logits at these weights, for torch.jit.load in Python or
// torch::jit::load. Of a torchscript model: the file at settings.path with other parameters. Built-in
// models are written out in TorchScript; theirs take rows, or images [n, height, width, channels],
// and have the layout's names. Throws InputError if the layout is not the model's.
// `about`: extra files of the archive by their names, which torch.jit.load reads on demand. A module's own
// attributes may have any name, so that what is said of it is not among them.
void save_torchscript(const ModelSettings& settings, const Layout& layout,
                      std::span<const float> theta, const std::filesystem::path& path,
                      const std::map<std::string, std::string>& about = {});

}  // namespace fedep
