// The EMNIST CNN (Guo+23; FedJAX's model): two 3x3 convolutions without padding, 2x2 max-pool,
// dropout, a hidden layer, dropout, logits. 1,206,590 weights on 28x28x1 images with 62 classes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/model/network.h"
#include "fedep/model/step_work.h"

namespace fedep {

struct CnnShape {
  std::size_t height = 28, width = 28, channels = 1;
  std::size_t outputs = 62;
  std::size_t first = 32, second = 64;  // channels of the convolutions
  std::size_t hidden = 128;
};

std::unique_ptr<Network> make_cnn(const CnnShape& shape);

// What its row in registry.cpp holds.
std::unique_ptr<Model> cnn_model(const ModelSettings& settings, const DatasetInfo& data);
std::optional<StepWork> cnn_work(const DatasetInfo& data);
std::string cnn_module_source(const ModelSettings& settings, const Layout& layout);

}  // namespace fedep
