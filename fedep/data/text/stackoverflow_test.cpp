#include "fedep/data/text/stackoverflow.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/test_batches.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using Words = std::vector<std::string>;

std::filesystem::path write(const std::string& text) {
  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const auto folder = std::filesystem::path(testing::TempDir()) / ("stackoverflow_" + test);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "questions.tsv") << text;
  return folder;
}

std::string error_of(const std::string& text) {
  return message_of<InputError>([&] { open_stackoverflow({}, 1, write(text)); });
}

TEST(Stackoverflow, WordsAreCutAsDocumented) {
  EXPECT_EQ(title_words("How do I use C++/C# in .NET?"),
            (Words{"how", "do", "i", "use", "c++", "c#", "in", ".net"}));
  EXPECT_EQ(title_words("Don't \"quote\" 'this' -- or_that... e.g. asp.net."),
            (Words{"don't", "quote", "this", "or_that", "e.g", "asp.net"}));
  EXPECT_EQ(title_words("na\xC3\xAFve\tUTF-8"), (Words{"na\xC3\xAFve", "utf-8"}));
  EXPECT_EQ(title_words(" ... - "), Words{});
  EXPECT_EQ(title_words(""), Words{});
}

TEST(Stackoverflow, PiecesAreNeverEmpty) {
  EXPECT_EQ(split_any("|a||b c|", "| "), (Words{"a", "b", "c"}));
  EXPECT_EQ(split_any("", "|"), Words{});
}

TEST(Vocabulary, WordsAreOrderedByUsersTagsByQuestions) {
  VocabularyCounter counter;
  counter.add_user(
      std::vector<Question>{{{"much", "much", "all"}, {"x"}}, {{"much"}, {"x", "y", "y"}}});
  counter.add_user(std::vector<Question>{{{"all", "zeta", "beta"}, {"y", "z"}}});
  // all: 2 users; the others 1 each, in alphabetical order. x and y: 2 questions each.
  EXPECT_EQ(counter.vocabulary(3, 2), (Vocabulary{{"all", "beta", "much"}, {"x", "y"}}));
  EXPECT_EQ(counter.vocabulary(10, 10),
            (Vocabulary{{"all", "beta", "much", "zeta"}, {"x", "y", "z"}}));
}

TEST(QuestionRows, FeaturesAreSharesOfTheWordsInTheVocabulary) {
  QuestionRows rows({{"a", "b", "c"}, {"s", "t"}});
  rows.add({{"c", "a", "unknown", "c", "c"}, {"t", "unknown", "s", "t"}});
  rows.add({{"unknown"}, {}});
  rows.add({{"b"}, {"t"}});
  Batch batch;
  const std::vector<std::size_t> order = {0, 2, 1};
  rows.gather(order, batch);
  EXPECT_EQ(batch.size, 3u);
  EXPECT_EQ(batch.sparse, (SparseRows{{0, 2, 3, 3}, {0, 2, 1}, {0.25f, 0.75f, 1.f}}));
  EXPECT_EQ(batch.tags, (SparseRows{{0, 2, 3, 3}, {0, 1, 1}, {}}));
}

TEST(QuestionRows, AVocabularyIsChecked) {
  EXPECT_THROW(QuestionRows({{}, {"t"}}), InputError);
  EXPECT_THROW(QuestionRows({{"a", "a"}, {"t"}}), InputError);
  EXPECT_THROW(QuestionRows({Words(70000, "a"), {"t"}}), InputError);
}

// User u has five questions, v two.
const char* const kText =
    "user\ttags\ttext\tscore\n"
    "u\tjava|c#\talpha beta\t1\n"
    "u\tjava\talpha\t1\n"
    "v\tperl\tgamma alpha\t1\n"
    "u\tjava\talpha delta\t1\n"
    "u\tjava\talpha\t1\n"
    "u\tjava\talpha\t1\n"
    "v\tjava\tgamma\t1\n";

TEST(Stackoverflow, UsersWithFewQuestionsAreTestUsers) {
  const auto data =
      open_stackoverflow({.name = "stackoverflow", .min_examples = 5}, 1, write(kText));
  ASSERT_EQ(data->clients().size(), 1u);
  EXPECT_EQ(data->clients()[0], std::pair(std::string("u"), std::size_t(4)));
  EXPECT_EQ(data->test_size(), 3u);
  EXPECT_EQ(data->test_clients(), (Words{"u", "v"}));
  EXPECT_TRUE(data->info().sparse);
  EXPECT_EQ(data->info().target, TargetKind::tags);
  EXPECT_EQ(data->info().feature_count(), data->info().feature_names.size());
  EXPECT_EQ(data->info().outputs, data->info().output_names.size());
}

TEST(Stackoverflow, VocabulariesComeFromTrainingQuestionsAlone) {
  const auto data = open_stackoverflow({.min_examples = 5}, 1, write(kText));
  const Words& words = data->info().feature_names;
  EXPECT_EQ(words.front(), "alpha");
  EXPECT_EQ(std::count(words.begin(), words.end(), "gamma"), 0) << "only a test user's word";
  const Words& tags = data->info().output_names;
  EXPECT_EQ(tags.front(), "java");
  EXPECT_EQ(std::count(tags.begin(), tags.end(), "perl"), 0);
  Batch test;
  data->test_batch(2, 3, test);  // gamma; java
  EXPECT_EQ(test.sparse.columns.size(), 0u);
  EXPECT_EQ(test.tags.columns, (std::vector<std::uint32_t>{0}));
}

TEST(Stackoverflow, ExamplesBeyondTheLimitAreLeftOut) {
  const auto data = open_stackoverflow({.min_examples = 5, .max_examples = 2}, 1, write(kText));
  EXPECT_EQ(data->clients()[0].second, 2u);
  EXPECT_EQ(data->test_size(), 3u) << "the test set stays";
}

TEST(Stackoverflow, TheTestSetDoesNotDependOnTheSeed) {
  const auto folder = write(kText);
  const auto a = open_stackoverflow({.min_examples = 5}, 1, folder);
  const auto b = open_stackoverflow({.min_examples = 5}, 2, folder);
  EXPECT_EQ(training_batch(*a, 0), training_batch(*b, 0));
}

TEST(Stackoverflow, BadRecordsAreCountedAndBadFilesRefused) {
  const auto data = open_stackoverflow(
      {.min_examples = 5}, 1,
      write(std::string(kText) + "u\t\tno tags\t1\n\tjava\tnobody\t1\nu\tjava\n"));
  EXPECT_EQ(data->info().skipped_records, 3u);
  EXPECT_NE(error_of("tags\ttext\njava\ta\n").find("user_id"), std::string::npos);
  EXPECT_NE(error_of("user\ttags\nu\tjava\n").find("text"), std::string::npos);
  EXPECT_NE(error_of("user\ttags\ttext\n").find("users with at least"), std::string::npos);
  EXPECT_THROW(open_stackoverflow({.path = "none"}, 1, testing::TempDir()), InputError);
}

TEST(Stackoverflow, TheRealQuestionsHaveTheirCounts) {
  const std::filesystem::path folder = real_data("stackoverflow/questions.tsv");
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  const DataSettings settings{.name = "stackoverflow", .path = "stackoverflow", .min_examples = 10};
  const auto data = open_stackoverflow(settings, 1, folder);
  EXPECT_EQ(data->clients().size(), 589u);
  EXPECT_EQ(data->info().feature_count(), kStackoverflowWords);
  EXPECT_EQ(data->info().outputs, kStackoverflowTags);
  EXPECT_EQ(data->info().skipped_records, 0u);
  std::size_t train = 0, tagged = 0;
  for (std::size_t k = 0; k < data->clients().size(); ++k) {
    const Batch batch = training_batch(*data, k);
    train += batch.size;
    for (std::size_t i = 0; i < batch.size; ++i) {
      const auto begin = batch.sparse.offsets[i], end = batch.sparse.offsets[i + 1];
      float sum = 0;
      for (std::size_t at = begin; at < end; ++at) {
        sum += batch.sparse.values[at];
        ASSERT_LT(batch.sparse.columns[at], kStackoverflowWords);
        ASSERT_TRUE(at == begin || batch.sparse.columns[at - 1] < batch.sparse.columns[at]);
      }
      EXPECT_TRUE(begin == end || std::abs(sum - 1) < 1e-5f);
      tagged += batch.tags.offsets[i + 1] > batch.tags.offsets[i];
    }
  }
  // 22,737 questions of 2,531 users, 16,408 of them by the 589; a rounded fifth of each held out.
  EXPECT_EQ(train + data->test_size(), 22737u);
  EXPECT_NEAR(double(train), 0.8 * 16408, 0.5 * 589);
  EXPECT_GT(double(tagged) / double(train), 0.9);
  const std::set<std::string> clients(data->test_clients().begin(), data->test_clients().end());
  EXPECT_EQ(clients.size(), 2531u) << "every user is in the test set";
}

}  // namespace
}  // namespace fedep
