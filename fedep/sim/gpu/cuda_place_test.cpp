#include "fedep/sim/gpu/cuda_place.h"

#include <string>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

TEST(CudaPlace, SaysInOneLineWhyItCannot) {
  const std::string why = cuda_problem();
  if (why.empty()) {
    EXPECT_EQ(cuda_text({.precision = ProductPrecision::tf32}).find("cuda "), 0u);
    EXPECT_NE(cuda_text({.precision = ProductPrecision::tf32}).find(" (tf32)"), std::string::npos);
    EXPECT_NE(cuda_text({.precision = ProductPrecision::float32}).find(" (float32)"),
              std::string::npos);
    return;
  }
  EXPECT_EQ(why.find('\n'), why.npos);
  EXPECT_TRUE(why == "this build has no CUDA: configure with -DFEDEP_WITH_CUDA=ON" ||
              why.starts_with("no usable GPU: "))
      << why;
}

// The toy has formulas in place of examples, so nothing for a GPU to train on.
TEST(CudaPlace, RefusesATaskWithoutExamples) {
  Recipe recipe;
  recipe.data.name = "toy";
  const auto task = make_task(recipe, "");
  const auto home = make_memory_store();
  EXPECT_THROW(check_cuda_place(recipe, *task), InputError);
  EXPECT_THROW(make_cuda_place(recipe, *task, *home, {}), InputError);
}

}  // namespace
}  // namespace fedep
