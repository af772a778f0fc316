#include "fedep/data/read_apart.h"

#include <signal.h>

#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using Numbers = std::vector<std::int32_t>;

class ReadApart : public testing::Test {
 protected:
  std::string error_of(const std::function<void(const RecordSender&)>& read) {
    return message_of<InputError>([&] { read_apart("x", file_, read, [](Record) {}); });
  }
  static void send_numbers(const RecordSender& send, const Numbers& numbers) {
    const std::vector<SectionView> sections{{"n", std::span<const std::int32_t>(numbers)}};
    send(sections);
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.write("file", std::string_view("x"));
};

TEST_F(ReadApart, WhatIsSentThereComesHereInOrder) {
  std::vector<Numbers> came;
  const Numbers large(1'000'000, 7);
  read_apart(
      "x", file_,
      [&](const RecordSender& send) {
        for (const Numbers& numbers : {Numbers{1, 2}, Numbers{}, large})
          send_numbers(send, numbers);
      },
      [&](Record record) { came.push_back(record.extract<std::int32_t>("n")); });
  EXPECT_EQ(came, (std::vector<Numbers>{{1, 2}, {}, large}));
}

TEST_F(ReadApart, ErrorsThereAreErrorsHere) {
  EXPECT_EQ(error_of([](const RecordSender&) { throw InputError("no such thing"); }),
            "no such thing");
  EXPECT_THROW(read_apart(
                   "x", file_, [](const RecordSender&) { throw RunError("full"); }, [](Record) {}),
               RunError);
}

TEST_F(ReadApart, ACrashThereRefusesTheFile) {
  const std::string expected =
      "x: " + file_.string() + " must be a sound file, but reading it breaks down";
  EXPECT_EQ(error_of([](const RecordSender&) { ::raise(SIGSEGV); }), expected);
  EXPECT_EQ(error_of([](const RecordSender& send) {
              send_numbers(send, {1});
              std::abort();
            }),
            expected);
  EXPECT_EQ(error_of([](const RecordSender&) { ::raise(SIGXCPU); }),
            "x: " + file_.string() + " must be a sound file, but reading it does not end");
}

TEST_F(ReadApart, AnErrorHereEndsTheReadingThere) {
  const auto read_for_ever = [](const RecordSender& send) {
    for (;;) send_numbers(send, {1});
  };
  EXPECT_THROW(read_apart("x", file_, read_for_ever, [](Record) { throw InputError("enough"); }),
               InputError);
}

}  // namespace
}  // namespace fedep
