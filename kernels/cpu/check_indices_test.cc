// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/check_indices.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cpu/thread_pool.h"

namespace polyop {
namespace {

template <class I>
class CheckIndices : public ::testing::Test {};

using Integers = ::testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(CheckIndices, Integers);

// Indices next to every bound, alone and among valid ones: the first, one within a vector and the last.
TYPED_TEST(CheckIndices, AgreeWithComparisons) {
  using I = TypeParam;
  constexpr int64_t kMin = std::numeric_limits<I>::min(), kMax = std::numeric_limits<I>::max();
  ThreadPool pool(2);
  const Context context(pool.backend());
  for (int64_t limit : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{1000}, int64_t{1} << 30, (int64_t{1} << 31) - 1,
                        int64_t{1} << 31, (int64_t{1} << 31) + 1, int64_t{1} << 40}) {
    for (int64_t index : {kMin, kMin + 1, -limit - 1, -limit, -limit + 1, int64_t{-1}, int64_t{0}, int64_t{1},
                          limit - 1, limit, limit + 1, kMax - 1, kMax}) {
      if (index < kMin || index > kMax) continue;
      SCOPED_TRACE(::testing::Message() << "index " << index << ", limit " << limit);
      const bool inside = index >= 0 && index < limit, from_both_ends = index >= -limit && index < limit;
      for (int64_t count : {1, 7, 70'000}) {
        if (count > 1 && limit == 0) continue;  // no index is valid
        for (int64_t at : {int64_t{0}, count / 2, count - 1}) {
          std::vector<I> indices(static_cast<size_t>(count), I{0});
          indices[static_cast<size_t>(at)] = static_cast<I>(index);
          EXPECT_EQ(AreInside(context, indices.data(), count, limit), inside);
          const Status status = CheckIndicesFromBothEnds(context, "indices", indices.data(), count, limit);
          EXPECT_EQ(status.ok(), from_both_ends) << status.message();
        }
      }
    }
    EXPECT_TRUE(AreInside<I>(context, nullptr, 0, limit));
    EXPECT_TRUE(CheckIndicesFromBothEnds<I>(context, "indices", nullptr, 0, limit).ok());
  }
}

}  // namespace
}  // namespace polyop
