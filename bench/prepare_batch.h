// What CIFAR-100 batches cost before a model sees them: a batch of 20 made-up images, cropped,
// flipped and standardised, and projected onto 100 principal components.
#pragma once

#include <memory>

namespace fedep {

class Preparation {
 public:
  Preparation();
  ~Preparation();

  void augment() const;
  void project() const;

 private:
  struct Images;
  std::unique_ptr<Images> images_;
};

}  // namespace fedep
