#include "app/file_name.h"

#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

using namespace std::string_literals;

const std::string kHostile[] = {
    "/../../../etc/passwd"s, "..", ".",    "a/b", "a\0/../b"s, "\n", "~", "a%b", "\xff\xfe/..",
    std::string(5000, '/'),  "",   "C:\\x"};

TEST(FileNameParts, OfOrdinaryNamesAreTheNames) {
  for (const std::string name :
       {"accuracy", "nll_marginal", "recall_at_5", "fed_ep_i_alpha_5e-2"}) {
    EXPECT_EQ(file_name_part(name), name);
  }
}

TEST(FileNameParts, StayInTheirFolderWhateverTheNameIs) {
  for (const std::string& name : kHostile) {
    const std::string file = "figure-" + file_name_part(name) + ".svg";
    EXPECT_EQ(std::filesystem::path("out") / file,
              (std::filesystem::path("out") / file).lexically_normal());
    EXPECT_EQ(file.find('/'), file.npos) << file;
    EXPECT_EQ(file.find('\0'), file.npos);
    EXPECT_LT(file.size(), 120u);
  }
}

TEST(FileNameParts, OfDifferentNamesDiffer) {
  std::set<std::string> parts;
  for (const std::string& name : kHostile) parts.insert(file_name_part(name));
  EXPECT_EQ(parts.size(), std::size(kHostile));
  EXPECT_NE(file_name_part(std::string(200, 'a')), file_name_part(std::string(201, 'a')));
  EXPECT_EQ(file_name_part("a/b"), "a%2Fb");
}

TEST(FileNames, ThatWouldLeadElsewhereAreRefused) {
  EXPECT_NO_THROW(check_file_name("row", "fed_ep_i_alpha_5e-2"));
  for (const std::string& name : kHostile) {
    EXPECT_THROW(check_file_name("row", name), InputError) << name;
  }
}

}  // namespace
}  // namespace fedep
