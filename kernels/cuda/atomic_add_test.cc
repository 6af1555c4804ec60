// SPDX-License-Identifier: Apache-2.0
// Compiled as C++, where kernels run on the CPU (kernels/cuda/cuda.h).
#include "kernels/cuda/atomic_add.h"

#include <gtest/gtest.h>

#include <vector>

namespace polyop {
namespace {

// Adds 1, 2, 3, … to the elements of each channel, twice, and returns the number of channels of each call.
template <class T>
std::vector<int64_t> SumTwice(const CudaContext& cuda, int64_t max_sums, std::vector<T>* to) {
  constexpr int64_t kOuter = 2, kChannels = 5, kInner = 3;
  to->assign(kOuter * kChannels * kInner, FromFloat<T>(-7));
  std::vector<int64_t> counts;
  const Status status = SumAtomically(
      cuda, kOuter, kChannels, kInner, to->data(),
      [&](const ChannelSums& sums) {
        counts.push_back(sums.count);
        return ForEach(cuda, 2 * kOuter * kChannels * kInner, [=](int64_t i) {
          const int64_t at = i / 2, channel = at / kInner % kChannels;
          if (!sums.Has(channel)) return;
          AtomicAdd(sums.Plane(at / (kChannels * kInner), channel) + at % kInner, static_cast<float>(at) + 1);
        });
      },
      max_sums);
  EXPECT_TRUE(status.ok()) << status.message();
  return counts;
}

template <class T>
void ExpectSums(const std::vector<T>& got) {
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(ToFloat(got[i]), 2 * (static_cast<float>(i) + 1)) << i;
}

TEST(SumAtomically, AddsChannelsInBoundedScratch) {
  std::vector<float> memory(1 << 10);
  std::vector<Half> half;
  // 6 sums per channel: all channels at a time, two, and one, which needs more scratch than is allowed.
  for (const auto& [max_sums, counts] :
       std::vector<std::pair<int64_t, std::vector<int64_t>>>{{1 << 20, {5}}, {13, {2, 2, 1}}, {4, {1, 1, 1, 1, 1}}}) {
    const CudaContext cuda(nullptr, memory.data(), memory.size() * sizeof(float));
    EXPECT_EQ(SumTwice(cuda, max_sums, &half), counts);
    EXPECT_LE(cuda.used(), CudaContext::kAlignment);
    ExpectSums(half);
  }
}

TEST(SumAtomically, AddsFloatsInPlace) {
  const CudaContext cuda(nullptr, nullptr, 0);
  std::vector<float> sums;
  EXPECT_EQ(SumTwice(cuda, 1, &sums), std::vector<int64_t>{5});
  ExpectSums(sums);
}

TEST(SumAtomically, ReportsTooLittleScratch) {
  const CudaContext cuda(nullptr, nullptr, 0);
  std::vector<Half> half(6);
  const Status status = SumAtomically(cuda, 1, 2, 3, half.data(), [](const ChannelSums&) { return Status::Ok(); });
  EXPECT_FALSE(status.ok());
}

const SumsInThreadOrder mark("marked_operator");

TEST(SumsInThreadOrder, MarksOperatorsByName) {
  EXPECT_TRUE(SumsInThreadOrder::Marks("marked_operator"));
  EXPECT_FALSE(SumsInThreadOrder::Marks("marked"));
}

}  // namespace
}  // namespace polyop
