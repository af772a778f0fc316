#include "fedep/data/image/pca.h"

#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include "fedep/data/test_files.h"
#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

// Rows with standard deviations 5, 4, 3, … along a rotated basis, around a mean far from zero.
std::vector<float> some_rows(std::size_t rows, std::size_t features, std::uint64_t seed = 1) {
  Stream stream({.seed = seed, .purpose = Purpose::test});
  std::vector<float> out(rows * features);
  for (std::size_t r = 0; r < rows; ++r) {
    double previous = 0;
    for (std::size_t k = 0; k < features; ++k) {
      const double scale = k < 5 ? 5.0 - double(k) : 0.1;
      const double own = scale * stream.normal();
      out[r * features + k] = float(10.0 + own + 0.3 * previous);
      previous = own;
    }
  }
  return out;
}

Pca fit(const std::vector<float>& rows, std::size_t features, std::size_t components) {
  return fit_pca(
      rows.size() / features, features, components, [&](std::size_t begin, std::span<float> out) {
        std::copy_n(rows.begin() + std::ptrdiff_t(begin * features), out.size(), out.begin());
      });
}

constexpr std::size_t kFeatures = 37;

TEST(Pca, ColumnsAreOrthonormalAndLargestFirst) {
  const Pca pca = fit(some_rows(1300, kFeatures), kFeatures, 6);
  for (std::size_t a = 0; a < 6; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      double dot = 0;
      for (std::size_t k = 0; k < kFeatures; ++k) {
        dot += double(pca.basis[k * 6 + a]) * double(pca.basis[k * 6 + b]);
      }
      EXPECT_NEAR(dot, a == b ? 1.0 : 0.0, 1e-6);
    }
    EXPECT_LE(pca.variances[a], pca.variances[a > 0 ? a - 1 : 0]);
  }
}

TEST(Pca, ProjectionsAreCentredUncorrelatedAndOfTheSaidVariance) {
  const auto rows = some_rows(1300, kFeatures);
  const Pca pca = fit(rows, kFeatures, 6);
  std::vector<float> out(1300 * 6);
  const PcaProjection project(pca);
  project(rows, out);
  for (std::size_t a = 0; a < 6; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      double sum = 0, product = 0;
      for (std::size_t r = 0; r < 1300; ++r) {
        sum += double(out[r * 6 + a]);
        product += double(out[r * 6 + a]) * double(out[r * 6 + b]);
      }
      EXPECT_NEAR(sum / 1300, 0.0, 1e-4);
      EXPECT_NEAR(product / 1300, a == b ? double(pca.variances[a]) : 0.0, 2e-3);
    }
  }
}

TEST(Pca, TheLargestCoordinateOfAComponentIsPositive) {
  const Pca pca = fit(some_rows(600, kFeatures), kFeatures, kFeatures);
  for (std::size_t c = 0; c < kFeatures; ++c) {
    float top = 0;
    for (std::size_t k = 0; k < kFeatures; ++k) {
      const float x = pca.basis[k * kFeatures + c];
      if (std::fabs(x) > std::fabs(top)) top = x;
    }
    EXPECT_GT(top, 0.0f);
  }
}

TEST(Pca, OneDirectionIsFoundExactly) {
  // Rows t (3, 4) / 5 + (1, 2), t = ±2: variance 4 along (0.6, 0.8), none across.
  const std::vector<float> rows{1 + 1.2f, 2 + 1.6f, 1 - 1.2f, 2 - 1.6f};
  const Pca pca = fit(rows, 2, 2);
  EXPECT_NEAR(pca.mean[0], 1.0f, 1e-6f);
  EXPECT_NEAR(pca.mean[1], 2.0f, 1e-6f);
  EXPECT_NEAR(pca.basis[0], 0.6f, 1e-5f);
  EXPECT_NEAR(pca.basis[2], 0.8f, 1e-5f);
  EXPECT_NEAR(pca.variances[0], 4.0f, 1e-5f);
  EXPECT_NEAR(pca.variances[1], 0.0f, 1e-5f);
}

TEST(PcaProjection, IsThePlainProduct) {
  const auto rows = some_rows(33, kFeatures);
  const Pca pca = fit(rows, kFeatures, 19);
  std::vector<float> out(33 * 19);
  const PcaProjection project(pca);
  project(rows, out);
  for (std::size_t r = 0; r < 33; ++r) {
    for (std::size_t c = 0; c < 19; ++c) {
      double expected = 0;
      for (std::size_t k = 0; k < kFeatures; ++k) {
        expected +=
            (double(rows[r * kFeatures + k]) - double(pca.mean[k])) * double(pca.basis[k * 19 + c]);
      }
      EXPECT_NEAR(double(out[r * 19 + c]), expected, 1e-4);
    }
  }
}

TEST(PcaProjection, ARowHasTheSameBitsWhateverIsAroundIt) {
  const auto rows = some_rows(33, kFeatures);
  const PcaProjection project(fit(rows, kFeatures, 19));
  std::vector<float> all(33 * 19);
  project(rows, all);
  for (std::size_t begin = 0; begin < 33; ++begin) {
    for (std::size_t count = 1; begin + count <= 33; ++count) {
      std::vector<float> some(count * 19);
      project(std::span(rows).subspan(begin * kFeatures, count * kFeatures), some);
      for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], all[begin * 19 + i]);
    }
  }
}

TEST(PcaProjection, NoRowsAreFineAndPiecesOfRowsAreNot) {
  const PcaProjection project(fit(some_rows(50, kFeatures), kFeatures, 3));
  std::vector<float> out;
  project({}, out);
  EXPECT_THROW(project(std::vector<float>(kFeatures + 1), out), InputError);
  EXPECT_THROW(project(std::vector<float>(kFeatures), out), InputError);
}

TEST(Pca, AFitComesBackFromItsFile) {
  const Pca pca = fit(some_rows(50, kFeatures), kFeatures, 3);
  const TemporaryFolder folder;
  save_pca(pca, folder.path() / "fit.record");
  EXPECT_EQ(load_pca(folder.path() / "fit.record"), pca);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    ++files;
  }
  EXPECT_EQ(files, 1u);
  std::filesystem::resize_file(folder.path() / "fit.record", 200);
  EXPECT_THROW(load_pca(folder.path() / "fit.record"), InputError);
  EXPECT_THROW(save_pca(pca, folder.path() / "none" / "fit.record"), RunError);
}

TEST(Pca, MoreComponentsThanFeaturesOrNoRowsAreRefused) {
  const auto rows = some_rows(5, kFeatures);
  EXPECT_THROW(fit(rows, kFeatures, kFeatures + 1), InputError);
  EXPECT_THROW(fit({}, kFeatures, 2), InputError);
}

}  // namespace
}  // namespace fedep
