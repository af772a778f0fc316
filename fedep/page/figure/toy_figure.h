// The two pictures of the toy experiment, as SVG documents (Guo+23 Fig. 1 and Fig. 4 left). They
// take plain numbers, so that whoever has those can draw.
#pragma once

#include <string>
#include <vector>

namespace fedep {

struct PlanePoint {
  double x = 0;
  double y = 0;
};

struct PlaneGaussian {
  PlanePoint mean;
  double var_x = 1;
  double var_y = 1;
  double cov_xy = 0;
};

struct ToyContours {
  std::vector<PlaneGaussian> clients;
  PlanePoint exact;
  PlanePoint fed_avg;
  PlanePoint fed_pa;
  std::vector<PlanePoint> path;  // of EP's mean, one point a step
};

// One- and two-sigma ellipses of the clients, the estimates, EP's path, and a close-up of where it
// ends.
std::string draw_toy_contours(const ToyContours& contours);

// Mean distance to the exact mean after round 1, 2, ...: four curves of the same length.
struct ToyCurves {
  std::vector<double> fed_avg;
  std::vector<double> fed_pa;
  std::vector<double> fed_ep;
  std::vector<double> fed_ep_identity;
  int trials = 0;
};

std::string draw_toy_distances(const ToyCurves& curves);

}  // namespace fedep
