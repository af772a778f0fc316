#include "fedep/sim/sparse/row_store.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "fedep/model/layer/vector_width.h"
#include "fedep/sim/sparse/row_moves.h"

namespace fedep {
namespace {

using namespace row_moves;

// Calls body<isotropic, sums>() at the full width.
template <class Body>
auto in_its_kind(bool isotropic, bool sums, Body body) {
  const auto at_width = [&](auto is_isotropic, auto has_sums) {
    at_full_width([=]() __attribute__((always_inline)) {
      body.template operator()<is_isotropic, has_sums>();
    });
  };
  if (isotropic && sums) return at_width(std::true_type(), std::true_type());
  if (isotropic) return at_width(std::true_type(), std::false_type());
  if (sums) return at_width(std::false_type(), std::true_type());
  return at_width(std::false_type(), std::false_type());
}

}  // namespace

RecordOffsets RowStore::offsets_of(const KeptParts& parts) {
  RecordOffsets offsets{};
  std::size_t next = kEta + kStripe;
  const auto place = [&](bool kept) {
    if (!kept) return std::size_t(0);
    next += kStripe;
    return next - kStripe;
  };
  offsets.lambda = place(parts.lambda);
  offsets.sum = place(parts.sum);
  offsets.mean = place(parts.mean);
  offsets.squares = place(parts.squares);
  offsets.size = next;
  return offsets;
}

RowStore::RowStore(std::size_t width, const KeptParts& parts)
    : width_(width), stripes_((width + kStripe - 1) / kStripe), offsets_(offsets_of(parts)) {}

std::size_t RowStore::columns(std::size_t stripe) const {
  return std::min(kStripe, width_ - stripe * kStripe);
}

void RowStore::resize(std::size_t slots) {
  if (slots > capacity_) {
    // The first epoch mostly shows all rows; what comes later should not move them every time.
    const std::size_t capacity = capacity_ == 0 ? slots : std::max(slots, capacity_ * 3 / 2);
    constexpr std::size_t kLine = 16;  // floats
    auto memory =
        std::make_unique_for_overwrite<float[]>(stripes_ * capacity * offsets_.size + kLine);
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(memory.get()) / sizeof(float);
    float* first = memory.get() + (kLine - beyond % kLine) % kLine;
    for (std::size_t stripe = 0; stripe < stripes_; ++stripe) {
      std::copy_n(record(stripe, 0), slots_ * offsets_.size,
                  first + stripe * capacity * offsets_.size);
    }
    memory_ = std::move(memory);
    first_ = first;
    capacity_ = capacity;
  }
  slots_ = slots;
}

void RowStore::begin(std::size_t stripe, const KeptRows& rows, std::size_t first,
                     const RowsStart& start) {
  constexpr std::size_t kAhead = 8;  // rows lie anywhere: memory is asked for them in time
  const std::size_t count = columns(stripe);
  const auto place = [&](std::size_t slot) { return rows.row(slot) * width_ + stripe * kStripe; };
  for (std::size_t slot = first; slot < slots_; ++slot) {
    if (slot + kAhead < slots_) {
      const std::size_t later = place(slot + kAhead);
      __builtin_prefetch(start.theta + later);
      __builtin_prefetch(start.theta + later + count - 1);
      __builtin_prefetch(start.eta + later);
      __builtin_prefetch(start.eta + later + count - 1);
    }
    const std::size_t from = place(slot);
    float* to = record(stripe, slot);
    if (count == kStripe) {  // whose copies the compiler writes out
      std::memcpy(to, start.theta + from, kStripe * sizeof(float));
      std::memcpy(to + kEta, start.eta + from, kStripe * sizeof(float));
    } else {
      std::fill_n(to, offsets_.size, 0.0f);
      std::copy_n(start.theta + from, count, to);
      std::copy_n(start.eta + from, count, to + kEta);
    }
    std::fill_n(to + kMomentum, kStripe, 0.0f);
    for (std::size_t i = 0; offsets_.lambda > 0 && i < count; ++i) {
      to[offsets_.lambda + i] = start.lambda[from + i] + start.decay;
    }
  }
}

void RowStore::catch_up(std::size_t stripe, const RowLaw& law, std::span<const RowClock> clocks,
                        std::span<const StepPlan> plans, std::size_t i) {
  const StepPlan& plan = plans[i];
  float* const records = record(stripe, 0);
  const RecordOffsets at = offsets_;
  const RowClock* const clock = clocks.data();
  const RowClock now{.step = law.first_step + i, .event = plan.events};
  const std::uint32_t *const begin = plan.first_use.data(), *const end =
                                                                begin + plan.first_use.size();
  in_its_kind(
      law.isotropic, at.sum > 0, [=]<bool kIsotropic, bool kSums>() __attribute__((always_inline)) {
        for (const std::uint32_t* slot = begin; slot < end; ++slot) {
          const RowClock& then = clock[*slot];
          if (then.step == now.step && then.event == now.event) continue;
          float* const r = records + *slot * at.size;
          const Record record(r, at);
          Moving row;
          load_moving<kIsotropic, kSums>(record, row);
          travel<kIsotropic, kSums>(law, then, now, record, row);
          store_moving<kSums>(row, record);
        }
      });
}

void RowStore::logits(std::size_t stripe, const StepPlan& plan, float* z) const {
  const float* const records = record(stripe, 0);
  const std::size_t size = offsets_.size, examples = plan.batch.size;
  const std::uint32_t* const offsets = plan.batch.sparse.offsets.data();
  const WordUse* const words = plan.by_example.data();
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < examples; ++i) {
      Lanes sum;
      load(records, sum);  // the bias
      for (std::size_t k = offsets[i]; k < offsets[i + 1]; ++k) {
        const float value = words[k].value;
        Lanes theta;
        load(records + words[k].at * size, theta);
        sum += value * theta;
      }
      store(sum, z + i * kStripe);
    }
  });
}

void RowStore::descend(std::size_t stripe, const RowLaw& law, float scale,
                       std::span<const StepPlan> plans, std::size_t i, const float* delta) {
  const StepPlan& plan = plans[i];
  float* const records = record(stripe, 0);
  const RecordOffsets at = offsets_;
  const TouchedRow *const begin = plan.rows.data(), *const end = begin + plan.rows.size();
  const WordUse* const uses = plan.by_row.data();
  const RowClock now{.step = law.first_step + i + 1, .event = plan.events};
  in_its_kind(
      law.isotropic, at.sum > 0, [=]<bool kIsotropic, bool kSums>() __attribute__((always_inline)) {
        const WordUse* use = uses;
        for (const TouchedRow* touched = begin; touched < end; ++touched) {
          Lanes gradient{};
          for (const WordUse* const last = use + touched->uses; use < last; ++use) {
            const float value = use->value;
            Lanes d;
            load(delta + use->at * kStripe, d);
            gradient += value * d;
          }
          float* const r = records + touched->slot * at.size;
          const Record record(r, at);
          Moving row;
          load_moving<kIsotropic, kSums>(record, row);
          gradient *= scale;
          if (!touched->events) {
            descend_row<kIsotropic, kSums>(law, gradient, touched->wait, row);
          } else {
            descend_row<kIsotropic, kSums>(law, gradient, 0, row);
            const std::size_t next = i + 1 + touched->wait;
            const RowClock then{.step = law.first_step + next, .event = plans[next].events};
            travel<kIsotropic, kSums>(law, now, then, record, row);
          }
          store_moving<kSums>(row, record);
        }
      });
}

void RowStore::read(std::size_t slot, const RowQuery& query, const RowLaw& law,
                    const RowClock& clock, std::span<float> to) const {
  const RecordOffsets at = offsets_;
  const std::array<std::size_t, 4> places{0, at.sum, at.mean, at.squares};
  const std::size_t wanted = places[std::size_t(query.part)], stripes = stripes_;
  const float* const records = record(0, slot);
  const std::size_t apart = capacity_ * at.size, width = width_;
  const RowClock now{.step = query.step, .event = law.events.size()};
  const float divisor = float(query.divisor);
  float* const out = to.data();
  in_its_kind(
      law.isotropic, at.sum > 0, [=]<bool kIsotropic, bool kSums>() __attribute__((always_inline)) {
        constexpr std::size_t kMostParts = 7;
        alignas(64) float r[kMostParts * kStripe];
        for (std::size_t stripe = 0; stripe < stripes; ++stripe) {
          std::memcpy(r, records + stripe * apart, at.size * sizeof(float));
          const Record record(r, at);
          Moving row;
          load_moving<kIsotropic, kSums>(record, row);
          travel<kIsotropic, kSums>(law, clock, now, record, row);
          store_moving<kSums>(row, record);
          const std::size_t begin = stripe * kStripe;
          const std::size_t count = width - begin < kStripe ? width - begin : kStripe;
          for (std::size_t i = 0; i < count; ++i) out[begin + i] = r[wanted + i] / divisor;
        }
      });
}

}  // namespace fedep
