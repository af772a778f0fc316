// A last round of curvature: after the last round every client sends gradient and Hessian of -log of its
// likelihood at q's mean, and the server adds them. With the prior's precision this is the Hessian of the
// whole posterior there, which messages with a precision for each weight do not hold.
//
//   Curvature sum = add_curvatures(clients, weights, [&](std::size_t client) { … });
//   sum.round = state.round;
//
// Like deltas, numbers are rounded to a grid and added as integers: the sum does not depend on the order of
// clients. The grid follows from the largest number that any client has; so each is asked twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace fedep {

// Of one client, or of all of them.
struct CurvaturePart {
  std::vector<double> gradient = {};  // [d]
  std::vector<double> hessian = {};   // lower triangle, row by row (message/packed.h)

  bool operator==(const CurvaturePart&) const = default;
};

struct Curvature {
  std::int64_t round = 0;        // completed before it
  std::vector<float> mean = {};  // where it was taken
  CurvaturePart sum = {};        // over all clients, without the prior

  bool operator==(const Curvature&) const = default;
};

// The sum of part(0), …, part(clients - 1): gradients, and Hessians, within 2^-61 clients² of the largest
// number among them. Nothing if `stop`, asked before each client, says so. Throws RunError naming the client if a number is not finite.
std::optional<CurvaturePart> add_curvatures(
    std::size_t clients, std::size_t weights,
    const std::function<CurvaturePart(std::size_t client)>& part,
    const std::function<bool()>& stop = {});

}  // namespace fedep
