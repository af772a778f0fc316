#include "fedep/sim/sparse/untouched_rows.h"

#include "fedep/model/layer/vector_width.h"

namespace fedep {
namespace {

std::vector<FreeStretch> way_until(std::size_t step, std::span<const ChainEvent> events) {
  std::vector<FreeStretch> way;
  std::size_t done = 0;
  for (const ChainEvent& event : events) {
    way.push_back({.steps = event.step - done,
                   .sample = event.sample,
                   .averaged = float(event.epoch_steps),
                   .new_sum = event.sample == 0});
    done = event.step;
  }
  way.push_back({.steps = step - done});
  return way;
}

}  // namespace

double untouched_coefficient(const RowLaw& law, std::span<const FreeMap> maps,
                             const RowQuery& query) {
  const auto sum = [&](std::size_t begin, std::size_t end) {
    return maps[end].sum_by_r - maps[begin].sum_by_r;
  };
  std::size_t epoch_begin = 0;
  double mean = 0, squares = 0;
  for (const ChainEvent& event : law.events) {
    if (event.sample == 0) {
      epoch_begin = event.step;
      continue;
    }
    const double sample = event.epoch_steps == 0 ? maps[event.step].by_r
                                                 : sum(event.step - event.epoch_steps, event.step) /
                                                       double(event.epoch_steps);
    const double gap = sample - mean;
    mean += gap / event.sample;
    squares += gap * gap * (event.sample - 1) / event.sample;
  }
  switch (query.part) {
    case RowPart::theta:
      return maps[query.step].by_r;
    case RowPart::sum:
      return sum(epoch_begin, query.step) / double(query.divisor);
    case RowPart::mean:
      return mean;
    case RowPart::squares:
      break;
  }
  return squares / double(query.divisor);
}

UntouchedRows::UntouchedRows(const RowLaw& law, std::span<const FreeMap> maps,
                             const RowsStart& start, const RowQuery& query)
    : law_(law), start_(start), query_(query) {
  if (law.isotropic) {
    coefficient_ = float(untouched_coefficient(law, maps, query));
  } else {
    way_ = way_until(query.step, law.events);
  }
}

void UntouchedRows::read(std::size_t begin, std::span<float> to) const {
  if (law_.isotropic) {
    read_by_coefficient(begin, to);
  } else {
    read_after_the_way(begin, to);
  }
}

void UntouchedRows::read_by_coefficient(std::size_t begin, std::span<float> to) const {
  const float *const theta = start_.theta + begin, *const eta = start_.eta + begin;
  const float lambda = law_.lambda, coefficient = coefficient_;
  float* const out = to.data();
  const std::size_t count = to.size();
  if (query_.part == RowPart::squares) {
    at_full_width([=]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < count; ++i) {
        const float residual = lambda * theta[i] - eta[i];
        out[i] = coefficient * residual * residual;
      }
    });
  } else {
    at_full_width([=]() __attribute__((always_inline)) {
      for (std::size_t i = 0; i < count; ++i) {
        out[i] = theta[i] - coefficient * (lambda * theta[i] - eta[i]);
      }
    });
  }
}

void UntouchedRows::read_after_the_way(std::size_t begin, std::span<float> to) const {
  const auto if_asked = [&](RowPart part) { return query_.part == part ? to.data() : nullptr; };
  travel(law_.numbers, way_, to.size(), {start_.eta + begin, start_.lambda + begin}, start_.decay,
         start_.theta + begin,
         {.theta = if_asked(RowPart::theta),
          .sum = if_asked(RowPart::sum),
          .mean = if_asked(RowPart::mean),
          .squares = if_asked(RowPart::squares)});
  if (query_.divisor == 1) return;
  for (float& x : to) x /= float(query_.divisor);
}

}  // namespace fedep
