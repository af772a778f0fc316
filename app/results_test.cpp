#include "app/results.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Result table2_result(std::uint64_t seed, double accuracy, double rounds_to_50 = kNan) {
  return {.table = "table2",
          .row = "fed_ep_i",
          .seed = seed,
          .rounds = 1500,
          .metrics = {{"accuracy_1000", 0.48},
                      {"accuracy_1500", accuracy},
                      {"rounds_to_45", 470},
                      {"rounds_to_50", rounds_to_50}},
          .seconds = 12.5,
          .device = "cpu: a CPU, 2 threads",
          .date = "2026-01-31T12:00:00Z",
          .version = "0.1.0"};
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

class ResultFiles : public testing::Test {
 protected:
  ResultFiles()
      : file_(std::filesystem::path(testing::TempDir()) /
              (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
               ".jsonl")) {
    std::filesystem::remove(file_);
  }
  ~ResultFiles() override {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }

  std::filesystem::path file_;
};

TEST(ResultLine, HasThePromisedForm) {
  EXPECT_EQ(to_line(table2_result(1, 0.5)),
            R"({"table":"table2","row":"fed_ep_i","seed":1,"rounds":1500,"metrics":)"
            R"({"accuracy_1000":0.48,"accuracy_1500":0.5,"rounds_to_45":470,"rounds_to_50":null},)"
            R"("seconds":12.5,"device":"cpu: a CPU, 2 threads","date":"2026-01-31T12:00:00Z",)"
            R"("version":"0.1.0"})");
}

TEST_F(ResultFiles, GiveBackWhatWasAppended) {
  EXPECT_TRUE(read_results(file_).empty());
  append_result(file_, table2_result(1, 0.5));
  append_result(file_, table2_result(2, 0.51, 1200));
  const std::vector<Result> results = read_results(file_);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(to_line(results[0]), to_line(table2_result(1, 0.5)));
  EXPECT_EQ(to_line(results[1]), to_line(table2_result(2, 0.51, 1200)));
}

TEST_F(ResultFiles, WithALineThatIsNoResultAreRefusedWithItsNumber) {
  append_result(file_, table2_result(1, 0.5));
  for (const auto* line : {"not json", "{}", R"({"table":2})"}) {
    std::ofstream(file_, std::ios::app) << line << '\n';
    try {
      read_results(file_);
      ADD_FAILURE() << "took " << line;
    } catch (const InputError& error) {
      EXPECT_TRUE(has(error.what(), ".jsonl:2:")) << error.what();
    }
  }
}

}  // namespace
}  // namespace fedep
