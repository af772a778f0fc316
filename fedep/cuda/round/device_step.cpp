#include "fedep/cuda/round/device_step.h"

#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "fedep/message/check.h"

namespace fedep {
namespace {

const float* lambda_data(const DeviceMessage& q) {
  return q.isotropic() ? nullptr : q.lambda_vector().data();
}
float lambda_number(const DeviceMessage& q) { return q.isotropic() ? q.lambda_scalar() : 0; }

bool improper(float lambda) { return !(lambda > 0) || !std::isfinite(lambda); }

void apply(const OptimizerStep& step, DeviceVector& x, const DeviceVector& g,
           const std::vector<float*>& slots) {
  gpu::apply_step(step, x.size(), x.data(), g.data(), !slots.empty() ? slots[0] : nullptr,
                  slots.size() > 1 ? slots[1] : nullptr, device_stream());
}

}  // namespace

DeviceOptimizerState to_device(const OptimizerState& state) {
  DeviceOptimizerState there{.steps = state.steps, .slots = {}};
  for (const Message& slot : state.slots) there.slots.push_back(to_device(slot));
  return there;
}

OptimizerState to_host(const DeviceOptimizerState& state) {
  OptimizerState here{.steps = state.steps, .slots = {}};
  for (const DeviceMessage& slot : state.slots) here.slots.push_back(to_host(slot));
  return here;
}

void advance_number(const OptimizerStep& step, float& x, float g,
                    const std::vector<float*>& slots) {
  std::vector<std::span<float>> spans;
  for (float* slot : slots) spans.emplace_back(slot, 1);
  apply_step(step, std::span(&x, 1), std::span<const float>(&g, 1), spans);
}

void advance(const OptimizerSettings& settings, DeviceOptimizerState& state, DeviceMessage& x,
             const DeviceMessage& delta, double scale) {
  check_same_size("advance", "delta", x.size(), delta.size());
  if (x.family() != delta.family()) fail("advance", "delta", "of x's family", "of the other");
  const Optimizer& optimizer = find_optimizer(settings.name);
  check_same_size("advance", "optimizer state", optimizer.slots(settings).size(),
                  state.slots.size());
  ++state.steps;
  const OptimizerStep step = optimizer.step(settings, state.steps, scale);
  std::vector<float*> eta_slots, lambda_slots;
  for (DeviceMessage& slot : state.slots) {
    eta_slots.push_back(slot.eta().data());
    lambda_slots.push_back(x.isotropic() ? &slot.lambda_scalar() : slot.lambda_vector().data());
  }
  apply(step, x.eta(), delta.eta(), eta_slots);
  if (x.isotropic()) {
    advance_number(step, x.lambda_scalar(), delta.lambda_scalar(), lambda_slots);
  } else {
    apply(step, x.lambda_vector(), delta.lambda_vector(), lambda_slots);
  }
}

std::vector<std::size_t> count_improper(const DeviceMessage& before,
                                        const std::vector<const DeviceMessage*>& after) {
  std::vector<std::size_t> counts;
  std::vector<gpu::ImproperRow> rows;
  for (const DeviceMessage* q : after) {
    if (!q->isotropic()) {
      rows.push_back({lambda_data(before), q->lambda_vector().data(), lambda_number(before)});
      continue;
    }
    if (!before.isotropic()) {
      fail("count_improper", "message before", "isotropic as the one after", "diagonal");
    }
    const float old = before.lambda_scalar(), now = q->lambda_scalar();
    counts.push_back(improper(now) && !(now == 0 && old == 0) ? q->size() : 0);
  }
  if (rows.empty()) return counts;
  if (rows.size() != after.size()) {
    fail("count_improper", "messages after", "of one family", "of two");
  }
  const DeviceArray<gpu::ImproperRow> there(rows);
  DeviceArray<std::byte> scratch(gpu::count_scratch(rows.size()));
  DeviceArray<unsigned long long> out(rows.size());
  gpu::count_improper(there.data(), rows.size(), before.size(), scratch.data(), out.data(),
                      device_stream());
  for (const unsigned long long count : out.download()) counts.push_back(count);
  return counts;
}

std::size_t count_improper(const DeviceMessage& before, const DeviceMessage& after) {
  return count_improper(before, std::vector<const DeviceMessage*>{&after})[0];
}

void raise_to_floor(const DeviceMessage& before, DeviceMessage& after, float floor) {
  gpu::FloorTask task{.before_eta = before.eta().data(),
                      .before_lambda = lambda_data(before),
                      .before_number = lambda_number(before),
                      .eta = after.eta().data(),
                      .lambda = after.isotropic() ? nullptr : after.lambda_vector().data(),
                      .number = lambda_number(after),
                      .floor = floor};
  if (after.isotropic() && !improper(task.number) && task.number >= floor) return;
  gpu::raise_to_floor(task, after.size(), device_stream());
  if (after.isotropic()) after.lambda_scalar() = floor;
}

bool same(const DeviceMessage& a, const DeviceMessage& b) {
  check_same_size("same", "second message", a.size(), b.size());
  if (a.family() != b.family()) return false;
  if (a.isotropic() && !(a.lambda_scalar() == b.lambda_scalar())) return false;
  DeviceArray<std::byte> scratch(gpu::count_scratch(1));
  DeviceArray<unsigned long long> out(2);
  out.zero();
  gpu::count_different(a.eta().data(), b.eta().data(), a.size(), scratch.data(), out.data(),
                       device_stream());
  if (!a.isotropic()) {
    gpu::count_different(a.lambda_vector().data(), b.lambda_vector().data(), a.size(),
                         scratch.data(), out.data() + 1, device_stream());
  }
  const std::vector<unsigned long long> counts = out.download();
  return counts[0] == 0 && counts[1] == 0;
}

std::uint64_t hash_of(const std::vector<const DeviceMessage*>& messages) {
  DeviceArray<std::byte> scratch(gpu::count_scratch(1));
  DeviceArray<unsigned long long> out(2 * messages.size());
  out.zero();
  for (std::size_t k = 0; k < messages.size(); ++k) {
    const DeviceMessage& q = *messages[k];
    gpu::hash_elements(q.eta().data(), q.size(), scratch.data(), out.data() + 2 * k,
                       device_stream());
    if (q.isotropic()) continue;
    gpu::hash_elements(q.lambda_vector().data(), q.size(), scratch.data(), out.data() + 2 * k + 1,
                       device_stream());
  }
  const std::vector<unsigned long long> sums = out.download();
  std::uint64_t hash = 0;
  for (std::size_t k = 0; k < messages.size(); ++k) {
    const std::uint64_t lambda = messages[k]->isotropic()
                                     ? std::bit_cast<std::uint32_t>(messages[k]->lambda_scalar())
                                     : sums[2 * k + 1];
    for (const std::uint64_t part : {std::uint64_t(sums[2 * k]), lambda}) hash = 31 * hash + part;
  }
  return hash;
}

std::vector<MessageFacts> facts_of(const std::vector<const DeviceMessage*>& messages) {
  DeviceArray<std::byte> scratch(gpu::facts_scratch());
  DeviceArray<gpu::ArrayFacts> out(2 * messages.size());
  out.zero();
  for (std::size_t k = 0; k < messages.size(); ++k) {
    const DeviceMessage& q = *messages[k];
    gpu::examine(q.eta().data(), q.size(), scratch.data(), out.data() + 2 * k, device_stream());
    if (q.isotropic()) continue;
    gpu::examine(q.lambda_vector().data(), q.size(), scratch.data(), out.data() + 2 * k + 1,
                 device_stream());
  }
  const std::vector<gpu::ArrayFacts> found = out.download();
  std::vector<MessageFacts> facts(messages.size());
  for (std::size_t k = 0; k < messages.size(); ++k) {
    const gpu::ArrayFacts& eta = found[2 * k];
    gpu::ArrayFacts lambda = found[2 * k + 1];
    if (messages[k]->isotropic()) {
      const float number = messages[k]->lambda_scalar();
      lambda = {number, std::isnan(number) ? 0 : std::fabs(number), std::isfinite(number),
                std::isnan(number)};
    }
    facts[k].finite = eta.finite != 0 && lambda.finite != 0;
    facts[k].proper = facts[k].finite && lambda.least > 0;
    facts[k].largest = {.eta = eta.largest, .lambda = lambda.largest};
  }
  return facts;
}

DeviceVector estimate_points(const DeviceMessage& q, const DeviceVector& initial) {
  check_same_size("estimate_points", "initial weights", q.size(), initial.size());
  DeviceVector out(q.size());
  gpu::estimate_points(q.eta().data(), lambda_data(q), lambda_number(q), initial.data(), out.data(),
                       q.size(), device_stream());
  return out;
}

}  // namespace fedep
