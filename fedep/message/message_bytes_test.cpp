#include "fedep/message/message_bytes.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

using testing::HasSubstr;

Record record_of(const Message& message, std::string_view prefix = "factor") {
  std::vector<SectionView> sections;
  append_sections(sections, prefix, message);
  return read_record(record_bytes(sections));
}

std::string refusal(const Record& record) {
  return message_of<InputError>([&] { message_from(record, "factor"); });
}

const std::vector<Message>& messages() {
  static const std::vector<Message> all = {
      Message(),
      Message({}, HostVector<float>()),
      Message({3.5f}, 2.f),
      Message({3.5f}, HostVector<float>{2.f}),
      Message({3.5f}, Packed<HostVector<float>>{{2.f}}),
      Message({1.f, -2.f}, Packed<HostVector<float>>{{4.f, -1e-30f, -3.f}}),
      Message({1.f, -0.f, std::numeric_limits<float>::denorm_min()}, -1e-30f),
      Message({1.f, 2.f, std::numeric_limits<float>::max()}, HostVector<float>{0.f, -1.f, 1e38f}),
  };
  return all;
}

TEST(MessageBytes, ComeBackAsTheSameMessageOfTheSameFamily) {
  for (const Message& message : messages()) {
    Record record = record_of(message);
    EXPECT_EQ(message_from(record, "factor"), message);
    EXPECT_EQ(extract_message(record, "factor"), message);
  }
}

TEST(MessageBytes, KeepTheSignOfZero) {
  const Message came = message_from(record_of(Message({-0.f}, -0.f)), "factor");
  EXPECT_TRUE(std::signbit(came.eta()[0]));
  EXPECT_TRUE(std::signbit(came.lambda_scalar()));
}

TEST(MessageBytes, HoldOnlyEtaAndOneNumberWhenIsotropic) {
  const Record record = record_of(Message(HostVector<float>(1000, 1.f), 2.f));
  EXPECT_EQ(record.get<float>("factor.eta").size(), 1000u);
  EXPECT_EQ(record.get<float>("factor.lambda").size(), 1u);
}

TEST(MessageBytes, OfTwoMessagesLiveInOneRecord) {
  const Message a({1.f, 2.f}, 3.f);
  const Message b({4.f}, HostVector<float>{5.f});
  std::vector<SectionView> sections;
  append_sections(sections, "a", a);
  append_sections(sections, "b", b);
  const Record record = read_record(record_bytes(sections));
  EXPECT_EQ(message_from(record, "a"), a);
  EXPECT_EQ(message_from(record, "b"), b);
}

TEST(MessageBytes, AreMovedOutByExtracting) {
  Record record = record_of(messages().back());
  extract_message(record, "factor");
  EXPECT_TRUE(record.get<float>("factor.eta").empty());
  EXPECT_TRUE(record.get<float>("factor.lambda").empty());
}

TEST(MessageBytes, RefuseWhatIsNotFinite) {
  const Message message({1.f}, std::numeric_limits<float>::infinity());
  EXPECT_THROW(record_of(message), InputError);
}

TEST(MessageBytes, RefuseAMissingSection) {
  Record record = record_of(messages()[2]);
  record.sections.pop_back();
  EXPECT_THAT(refusal(record), HasSubstr("section factor.lambda must be present"));
  EXPECT_THAT(refusal(Record{}), HasSubstr("section factor.family must be present"));
}

TEST(MessageBytes, RefuseSizesThatDoNotFit) {
  const std::vector<float> lambda(2, 1.f);
  Record record = record_of(messages()[2]);
  record.sections[2].values = lambda;
  EXPECT_EQ(refusal(record), "message_from: factor.lambda must be of 1 elements, but is of 2");
  record = record_of(messages()[5]);
  record.sections[2].values = lambda;
  EXPECT_EQ(refusal(record), "message_from: factor.lambda must be of 3 elements, but is of 2");
}

TEST(MessageBytes, RefuseAnUnknownFamily) {
  Record record = record_of(messages()[2]);
  record.sections[0].values = std::vector<std::uint8_t>{3};
  EXPECT_THAT(refusal(record),
              HasSubstr("must be 0 (isotropic), 1 (diagonal) or 2 (full), but is 3"));
  record.sections[0].values = std::vector<std::uint8_t>{};
  EXPECT_THAT(refusal(record), HasSubstr("factor.family must be of 1 elements, but is of 0"));
}

TEST(MessageBytes, RefuseAnotherElementType) {
  Record record = record_of(messages()[2]);
  record.sections[1].values = std::vector<double>{3.5};
  EXPECT_EQ(refusal(record), "record: section factor.eta must hold f32, but holds f64");
}

}  // namespace
}  // namespace fedep
