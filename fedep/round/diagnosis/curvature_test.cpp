// The sum of clients' curvature: exact, in any order, and not half of it.
#include "fedep/round/diagnosis/curvature.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

// Clients of very different sizes; numbers of one client too.
std::vector<CurvaturePart> random_parts(std::size_t clients) {
  Stream stream({.seed = 5, .purpose = Purpose::test});
  std::vector<CurvaturePart> parts(clients);
  for (CurvaturePart& part : parts) {
    const double size = std::exp(6 * stream.normal());
    for (int i = 0; i < 3; ++i) part.gradient.push_back(size * stream.normal());
    for (int i = 0; i < 6; ++i) part.hessian.push_back(size * stream.normal() * std::exp(-3.0 * i));
  }
  return parts;
}

CurvaturePart sum_of(const std::vector<CurvaturePart>& parts) {
  return *add_curvatures(parts.size(), 3, [&](std::size_t i) { return parts[i]; });
}

TEST(Curvature, TheSumHasTheSameBitsInAnyOrder) {
  std::vector<CurvaturePart> parts = random_parts(37);
  const CurvaturePart sum = sum_of(parts);
  for (int turn = 0; turn < 5; ++turn) {
    std::rotate(parts.begin(), parts.begin() + 11, parts.end());
    std::swap(parts[0], parts[20]);
    EXPECT_EQ(sum_of(parts), sum);
  }
}

TEST(Curvature, TheSumIsThatOfRealNumbers) {
  for (const std::size_t clients : {1u, 2u, 64u, 100u}) {
    const std::vector<CurvaturePart> parts = random_parts(clients);
    const CurvaturePart sum = sum_of(parts);
    for (std::size_t i = 0; i < 6; ++i) {
      long double exact = 0, largest = 0;
      for (const CurvaturePart& part : parts) {
        exact += part.hessian[i];
        for (const double x : part.hessian) {
          largest = std::max(largest, std::abs((long double)(x)));
        }
      }
      EXPECT_LE(std::abs((long double)(sum.hessian[i]) - exact), std::ldexp(largest, -48));
    }
  }
}

TEST(Curvature, NobodyAndNothingAreZero) {
  const CurvaturePart zero{{0, 0, 0}, {0, 0, 0, 0, 0, 0}};
  EXPECT_EQ(sum_of({}), zero);
  EXPECT_EQ(sum_of({zero, zero}), zero);
}

TEST(Curvature, WhoStopsItHasNothing) {
  const std::vector<CurvaturePart> parts = random_parts(4);
  int asked = 0;
  EXPECT_EQ(add_curvatures(
                4, 3, [&](std::size_t i) { return parts[i]; }, [&] { return ++asked == 7; }),
            std::nullopt);
  EXPECT_EQ(asked, 7);  // in the second turn
}

TEST(Curvature, WhatIsNotFiniteIsRefusedByItsClient) {
  std::vector<CurvaturePart> parts = random_parts(3);
  parts[2].hessian[4] = NAN;
  try {
    sum_of(parts);
    FAIL();
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("curvature of client 2"));
  }
}

}  // namespace
}  // namespace fedep
