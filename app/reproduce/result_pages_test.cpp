#include "app/reproduce/result_pages.h"

#include <gtest/gtest.h>

#include "app/reproduce/test_result.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kPlace = "by hand\n<!-- table2 -->\nold\n<!-- end -->\nmore\n";

TEST(ResultPages, OfAFolderAreItsMarkdownFilesInOrder) {
  const TemporaryFolder folder;
  folder.write("table3.md", "");
  folder.write("table2.md", "");
  folder.write("results.jsonl", "");
  const auto pages = pages_of(folder.path());
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0].filename(), "table2.md");
  const auto one = pages_of(folder.path() / "none.md");
  EXPECT_EQ(one, std::vector{folder.path() / "none.md"});
  const TemporaryFolder empty;
  EXPECT_THROW(pages_of(empty.path()), InputError);
}

TEST(ResultPages, GetEachTableWhereItsPlaceIs) {
  const TemporaryFolder folder;
  const auto page = folder.write("table2.md", kPlace);
  const auto other = folder.write("README.md", "an index\n");
  const std::vector<Result> results{table2_result(1, 0.502)};
  EXPECT_EQ(write_pages(folder.path(), results), Names{});
  const std::string text = text_of(page);
  EXPECT_EQ(text.find("by hand\n<!-- table2 -->\n\n| row |"), 0u) << text;
  EXPECT_FALSE(has(text, "old"));
  EXPECT_EQ(text_of(other), "an index\n");
  EXPECT_EQ(write_pages(folder.path(), results), Names{});
  EXPECT_EQ(text_of(page), text);  // writing again changes nothing
}

TEST(ResultPages, NameTheTablesThatHaveNoPlace) {
  const TemporaryFolder folder;
  folder.write("table2.md", kPlace);
  Result own = table2_result(1, 0.5);
  own.table = "hospitals";
  EXPECT_EQ(write_pages(folder.path(), std::vector{table2_result(1, 0.5), own}),
            Names{"hospitals"});
}

TEST(ResultPages, AreCheckedBeforeThereAreResults) {
  const TemporaryFolder folder;
  const auto page = folder.write("table2.md", kPlace);
  EXPECT_NO_THROW(check_pages(folder.path(), "table2"));
  EXPECT_NO_THROW(check_pages(page, "table2"));
  EXPECT_NO_THROW(check_pages(folder.path() / "new.md", "table2"));
  EXPECT_EQ(
      message_of<InputError>([&] { check_pages(folder.path(), "table3"); }),
      folder.path().string() + ": must have a place <!-- table3 --> for the results, but has none");
  folder.write("torn.md", "<!-- table3 -->\n");
  EXPECT_THROW(check_pages(folder.path(), "table2"), InputError);
}

}  // namespace
}  // namespace fedep
