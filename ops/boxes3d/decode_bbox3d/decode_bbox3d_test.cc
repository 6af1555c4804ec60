// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/decode_bbox3d/decode_bbox3d.h"

#include <algorithm>
#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor F32(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF32, shape, values);
}

// Returns an operator with `count` distinct anchors.
DecodeBbox3d WithAnchors(int count, float score_thresh) {
  DecodeBbox3d op;
  op.anchors.count = 4 * count;
  op.anchor_bottom_height.count = count / 2;
  for (int a = 0; a < count; ++a) {
    const float step = static_cast<float>(a);
    const float anchor[4] = {4 - step / 8, 1.5f + step / 4, 1.5f + step / 16, a % 2 == 0 ? 0 : 1.57f};
    std::copy_n(anchor, 4, op.anchors.items.begin() + 4 * a);
    op.anchor_bottom_height.items[static_cast<size_t>(a / 2)] = -1.5f - step / 10;
  }
  op.score_thresh = score_thresh;
  return op;
}

std::vector<HostTensor> RandomInputs(DType type, int64_t images, int64_t height, int64_t width, int64_t anchors,
                                     int64_t classes, std::mt19937& rng) {
  HostTensor cls = HostTensor::Uniform(type, {images, height, width, anchors * classes}, rng, -4, 4);
  for (int64_t i = 0; i < cls.size(); ++i) {
    if (rng() % 8 == 0) cls.set(i, rng() % 4 == 0 ? NAN : std::floor(cls.at(i)));  // ties
  }
  return {cls, HostTensor::Uniform(type, {images, height, width, anchors * 7}, rng, -2, 2),
          HostTensor::Uniform(type, {images, height, width, anchors * 2}, rng)};
}

class DecodeBbox3dRandom : public ::testing::TestWithParam<DType> {};

TEST_P(DecodeBbox3dRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(60); ++round) {
    const int anchors = 2 * (1 + static_cast<int>(rng() % 4));
    DecodeBbox3d op = WithAnchors(anchors, std::array{0.1f, 0.503f, 0.0f, 0.97f}[rng() % 4]);
    op.num_dir_bins = 1 + static_cast<int64_t>(rng() % 3);
    op.dir_limit_offset = rng() % 2 ? 0.0f : 0.5f;
    const int64_t images = rng() % 3, height = rng() % 9, width = rng() % 20, classes = rng() % 5;
    SCOPED_TRACE(Concat("round ", round, ": ", images, " x ", height, " x ", width, ", ", anchors, " anchors, ",
                        classes, " classes"));
    ExpectMatchesReference(op, RandomInputs(GetParam(), images, height, width, anchors, classes, rng),
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DecodeBbox3dRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(DecodeBbox3d, ManyBlocksInOrder) {
  std::mt19937 rng(2);
  for (float threshold : {0.0f, 0.9f, 0.975f}) {
    ExpectMatchesReference(WithAnchors(6, threshold), RandomInputs(DType::kF32, 2, 60, 70, 6, 3, rng));
  }
}

std::vector<HostTensor> Decoded(const DecodeBbox3d& op, const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(op, inputs, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

TEST(DecodeBbox3d, KnownBox) {
  DecodeBbox3d op = WithAnchors(2, 0.5f);
  op.point_cloud_range = {-10, -20, 0, 10, 20, 0};
  const float anchors[8] = {3, 4, 2, 0, 3, 4, 2, 1.5f};
  std::copy_n(anchors, 8, op.anchors.items.begin());
  op.anchor_bottom_height.items[0] = -1;
  op.dir_offset = 0.5f;
  op.num_dir_bins = 2;
  // 2 x 3 cells; only the second anchor of row 1, column 2 reaches the threshold, with class 1 of 2.
  HostTensor cls = HostTensor::Full(DType::kF32, {1, 2, 3, 4}, -1),
             box = HostTensor::Full(DType::kF32, {1, 2, 3, 14}, 0);
  HostTensor dir = HostTensor::Full(DType::kF32, {1, 2, 3, 4}, 0);
  cls.set(23, 0);
  const double offsets[7] = {0.1, -0.2, 0.5, std::log(2), 0, std::log(3), -2};
  for (int i = 0; i < 7; ++i) box.set(77 + i, offsets[i]);
  const auto out = Decoded(op, {cls, box, dir});
  EXPECT_EQ(out[1].ToDoubles(), std::vector<double>{1});
  // rotation = -2 + 1.5 - 0.5 = -1: one period of pi is added, then the offset, and another period for direction 1.
  const double expected[9] = {10 + 0.1 * 5, 20 - 0.2 * 5, 0 + 0.5 * 2, 6, 4, 6, -0.5 + 2 * std::acos(-1.0), 1, 0.5};
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(out[0].at(i), expected[i], 1e-5) << i;
  for (int64_t i = 9; i < out[0].size(); ++i) ASSERT_EQ(out[0].at(i), 0) << i;  // uninitialised in the plugin
  dir.set(22, 1);
  EXPECT_NEAR(Decoded(op, {cls, box, dir})[0].at(6), -0.5 + std::acos(-1.0), 1e-5);
}

TEST(DecodeBbox3d, SingleCellIsAtTheMinimum) {
  DecodeBbox3d op = WithAnchors(2, 0.0f);
  op.point_cloud_range = {-10, -20, 0, 10, 20, 0};
  const auto zeros = [](int64_t last) { return HostTensor::Full(DType::kF32, {1, 1, 1, last}, 0); };
  const auto out = Decoded(op, {zeros(2), zeros(14), zeros(4)});
  EXPECT_EQ(out[1].at(0), 2);
  EXPECT_EQ(out[0].at(0), -10);  // NaN in the plugin
  EXPECT_EQ(out[0].at(1), -20);
}

TEST(DecodeBbox3d, ChoosesTheFirstOfEqualLogits) {
  const auto zeros = [](int64_t last) { return HostTensor::Full(DType::kF32, {1, 1, 1, last}, 0); };
  const auto out =
      Decoded(WithAnchors(2, 0.1f), {F32({1, 1, 1, 8}, {NAN, 1, 40, 40, NAN, NAN, NAN, NAN}), zeros(14), zeros(4)});
  EXPECT_EQ(out[1].at(0), 1);
  EXPECT_EQ(out[0].at(7), 2);
  EXPECT_EQ(out[0].at(8), 1);
}

TEST(DecodeBbox3d, ThresholdIsComparedAsLogit) {
  const std::vector<HostTensor> inputs = {F32({1, 1, 1, 2}, {0, -INFINITY}),
                                          HostTensor::Full(DType::kF32, {1, 1, 1, 14}, 0),
                                          HostTensor::Full(DType::kF32, {1, 1, 1, 4}, 0)};
  EXPECT_EQ(Decoded(WithAnchors(2, 0.5f), inputs)[1].at(0), 1);
  EXPECT_EQ(Decoded(WithAnchors(2, 0.500001f), inputs)[1].at(0), 0);
  EXPECT_EQ(Decoded(WithAnchors(2, 0.0f), inputs)[1].at(0), 2);
  EXPECT_EQ(Decoded(WithAnchors(2, 1.5f), inputs)[1].at(0), 0);
}

TEST(DecodeBbox3d, RejectsInvalidInputs) {
  const auto f32 = [](int64_t last) { return HostTensor::Full(DType::kF32, {1, 2, 2, last}, 1); };
  ExpectError(DecodeBbox3d{}, {f32(6), f32(28), f32(8)},
              {"'dir': expected 4 in dimension 3, two for each of the 2 'anchors', got 8 (shape [1, 2, 2, 8])"});
  ExpectError(DecodeBbox3d{}, {f32(5), f32(14), f32(4)},
              {"'cls': expected a multiple of the 2 'anchors' in dimension 3, got 5 (shape [1, 2, 2, 5])"});
  ExpectError(DecodeBbox3d{}, {f32(6), f32(7), f32(4)},
              {"'box'", "to be 7 * D / 2 = 14, got", "(shape [1, 2, 2, 7] for"});
  const Op& op = *FindOp("decode_bbox3d");
  const auto with = [&](const std::vector<double>& anchors, const std::vector<double>& heights,
                        const std::vector<std::string>& parts) {
    ExpectAttributeError(op,
                         {{"point_cloud_range", AttrValue::Floats({0, 0, 0, 1, 1, 1})},
                          {"anchors", AttrValue::Floats(anchors)},
                          {"anchor_bottom_height", AttrValue::Floats(heights)},
                          {"dir_offset", AttrValue::Float(0)},
                          {"dir_limit_offset", AttrValue::Float(0)},
                          {"num_dir_bins", AttrValue::Int(2)},
                          {"score_thresh", AttrValue::Float(0.1)}},
                         parts);
  };
  with({1, 2, 3, 0}, {1}, {"'anchors': expected", "an even number of anchors, got 4 values"});
  with({1, 2, 3, 0, 1, 2, 3, 0}, {1, 2},
       {"'anchor_bottom_height': expected one value for every two of the 2 'anchors', got 2 values"});
  ExpectAttributeError(op, {}, {"'point_cloud_range'"});
}

}  // namespace
}  // namespace polyop::testing
