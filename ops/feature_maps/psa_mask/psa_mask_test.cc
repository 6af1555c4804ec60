// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/psa_mask/psa_mask.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class PsaMaskTest : public ::testing::TestWithParam<DType> {};

TEST_P(PsaMaskTest, MatchesReference) {
  std::mt19937 rng(1);
  for (auto type : {PsaMask::Type::kCollect, PsaMask::Type::kDistribute}) {
    for (const auto& size : {std::array<int64_t, 2>{1, 1}, {3, 5}, {9, 13}, {7, 1}, {15, 31}}) {
      for (const Shape& shape : {Shape{2, 0, 5, 7}, Shape{1, 0, 1, 9}, Shape{1, 0, 8, 3}, Shape{0, 0, 4, 4}}) {
        const Shape input = {shape[0], size[0] * size[1], shape[2], shape[3]};
        ExpectMatchesReference(PsaMask{type, size}, {HostTensor::Uniform(GetParam(), input, rng)}, {0, 0});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PsaMaskTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Two pixels side by side, each with a mask of three columns.
TEST(PsaMask, CollectsAndDistributes) {
  const HostTensor input = HostTensor::Of(DType::kF32, {1, 3, 1, 2}, {1, 2, 3, 4, NAN, 6});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(PsaMask{PsaMask::Type::kCollect, {1, 3}}, {input}, &out).ok());
  const double collected[4] = {3, 2, NAN, 4}, distributed[4] = {3, NAN, 2, 4};
  for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(out[0].at(i) == collected[i] || std::isnan(collected[i])) << i;
  EXPECT_TRUE(std::isnan(out[0].at(2)));
  ASSERT_TRUE(testing::Run(PsaMask{PsaMask::Type::kDistribute, {1, 3}}, {input}, &out).ok());
  for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(out[0].at(i) == distributed[i] || std::isnan(distributed[i])) << i;
  EXPECT_TRUE(std::isnan(out[0].at(1)));
}

TEST(PsaMask, RejectsInvalidInputs) {
  const HostTensor input = HostTensor::Full(DType::kF32, {1, 4, 3, 3}, 0);
  ExpectError(PsaMask{PsaMask::Type::kCollect, {1, 3}}, {input}, {"'input'", "expected dimension 1", "got 4", "= 3"});
  const Op& op = *FindOp("psa_mask");
  ExpectAttributeError(op, {{"mask_size", AttrValue::Ints({2, 3})}}, {"'mask_size': expected odd numbers, got [2, 3]"});
  ExpectAttributeError(op, {{"mask_size", AttrValue::Int(3)}, {"psa_type", AttrValue::Int(2)}}, {"'psa_type'"});
  ExpectAttributeError(op, {}, {"'mask_size'"});
}

}  // namespace
}  // namespace polyop::testing
