// Any TorchScript module as a model: model.path names a file written by torch.jit.save or
// torch::jit::Module::save.
//
// Its forward takes float images or rows [n, features...] in the data's shape and gives logits
// [n, outputs]. The weights are its parameters, in the module's order; initial weights are those in
// the file, whatever the seed. Modules whose training changes more than parameters (running means
// of batch norm) are refused: such state would be lost between a client and the server.
#pragma once

#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/model/model.h"

namespace fedep {

std::unique_ptr<Model> make_torchscript(const ModelSettings& settings, const DatasetInfo& data);

}  // namespace fedep
