#include "fedep/sim/chain/kept_vector.h"

namespace fedep {
namespace {

// As many as a chain has, so that a thread keeps no more than one chain's memory.
constexpr std::size_t kMostKept = 8;

std::vector<std::vector<float>>& kept() {
  thread_local std::vector<std::vector<float>> vectors;
  return vectors;
}

}  // namespace

KeptVector::~KeptVector() {
  if (values_.capacity() == 0 || kept().size() >= kMostKept) return;
  values_.clear();
  kept().push_back(std::move(values_));
}

void KeptVector::take() {
  if (taken_) return;
  taken_ = true;
  if (kept().empty()) return;
  values_ = std::move(kept().back());
  kept().pop_back();
}

void KeptVector::resize(std::size_t size) {
  if (size > 0) take();
  values_.resize(size);
}

void KeptVector::assign(std::size_t size, float value) {
  if (size > 0) take();
  values_.assign(size, value);
}

}  // namespace fedep
