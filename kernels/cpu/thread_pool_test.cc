// SPDX-License-Identifier: Apache-2.0
#include "core/context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cpu/thread_pool.h"

namespace polyop {
namespace {

TEST(ParallelFor, CoversEveryItemOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    const Context context(pool.backend());
    for (int64_t total : {0, 1, 2, 63, 64, 65, 1000}) {
      for (int64_t grain : {1, 7, 2000}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(total));
        context.ParallelFor(total, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        for (const auto& count : visits) ASSERT_EQ(count.load(), 1) << total << " by " << grain;
      }
    }
  }
}

TEST(ParallelFor, RunsManySmallLoops) {
  ThreadPool pool(4);
  const Context context(pool.backend());
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 2000; ++round) {
    context.ParallelFor(8, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  }
  EXPECT_EQ(sum.load(), 16000);
}

TEST(Scratch, IsAlignedAndRejectsInvalidSizes) {
  ThreadPool pool(1);
  const Context context(pool.backend());
  const Scratch<float> a = context.Allocate<float>(3);
  ASSERT_TRUE(a);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
  EXPECT_FALSE(context.Allocate<double>(std::numeric_limits<int64_t>::max()));
  EXPECT_FALSE(context.Allocate<double>(-1));
}

}  // namespace
}  // namespace polyop
