// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/prroi_pool/prroi_pool.h"

#include <cmath>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class PrRoiPoolTest : public ::testing::TestWithParam<DType> {};

TEST_P(PrRoiPoolTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const PrRoiPool& op : {PrRoiPool{1, 1, 1}, PrRoiPool{3, 2, 0.75f}, PrRoiPool{7, 7, 0.25f}, PrRoiPool{2, 5, 3}}) {
    for (const Shape& shape : {Shape{2, 3, 9, 13}, Shape{1, 49, 11, 7}, Shape{3, 16, 1, 1}}) {
      ExpectMatchesReference(op,
                             {HostTensor::Uniform(GetParam(), shape, rng), RandomRois(GetParam(), 24, shape[0], rng)},
                             ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PrRoiPoolTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(PrRoiPool, KnownIntegrals) {
  const HostTensor input = HostTensor::Of(DType::kF32, {1, 1, 1, 2}, {1, 3});
  const auto pooled = [&](double x1, double x2) {
    std::vector<HostTensor> out;
    const HostTensor roi = HostTensor::Of(DType::kF32, {1, 5}, {0, x1, 0, x2, 1e-3});  // along the row
    EXPECT_TRUE(testing::Run(PrRoiPool{}, {input, roi}, &out).ok());
    return out[0].at(0);
  };
  const double height = 1 - 0.5e-3;  // average of the row over the height of a bin this thin
  EXPECT_NEAR(pooled(0, 1), 2 * height, 1e-6);
  EXPECT_NEAR(pooled(0.25, 0.75), 2 * height, 1e-6);
  EXPECT_NEAR(pooled(-1, 0), 0.5 * height, 1e-6);                   // from the zeros around the image
  EXPECT_NEAR(pooled(1, 4), 1.5 / 3 * height, 1e-6);                // up to the zeros after the image
  EXPECT_NEAR(pooled(-2, 4), (0.5 + 2 + 1.5) / 6 * height, 1e-6);   // the entire surface
  EXPECT_NEAR(pooled(0.5, 0.5 + 1e-5), (2 + 1e-5) * height, 1e-5);  // almost a point
  EXPECT_EQ(pooled(1, 1), 0);
  EXPECT_EQ(pooled(1, 0), 0);
}

TEST(PrRoiPool, NanInfiniteAndHugeBoxes) {
  std::mt19937 rng(3);
  const HostTensor input = HostTensor::Uniform(DType::kF32, {1, 3, 8, 8}, rng);
  const HostTensor rois = HostTensor::Of(
      DType::kF32, {5, 5},
      {0, NAN, 0, 4, 4, 0, 0, 0, INFINITY, 4, 0, 0, -INFINITY, 4, 4, 0, -1e6, -1e6, 1e6, 1e6, 0, -3e38, 0, 3e38, 4});
  ExpectMatchesReference(PrRoiPool{2, 3, 1}, {input, rois});
}

TEST(PrRoiPool, EmptyInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(PrRoiPool{}, {f32({1, 3, 4, 4}), f32({0, 5})});
  ExpectMatchesReference(PrRoiPool{}, {f32({1, 0, 4, 4}), f32({2, 5})});
  ExpectMatchesReference(PrRoiPool{}, {f32({1, 3, 0, 4}), f32({2, 5})});
}

TEST(PrRoiPool, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 2); };
  ExpectError(PrRoiPool{}, {f32({2, 3, 4, 4}), f32({1, 5})}, {"'rois'[0, 0]: expected a batch index in [0, 2), got 2"});
  ExpectError(PrRoiPool{}, {f32({2, 3, 4, 4}), f32({1, 4})}, {"'rois'", "expected dimension 1 to be 5, got 4"});
  ExpectAttributeError(*FindOp("prroi_pool"), {{"spatial_scale", AttrValue::Float(0)}},
                       {"'spatial_scale': expected", "got 0"});
}

}  // namespace
}  // namespace polyop::testing
