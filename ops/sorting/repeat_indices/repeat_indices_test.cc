// SPDX-License-Identifier: Apache-2.0
#include "ops/sorting/repeat_indices/repeat_indices.h"

#include <numeric>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(DType dtype, const std::vector<double>& repeats, double total) {
  return {HostTensor::Of(dtype, {static_cast<int64_t>(repeats.size())}, repeats),
          HostTensor::Of(DType::kI64, {}, {total})};
}

class RepeatIndicesTest : public ::testing::TestWithParam<DType> {};

TEST_P(RepeatIndicesTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const int64_t count : {0, 1, 2, 3, 17, 1000, 50'000}) {
    for (const unsigned limit : {1u, 2u, 5u, 40u}) {  // 1: all are 0
      std::vector<double> repeats(static_cast<size_t>(count));
      for (double& times : repeats) times = rng() % limit;
      if (count > 0 && limit == 5) repeats[rng() % repeats.size()] = 3000;
      const double total = std::accumulate(repeats.begin(), repeats.end(), 0.0);
      SCOPED_TRACE(Concat(count, " repeats, total ", total));
      ExpectMatchesReference(RepeatIndices{}, Inputs(GetParam(), repeats, total));
    }
  }
}

TEST_P(RepeatIndicesTest, Repeats) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(RepeatIndices{}, Inputs(GetParam(), {0, 2, 0, 1, 5, 0}, 8), &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{1, 1, 3, 4, 4, 4, 4, 4}));
}

TEST_P(RepeatIndicesTest, RejectsInvalidInputs) {
  ExpectError(RepeatIndices{}, Inputs(GetParam(), {1, -1, 2}, 2), {"'repeats' at flat index 1", "got -1"});
  ExpectError(RepeatIndices{}, Inputs(GetParam(), {1, 9}, 4), {"'repeats' at flat index 1", "got 9"});
  ExpectError(RepeatIndices{}, Inputs(GetParam(), {1, 2}, 4), {"'total': expected the sum of 'repeats', 3, got 4"});
  ExpectError(RepeatIndices{}, Inputs(GetParam(), {1, 2}, 2), {"'total': expected the sum of 'repeats', got 2"});
  ExpectError(RepeatIndices{}, Inputs(GetParam(), {}, 2), {"'total': expected the sum of 'repeats', 0, got 2"});
  ExpectError(RepeatIndices{}, Inputs(GetParam(), {1, 2}, -1), {"-1"});
}

INSTANTIATE_TEST_SUITE_P(Types, RepeatIndicesTest, ::testing::Values(DType::kI32, DType::kI64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

}  // namespace
}  // namespace polyop::testing
