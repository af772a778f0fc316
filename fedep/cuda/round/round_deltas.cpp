#include "fedep/cuda/round/round_deltas.h"

#include <cmath>
#include <limits>
#include <utility>

#include "fedep/cuda/round/device_step.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

float largest_of(const gpu::DeltaFacts& facts) {
  return facts.has_nan != 0 ? std::numeric_limits<float>::quiet_NaN() : facts.largest;
}

UnitArray sum_of(const gpu::DeltaRow* rows, std::size_t count, std::size_t size, int bits) {
  UnitArray units;
  if (bits > 32) {
    units.wide = DeviceArray<std::int64_t>(size);
    gpu::sum_units(rows, count, size, units.wide.data(), device_stream());
  } else {
    units.narrow = DeviceArray<std::int32_t>(size);
    gpu::sum_units(rows, count, size, units.narrow.data(), device_stream());
  }
  return units;
}

}  // namespace

// As from_grid does it.
float number_of_units(std::int64_t units, int exponent) {
  return float(double(units) * std::ldexp(1.0, exponent));
}

void RoundDeltas::add(Row row) {
  // An isotropic delta of a diagonal round is written out: its number stands for every element.
  if (diagonal()) row.isotropic = false;
  if (!diagonal() && !row.isotropic) fail("RoundDeltas", "delta", "of the round's family", "not");
  rows_.push_back(row);
}

void RoundDeltas::add_quotient(DeviceMessage tilted, std::optional<DeviceMessage> divisor) {
  const auto keep = [&](DeviceMessage message) -> const DeviceMessage& {
    return kept_.emplace_back(std::move(message));
  };
  kept_.reserve(kept_.size() + 2);  // so that the first stays where it is
  const DeviceMessage& above = keep(std::move(tilted));
  const DeviceMessage& below = divisor ? keep(std::move(*divisor)) : global_;
  check_same_size("RoundDeltas", "tilted distribution", size(), above.size());
  check_same_size("RoundDeltas", "divisor", size(), below.size());
  Row row;
  row.eta = {.a = above.eta().data(), .b = below.eta().data()};
  row.isotropic = above.isotropic() && below.isotropic();
  if (above.isotropic()) {
    row.lambda.a_number = above.lambda_scalar();
  } else {
    row.lambda.a = above.lambda_vector().data();
  }
  if (below.isotropic()) {
    row.lambda.b_number = below.lambda_scalar();
  } else {
    row.lambda.b = below.lambda_vector().data();
  }
  add(row);
}

void RoundDeltas::add_move(DeviceVector to) {
  add_points(std::move(to));
  rows_.back().eta.b = mean_.data();
}

void RoundDeltas::add_points(DeviceVector eta) {
  check_same_size("RoundDeltas", "delta", size(), eta.size());
  Row row;
  row.eta.a = kept_.emplace_back(std::move(eta), 0.0f).eta().data();
  add(row);
}

void RoundDeltas::add_flat() { add({}); }

std::vector<double> RoundDeltas::measure() {
  if (rows_.empty()) return {};
  const std::size_t count = rows_.size();
  std::vector<gpu::DeltaRow> arrays;
  for (const Row& row : rows_) arrays.push_back(row.eta);
  if (diagonal()) {
    for (const Row& row : rows_) arrays.push_back(row.lambda);
  }
  const DeviceArray<gpu::DeltaRow> there(arrays);
  DeviceArray<std::byte> scratch(gpu::measure_scratch(arrays.size()));
  DeviceArray<gpu::DeltaFacts> out(arrays.size());
  gpu::measure_deltas(there.data(), arrays.size(), size(), scratch.data(), out.data(),
                      device_stream());
  const std::vector<gpu::DeltaFacts> facts = out.download();
  std::vector<double> norms;
  for (std::size_t k = 0; k < count; ++k) {
    Row& row = rows_[k];
    row.largest_eta = largest_of(facts[k]);
    double squares = facts[k].squares;
    if (diagonal()) {
      row.largest_lambda = largest_of(facts[count + k]);
      squares += facts[count + k].squares;
    } else {
      const double lambda = double(row.lambda.a_number - row.lambda.b_number);
      squares += double(size()) * lambda * lambda;
    }
    norms.push_back(std::sqrt(squares));
  }
  return norms;
}

bool RoundDeltas::round_to(const Grid& grid, std::size_t client, double scale) {
  Row& row = rows_[client];
  row.eta.scale = std::ldexp(scale, -grid.eta_exponent);
  row.lambda.scale = std::ldexp(scale, -grid.lambda_exponent);
  // Rounding is monotone: all elements fit if the largest does. Asked of the host's own function.
  using V = HostVector<float>;
  const Message largest =
      row.isotropic ? Message(V{row.largest_eta}, row.lambda.a_number - row.lambda.b_number)
                    : Message(V{row.largest_eta}, V{row.largest_lambda});
  const std::optional<GridDelta> rounded = to_grid(grid, largest, scale);
  row.inside = rounded.has_value();
  if (row.inside && row.isotropic) row.lambda_units = rounded->lambda[0];
  return row.inside;
}

RoundDeltas::Sent RoundDeltas::sent() const {
  std::vector<gpu::DeltaRow> arrays;
  Sent sent;
  for (const Row& row : rows_) {
    if (!row.inside) continue;
    arrays.push_back(row.eta);
    sent.lambda_units += row.lambda_units;
  }
  sent.count = arrays.size();
  if (diagonal()) {
    for (const Row& row : rows_) {
      if (row.inside) arrays.push_back(row.lambda);
    }
  }
  sent.arrays = DeviceArray<gpu::DeltaRow>(arrays);
  return sent;
}

DeviceMessage RoundDeltas::total(const Grid& grid) const {
  const Sent own = sent();
  DeviceVector eta(size());
  gpu::sum_on_grid(own.arrays.data(), own.count, size(), std::ldexp(1.0, grid.eta_exponent),
                   eta.data(), device_stream());
  if (!diagonal()) {
    return {std::move(eta), number_of_units(own.lambda_units, grid.lambda_exponent)};
  }
  DeviceVector lambda(size());
  gpu::sum_on_grid(own.arrays.data() + own.count, own.count, size(),
                   std::ldexp(1.0, grid.lambda_exponent), lambda.data(), device_stream());
  return {std::move(eta), std::move(lambda)};
}

DeltaUnits RoundDeltas::units(const Grid& grid) const {
  const Sent own = sent();
  DeltaUnits units{.eta = sum_of(own.arrays.data(), own.count, size(), grid.bits),
                   .lambda = {},
                   .lambda_number = own.lambda_units};
  if (diagonal()) {
    units.lambda = sum_of(own.arrays.data() + own.count, own.count, size(), grid.bits);
  }
  return units;
}

void RoundDeltas::move_factors(const Grid& grid, const SiteShape& shape,
                               const std::vector<FactorMove>& moves, const FactorStep& step) const {
  const Optimizer& optimizer = find_optimizer(step.optimizer.name);
  std::vector<gpu::FactorRow> arrays;
  for (const FactorMove& move : moves) {
    const Row& row = rows_[move.client];
    DeviceSite& site = *move.site;
    site.steps = step.clocked ? step.server_steps : site.steps + 1;
    gpu::FactorRow factor{
        .delta = row.eta,
        .unit = std::ldexp(1.0, grid.eta_exponent),
        .step = optimizer.step(step.optimizer, site.steps, step.scale),
        .settle = step.settle == 1 ? 1.0f : float(step.settle),
        .x = site.eta(shape, 0),
        .slot0 = shape.slots > 0 ? site.eta(shape, 1) : nullptr,
        .slot1 = shape.slots > 1 ? site.eta(shape, 2) : nullptr,
        .on_clock = step.clocked.has_value(),
        .missed = move.missed,
        .clocked = step.clocked.value_or(ClockedStep{}),
    };
    arrays.push_back(factor);
    if (diagonal()) {
      factor.delta = row.lambda;
      factor.unit = std::ldexp(1.0, grid.lambda_exponent);
      factor.x = site.lambda(shape, 0);
      factor.slot0 = shape.slots > 0 ? site.lambda(shape, 1) : nullptr;
      factor.slot1 = shape.slots > 1 ? site.lambda(shape, 2) : nullptr;
      arrays.push_back(factor);
      continue;
    }
    const float sent = number_of_units(row.lambda_units, grid.lambda_exponent);
    if (step.clocked) {
      site.numbers[0] = clocked(move.missed, *step.clocked, site.numbers[0], sent, site.numbers[1]);
      continue;
    }
    std::vector<float*> slots;
    for (std::size_t i = 1; i < site.numbers.size(); ++i) slots.push_back(&site.numbers[i]);
    const float before = site.numbers[0];
    float after = before;
    advance_number(factor.step, after, sent, slots);
    site.numbers[0] = step.settle == 1 ? after : before + float(step.settle) * (after - before);
  }
  const DeviceArray<gpu::FactorRow> there(arrays);
  gpu::move_factors(there.data(), arrays.size(), size(), device_stream());
}

}  // namespace fedep
