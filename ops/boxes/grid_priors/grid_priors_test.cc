// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/grid_priors/grid_priors.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor Length(int64_t n, DType dtype = DType::kI64) { return HostTensor::Full(dtype, {n}, 0); }

TEST(GridPriors, RowsFirstThenColumnsThenAnchors) {
  std::vector<HostTensor> out;
  const HostTensor base = HostTensor::Of(DType::kF32, {2, 4}, {-1, -2, 1, 2, -4, -4, 4, 4});
  ASSERT_TRUE(
      polyop::testing::Run(GridPriors{.stride_h = 10, .stride_w = 100}, {base, Length(2), Length(2)}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[8, 4]");
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{-1, -2, 1, 2,  -4, -4, 4, 4,  99, -2, 101, 2,  96, -4, 104, 4,
                                                     -1, 8,  1, 12, -4, 6,  4, 14, 99, 8,  101, 12, 96, 6,  104, 14}));
}

class GridPriorsTypes : public ::testing::TestWithParam<DType> {};

TEST_P(GridPriorsTypes, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(100); ++round) {
    const int64_t anchors = static_cast<int64_t>(rng() % 10), height = static_cast<int64_t>(rng() % 40);
    const int64_t width = static_cast<int64_t>(rng() % 40);
    const GridPriors op{.stride_h = 1 + static_cast<int64_t>(rng() % 64),
                        .stride_w = 1 + static_cast<int64_t>(rng() % 64)};
    SCOPED_TRACE(Concat(anchors, " anchors, ", height, " x ", width));
    ExpectMatchesReference(op,
                           {HostTensor::Uniform(GetParam(), {anchors, 4}, rng, -50, 50),
                            Length(height, static_cast<DType>(rng() % kNumDTypes)), Length(width)},
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GridPriorsTypes, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(GridPriors, PropagatesNanAndAllowsLargeStrides) {
  const HostTensor base = HostTensor::Of(DType::kF32, {1, 4}, {NAN, -INFINITY, 0, 1});
  ExpectMatchesReference(GridPriors{}, {base, Length(3), Length(3)});
  std::vector<HostTensor> out;
  const GridPriors wide{.stride_h = 1, .stride_w = int64_t{1} << 62};
  ASSERT_TRUE(polyop::testing::Run(wide, {base, Length(1), Length(9)}, &out).ok());
  EXPECT_EQ(out[0].at(8 * 4 + 2), 8 * 0x1p62);
}

TEST(GridPriors, RejectsInvalidInputs) {
  const HostTensor base = HostTensor::Full(DType::kF32, {3, 4}, 1);
  ExpectError(GridPriors{}, {HostTensor::Full(DType::kF32, {3, 5}, 1), Length(2), Length(2)},
              {"'base'", "(shape [3, 5] for"});
  ExpectError(GridPriors{}, {base, HostTensor::Full(DType::kF32, {2, 2}, 0), Length(2)},
              {"'height': expected rank 1, got 2"});
  ExpectError(GridPriors{}, {base, Length(2)}, {"inputs, got 2"});
  ExpectError(GridPriors{}, {HostTensor::Full(DType::kI32, {3, 4}, 1), Length(2), Length(2)},
              {"no kernel takes inputs"});
  const Op& op = *FindOp("grid_priors");
  ExpectAttributeError(op, {{"stride_h", AttrValue::Int(0)}}, {"stride_h", "0"});
  ExpectAttributeError(op, {{"stride_w", AttrValue::Int(-8)}}, {"stride_w", "-8"});
}

}  // namespace
}  // namespace polyop::testing
