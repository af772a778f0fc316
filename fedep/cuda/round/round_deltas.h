// The deltas of a round's clients on the GPU, from measuring them to the exact sum and the clients'
// own factors: what round/host_rows and round/aggregate are in main memory. No delta is written down:
// each is a difference of two vectors that are there anyway.
//
//   RoundDeltas deltas(global, mean);
//   for (…) deltas.add_quotient(std::move(run.tilted), {});     // client 0, 1, …
//   const std::vector<double> norms = deltas.measure();
//   for (…) inside[k] = deltas.round_to(grid, k, clip · weight · damping);
//   const DeviceMessage total = deltas.total(grid);             // of those inside
//   deltas.move_factors(grid, moves, settings);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fedep/cuda/device/device_vector.h"
#include "fedep/cuda/round/device_sites.h"
#include "fedep/cuda/round/round_kernels.h"
#include "fedep/optim/settings.h"
#include "fedep/round/grid.h"

namespace fedep {

// A client whose own factor moves by what was sent.
struct FactorMove {
  std::size_t client = 0;  // as added
  DeviceSite* site = nullptr;
  MissedSteps missed = {};  // on the server's clock
};

struct FactorStep {
  OptimizerSettings optimizer;
  double scale = 1;   // of the optimizer's step
  double settle = 1;  // how much of its step a factor keeps
  // On the server's clock this step in place of that, after which it has so many.
  std::optional<ClockedStep> clocked = {};
  std::int64_t server_steps = 0;
};

// A sum of deltas in units of the grid, in 32 bits where that is the grid's width.
struct UnitArray {
  DeviceArray<std::int64_t> wide;
  DeviceArray<std::int32_t> narrow;
};
struct DeltaUnits {
  UnitArray eta, lambda;  // no lambda where it is a number
  std::int64_t lambda_number = 0;
};
// A number of units back in what they are units of.
float number_of_units(std::int64_t units, int exponent);

// q and its mean must stay until the last call.
class RoundDeltas {
 public:
  RoundDeltas(const DeviceMessage& global, const DeviceVector& mean)
      : global_(global), mean_(mean) {}

  // Divided by q, if there is no other divisor.
  void add_quotient(DeviceMessage tilted, std::optional<DeviceMessage> divisor);
  void add_move(DeviceVector to);     // (to - mean, 0)
  void add_points(DeviceVector eta);  // (eta, 0)
  void add_flat();

  // Joint norms (optim/clip.h), of all clients in one go.
  std::vector<double> measure();
  // Whether scale × delta fits the grid. If so it is in total().
  bool round_to(const Grid& grid, std::size_t client, double scale);
  DeviceMessage total(const Grid& grid) const;
  // The same before units are made numbers, where those of others are still to be added.
  DeltaUnits units(const Grid& grid) const;
  void move_factors(const Grid& grid, const SiteShape& shape, const std::vector<FactorMove>& moves,
                    const FactorStep& step) const;

 private:
  struct Row {
    gpu::DeltaRow eta, lambda;
    bool isotropic = true;  // lambda is a number
    float largest_eta = 0, largest_lambda = 0;
    bool inside = false;
    std::int64_t lambda_units = 0;  // of an isotropic lambda on the grid
  };
  // The rows that are sent: their etas, then in a diagonal round their lambdas.
  struct Sent {
    DeviceArray<gpu::DeltaRow> arrays;
    std::size_t count = 0;  // of either
    std::int64_t lambda_units = 0;
  };
  Sent sent() const;
  void add(Row row);
  std::size_t size() const { return global_.size(); }
  bool diagonal() const { return !global_.isotropic(); }

  const DeviceMessage& global_;
  const DeviceVector& mean_;
  std::vector<Row> rows_;
  std::vector<DeviceMessage> kept_;  // what rows refer to
};

}  // namespace fedep
