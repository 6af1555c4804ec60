// SPDX-License-Identifier: Apache-2.0
#include "ops/sorting/custom_unique/custom_unique.h"

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class CustomUniqueRandom : public ::testing::TestWithParam<DType> {};

TEST_P(CustomUniqueRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t count : {0, 1, 2, 17, 300, 9000, 40000}) {
    for (double limit : {0.0, 3.0, 1e4, GetParam() == DType::kI64 ? 9e18 : 2e9}) {
      SCOPED_TRACE(Concat(count, " integers up to ", limit));
      ExpectMatchesReference(CustomUnique{}, {HostTensor::Uniform(GetParam(), {count}, rng, -limit, limit)});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CustomUniqueRandom, ::testing::Values(DType::kI32, DType::kI64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(CustomUnique, OutputsAreConsistent) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(CustomUnique{}, {HostTensor::Of(DType::kI64, {6}, {5, -1, 5, 7, -1, 5})}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{-1, 5, 7}));
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{1, 0, 1, 2, 0, 1}));
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{2, 3, 1}));
  EXPECT_EQ(out[3].ToDoubles(), (std::vector<double>{3}));
  EXPECT_EQ(out[3].shape().rank(), 0);
}

TEST(CustomUnique, EmptyInput) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(CustomUnique{}, {HostTensor::Full(DType::kI32, {0}, 0)}, &out).ok());
  EXPECT_EQ(out[0].size(), 0);
  EXPECT_EQ(out[3].ToDoubles(), (std::vector<double>{0}));
}

TEST(CustomUnique, SameAtAnyAlignment) {
  std::mt19937 rng(2);
  ExpectSameAtAnyAlignment(CustomUnique{}, {HostTensor::Uniform(DType::kI64, {20000}, rng, -100, 100)});
}

TEST(CustomUnique, RejectsInvalidInputs) {
  ExpectError(CustomUnique{}, {HostTensor::Full(DType::kI64, {2, 2}, 0)}, {"'x': expected rank 1, got 2"});
  ExpectError(CustomUnique{}, {HostTensor::Full(DType::kF32, {2}, 0)}, {"no kernel takes inputs"});
}

}  // namespace
}  // namespace polyop::testing
