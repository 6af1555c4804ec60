// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/radix_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/order_keys.h"
#include "kernels/cpu/thread_pool.h"

namespace polyop {
namespace {

TEST(RadixSort, SortsAnyKeysStably) {
  std::mt19937_64 rng(1);
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    const Context context(pool.backend());
    for (int64_t count : {0, 1, 2, 100, 5000, 100000}) {
      for (uint64_t mask : {~uint64_t{0}, uint64_t{0}, uint64_t{0x3FF}, uint64_t{0x8000000000000001}}) {
        std::vector<std::pair<uint64_t, int32_t>> expected;
        RadixSort sort(context, count);
        ASSERT_TRUE(sort);
        for (int64_t i = 0; i < count; ++i) {
          expected.emplace_back(rng() & mask, static_cast<int32_t>(i));
          sort.keys()[i] = expected.back().first;
          sort.values()[i] = expected.back().second;
        }
        std::sort(expected.begin(), expected.end());
        ASSERT_TRUE(sort.Sort(count).ok());
        for (int64_t i = 0; i < count; ++i) {
          ASSERT_EQ(sort.keys()[i], expected[static_cast<size_t>(i)].first) << count << " keys of " << mask;
          ASSERT_EQ(sort.values()[i], expected[static_cast<size_t>(i)].second) << count << " keys of " << mask;
        }
      }
    }
  }
}

TEST(RadixSort, OrderKeysHaveTheOrderOfIntegers) {
  const int64_t rising[] = {INT64_MIN, -5, -1, 0, 1, 7, INT64_MAX};
  for (size_t i = 0; i < std::size(rising); ++i) {
    EXPECT_EQ(IntegerOfKey(OrderKeyOf(rising[i])), rising[i]);
    if (i > 0) {
      EXPECT_LT(OrderKeyOf(rising[i - 1]), OrderKeyOf(rising[i]));
    }
  }
}

}  // namespace
}  // namespace polyop
