#include "app/command.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/whole_number.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

// A program with one command, and what it was called with.
struct Bakery {
  Bakery() {
    Command* bake = program.add_subcommand("bake", "bread");
    bake->add_option("flour", flour, "its name")->required();
    bake->add_option("--loaves", loaves, "how many")->check(whole_number(1, 9));
    bake->add_option("--hours", hours, "list")->delimiter(',');
    bake->add_option("--note", notes, "any")->take_all();
    bake->add_flag("--dark", dark, "longer");
    bake->callback([this] { ++baked; });
    program.require_subcommand();
  }
  void call(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "bakery");
    program.parse(int(arguments.size()), arguments.data());
  }
  std::string refusal(const std::vector<const char*>& arguments) {
    return message_of<InputError>([&] { call(arguments); });
  }

  Command program{"a bakery", "bakery"};
  std::string flour;
  std::optional<int> loaves;
  std::vector<int> hours;
  std::vector<std::string> notes;
  bool dark = false;
  int baked = 0;
};

TEST(Command, SetsWhatTheLineSaysBeforeItIsCalledBack) {
  Bakery bakery;
  bakery.call({"bake", "rye", "--loaves", "3", "--hours", "4,5", "--note", "a", "--note", "b"});
  EXPECT_EQ(bakery.baked, 1);
  EXPECT_EQ(bakery.flour, "rye");
  EXPECT_EQ(bakery.loaves, 3);
  EXPECT_EQ(bakery.hours, (std::vector{4, 5}));
  EXPECT_EQ(bakery.notes, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(bakery.dark);
}

TEST(Command, LeavesAloneWhatTheLineDoesNotSay) {
  Bakery bakery;
  bakery.call({"bake", "rye", "--dark"});
  EXPECT_EQ(bakery.loaves, std::nullopt);
  EXPECT_TRUE(bakery.dark);
}

TEST(Command, ALineItDoesNotUnderstandIsRefusedAndCallsNobody) {
  Bakery bakery;
  EXPECT_EQ(bakery.refusal({"bake"}), "flour is required; see bakery bake --help");
  EXPECT_NE(bakery.refusal({"bake", "rye", "--loaves", "10"}).find("whole number from 1 to 9"),
            std::string::npos);
  EXPECT_NE(bakery.refusal({"bale"}).find("did you mean bake?"), std::string::npos);
  EXPECT_NE(bakery.refusal({"--vers"}).find("unknown option"), std::string::npos);
  EXPECT_EQ(bakery.baked, 0);
}

TEST(Command, HelpIsPrintedInPlaceOfACall) {
  Bakery bakery;
  testing::internal::CaptureStdout();
  bakery.call({"bake", "--help"});
  EXPECT_NE(testing::internal::GetCapturedStdout().find("--loaves"), std::string::npos);
  EXPECT_EQ(bakery.baked, 0);
}

}  // namespace
}  // namespace fedep
