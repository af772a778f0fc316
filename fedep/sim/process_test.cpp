#include "fedep/sim/process.h"

#include <cblas-openblas.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/model/blas.h"
#include "fedep/sim/task.h"
#include "fedep/sim/test_process.h"

namespace fedep {
namespace {

using testing::HasSubstr;

constexpr const char* kRecipe =
    "[data]\nname = \"synthetic\"\nclients = 3\n[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 1\n";

TEST(AProcess, ThatIsPreparedHasOneBlasThread) {
  openblas_set_num_threads(2);
  prepare_process();
  EXPECT_EQ(blas_threads(), 1);
}

TEST(ATask, IsRefusedWhereBlasHasSeveralThreadsAndTheCallIsNamed) {
  openblas_set_num_threads(2);
  const std::string refusal = message_of<InputError>([] { make_task(parse_recipe(kRecipe), ""); });
  prepare_process();
  EXPECT_THAT(refusal, HasSubstr("one thread, but uses 2: call fedep::prepare_process()"));
  EXPECT_NE(make_task(parse_recipe(kRecipe), ""), nullptr);
}

}  // namespace
}  // namespace fedep
