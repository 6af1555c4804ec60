// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/roi_pool/roi_pool.h"

#include <cmath>

#include "testing/random_rois.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class RoiPoolTest : public ::testing::TestWithParam<DType> {};

TEST_P(RoiPoolTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const RoiPool& op : {RoiPool{1, 1, 1}, RoiPool{3, 2, 0.75f}, RoiPool{7, 7, 0.25f}, RoiPool{2, 5, 3}}) {
    for (const Shape& shape : {Shape{2, 3, 9, 13}, Shape{1, 49, 11, 7}, Shape{3, 16, 1, 1}}) {
      for (bool rounded : {true, false}) {
        RoiPool mode = op;
        mode.rounded = rounded;
        HostTensor input = HostTensor::Uniform(GetParam(), shape, rng);
        for (int64_t i = 0; i < input.size(); ++i) input.set(i, std::round(input.at(i) * 4));  // ties
        ExpectMatchesReference(mode, {input, RandomRois(GetParam(), 24, shape[0], rng)}, ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoiPoolTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(RoiPool, KnownBins) {
  const HostTensor input = HostTensor::Of(DType::kF32, {1, 1, 2, 4}, {1, 5, 2, 8, 3, 4, 7, 6});
  const auto pooled = [&](bool rounded, const std::vector<double>& corners) {
    std::vector<HostTensor> out;
    const HostTensor roi = HostTensor::Of(DType::kF32, {1, 5}, {0, corners[0], corners[1], corners[2], corners[3]});
    EXPECT_TRUE(testing::Run(RoiPool{1, 2, 1, rounded}, {input, roi}, &out).ok());
    return std::vector<double>{out[0].at(0), out[0].at(1), out[1].at(0), out[1].at(1)};
  };
  using Row = std::vector<double>;
  for (bool rounded : {true, false}) {
    EXPECT_EQ(pooled(rounded, {0, 0, 3, 1}), (Row{5, 8, 1, 3}));
    EXPECT_EQ(pooled(rounded, {0, 0, 2, 0}), (Row{5, 5, 1, 1}));        // the middle pixel is in both bins
    EXPECT_EQ(pooled(rounded, {-9, -9, -7, -7}), (Row{0, 0, -1, -1}));  // outside
    EXPECT_EQ(pooled(rounded, {2, 0, 9, 9}), (Row{8, 0, 3, -1}));       // the second bin is outside
  }
  EXPECT_EQ(pooled(true, {0.5, 0, 2.5, 0}), (Row{5, 8, 1, 3}));   // 0.5 is 1, 2.5 is 3
  EXPECT_EQ(pooled(false, {0.5, 0, 2.5, 0}), (Row{5, 8, 1, 3}));  // 0.5 to 3.5
  EXPECT_EQ(pooled(true, {3, 1, 0, 0}), (Row{6, 6, 7, 7}));       // reversed: one pixel
  EXPECT_EQ(pooled(false, {3, 1, 0, 0}), (Row{0, 0, -1, -1}));
}

TEST(RoiPool, NanAndInfinity) {
  std::mt19937 rng(3);
  HostTensor input = HostTensor::Uniform(DType::kF32, {1, 17, 8, 8}, rng);
  for (int64_t i = 0; i < input.size(); i += 3) input.set(i, i % 2 ? NAN : -INFINITY);
  for (int64_t i = 0; i < 64; ++i) input.set(i, i % 2 ? NAN : -INFINITY);  // a plane that contains nothing else
  const HostTensor rois =
      HostTensor::Of(DType::kF32, {7, 5},
                     {0,   NAN, 0, 4,     4, 0,    0, 0, INFINITY, 4, 0, 0, -INFINITY, 4, 4, 0,         -1e6, -1e6,
                      1e6, 1e6, 0, -3e38, 0, 3e38, 4, 0, 0,        0, 7, 7, 0,         4, 0, -INFINITY, 1});
  for (bool rounded : {true, false}) ExpectMatchesReference(RoiPool{2, 3, 1, rounded}, {input, rois});
}

TEST(RoiPool, EmptyInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(RoiPool{}, {f32({1, 3, 4, 4}), f32({0, 5})});
  ExpectMatchesReference(RoiPool{}, {f32({1, 0, 4, 4}), f32({2, 5})});
  ExpectMatchesReference(RoiPool{}, {f32({1, 3, 0, 4}), f32({2, 5})});
  // A box over billions of rows of width 0.
  const HostTensor tall = HostTensor::Of(DType::kF32, {1, 5}, {0, 0, 0, 4, 1e12});
  ExpectMatchesReference(RoiPool{}, {f32({1, 1, int64_t{1} << 40, 0}), tall});
}

TEST(RoiPool, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 2); };
  ExpectError(RoiPool{}, {f32({2, 3, 4, 4}), f32({1, 5})}, {"'rois'[0, 0]: expected a batch index in [0, 2), got 2"});
  ExpectError(RoiPool{}, {f32({2, 3, 4, 4}), f32({1, 4})}, {"'rois'", "expected dimension 1 to be 5, got 4"});
  ExpectError(RoiPool{}, {f32({1, 0, 65536, 65536}), f32({1, 5})}, {"'input': expected at most 2147483647 pixels"});
  ExpectAttributeError(*FindOp("roi_pool"), {{"spatial_scale", AttrValue::Float(0)}},
                       {"'spatial_scale': expected", "got 0"});
}

}  // namespace
}  // namespace polyop::testing
