#include "fedep/data/made_up/planned_size.h"

#include "fedep/data/made_up/synthetic.h"

namespace fedep {
namespace {

constexpr double kBytesPerClient = 100;  // its name, and where its examples are
constexpr double kBytesPerLabel = sizeof(float);

double examples_of(const DataSettings& settings) {
  return double(settings.clients) * double(settings.examples);
}

PlannedSize rows_of_floats(const DataSettings& settings, double outputs) {
  const double features = settings.dimension;
  return {.bytes = examples_of(settings) * (sizeof(float) * features + kBytesPerLabel) +
                   kBytesPerClient * settings.clients,
          .weights = outputs * (features + 1)};
}

}  // namespace

// A mean and a covariance each.
PlannedSize toy_size(const DataSettings& settings) {
  const double d = settings.dimension;
  return {.bytes = settings.clients * (sizeof(double) * d * (d + 1) + kBytesPerClient),
          .weights = d};
}

PlannedSize synthetic_size(const DataSettings& settings) {
  return rows_of_floats(settings, double(kSyntheticClasses));
}

PlannedSize regression_size(const DataSettings& settings) { return rows_of_floats(settings, 1); }

PlannedSize random_images_size(const DataSettings& settings) {
  constexpr double kPixels = 32 * 32 * 3, kLabels = 10;
  return {.bytes = examples_of(settings) * (kPixels + kBytesPerLabel) +
                   kBytesPerClient * settings.clients,
          .weights = kLabels * (kPixels + 1)};
}

// Examples are not stored.
PlannedSize random_tags_size(const DataSettings& settings) {
  return {.bytes = kBytesPerClient * settings.clients,
          .weights = double(settings.tags) * (double(settings.dimension) + 1)};
}

}  // namespace fedep
