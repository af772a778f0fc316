#include "fedep/cuda/device/device.h"

#include <cstdint>
#include <numeric>

#include <gtest/gtest.h>

#include "fedep/cuda/device/side_stream.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

class Device : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  }
};

std::vector<std::int64_t> counting(std::size_t size, std::int64_t from) {
  std::vector<std::int64_t> values(size);
  std::iota(values.begin(), values.end(), from);
  return values;
}

TEST(DeviceProblem, IsOneLineWithOrWithoutAGpu) {
  const std::string why = device_problem();
  EXPECT_EQ(why, device_problem());
  if (why.empty()) return;
  EXPECT_EQ(why.find("no usable GPU: "), 0u) << why;
  EXPECT_EQ(why.find('\n'), why.npos);
}

TEST_F(Device, HasANameAndMemory) {
  EXPECT_FALSE(device_name().empty());
  const std::size_t before = device_memory_free();
  EXPECT_GT(before, std::size_t(1) << 20);
  {
    const DeviceArray<float> large(std::size_t(64) << 20);
    EXPECT_LE(device_memory_free() + (std::size_t(200) << 20), before);
  }
  wait_for_device();
  EXPECT_GE(device_memory_free() + (std::size_t(32) << 20), before);  // the pool's counts as free
}

TEST_F(Device, CopiesComeBackAsTheyWent) {
  // Both ways of copying: small ones are staged, and together are more than the staging buffer.
  for (const std::size_t size : {std::size_t(1), std::size_t(1000), std::size_t(1) << 17}) {
    const std::vector<std::int64_t> values = counting(size, 7);
    DeviceArray<std::int64_t> there{std::span(values)};
    EXPECT_EQ(there.download(), values);
    DeviceArray<std::int64_t> moved = std::move(there);
    EXPECT_EQ(moved.download(), values);
    moved.zero();
    EXPECT_EQ(moved.download(), std::vector<std::int64_t>(size, 0));
  }
  std::vector<DeviceArray<std::int64_t>> many;
  for (int i = 0; i < 100; ++i) {
    std::vector<std::int64_t> values = counting(10000, i);
    many.emplace_back(std::span<const std::int64_t>(values));
    values.assign(values.size(), -1);  // free to be changed once the call has returned
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(many[std::size_t(i)].download(), counting(10000, i)) << i;
}

TEST_F(Device, AnArrayOfNothingIsFine) {
  DeviceArray<float> none(0);
  none.zero();
  EXPECT_TRUE(none.download().empty());
}

TEST_F(Device, MemoryThatIsNotThereIsARunError) {
  EXPECT_THROW(device_allocate(std::size_t(1) << 50), RunError);
  const DeviceArray<float> still_fine(10);
  EXPECT_NO_THROW(wait_for_device());
}

TEST_F(Device, ASideStreamCopiesInOrderWithTheMainOne) {
  constexpr std::size_t kSize = std::size_t(1) << 20;
  const std::vector<std::int64_t> values = counting(kSize, 3);
  DeviceArray<std::int64_t> from(kSize);
  auto* pinned = static_cast<std::int64_t*>(pinned_allocate(kSize * sizeof(std::int64_t)));
  SideStream out, in;
  from.upload(values);
  out.follow_main();
  out.copy(pinned, from.data(), kSize * sizeof(std::int64_t));
  DeviceArray<std::int64_t> to(kSize);
  to.zero();
  in.follow_main();
  in.follow(out);
  in.copy(to.data(), pinned, kSize * sizeof(std::int64_t));
  in.main_follows();
  EXPECT_EQ(to.download(), values);
  out.wait();
  pinned_free(pinned);
}

}  // namespace
}  // namespace fedep
