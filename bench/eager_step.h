// The peer of the built-in models: a client's steps (batch by index, forward, backward by autograd,
// prior term, momentum SGD) as a careful user of eager libtorch would write them, on one thread.
//
//   const auto peer = make_eager_peer("cnn", examples, settings);
//   const double loss_sum = peer->run(batches);         // one step per batch of indices
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "fedep/data/batch.h"

namespace fedep {

struct EagerSettings {
  double lr = 0.01;
  double momentum = 0.9;
  double lambda = 1.0;  // of the cavity, the same for all weights; its mean is where weights start
  double per_example = 0.01;  // 1/N_k
  // The prior as a term of the loss and libtorch's own SGD; else its gradient added by hand, in
  // place.
  bool prior_in_loss = false;
};

class EagerPeer {
 public:
  virtual ~EagerPeer() = default;
  // Sum of the steps' mean losses.
  virtual double run(const std::vector<std::vector<std::int64_t>>& batches) = 0;
};

// linear (weights start at zero), cnn or resnet18 (at random); `rows` are the client's examples,
// features dense as [height, width, channels], labels or tags.
std::unique_ptr<EagerPeer> make_eager_peer(std::string_view model, const Batch& rows,
                                           std::size_t features, std::size_t outputs,
                                           const EagerSettings& settings);

}  // namespace fedep
