// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/rotated_feature_align/rotated_feature_align.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor Boxes(DType dtype, const Shape& features, std::mt19937& rng) {
  std::uniform_real_distribution<double> at(-8, 40), size(0, 30), angle(-3, 3);
  HostTensor boxes(dtype, {features[0], features[2], features[3], 5});
  for (int64_t i = 0; i < boxes.size(); ++i) boxes.set(i, i % 5 < 2 ? at(rng) : i % 5 < 4 ? size(rng) : angle(rng));
  return boxes;
}

class RotatedFeatureAlignTest : public ::testing::TestWithParam<DType> {};

TEST_P(RotatedFeatureAlignTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t points : {1, 5}) {
    for (const Shape& shape : {Shape{2, 3, 9, 13}, Shape{1, 17, 11, 7}, Shape{1, 16, 1, 1}, Shape{1, 33, 8, 9},
                               Shape{0, 3, 4, 4}, Shape{1, 0, 4, 4}}) {
      SCOPED_TRACE(ToString(shape) + " points " + std::to_string(points));
      ExpectMatchesReference(RotatedFeatureAlign{.spatial_scale = 0.25f, .points = points},
                             {HostTensor::Uniform(GetParam(), shape, rng), Boxes(GetParam(), shape, rng)},
                             ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RotatedFeatureAlignTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(RotatedFeatureAlign, NanBoxesAddNothing) {
  std::mt19937 rng(2);
  const HostTensor x = HostTensor::Uniform(DType::kF32, {1, 3, 4, 4}, rng);
  HostTensor boxes = Boxes(DType::kF32, {1, 3, 4, 4}, rng);
  for (int64_t i = 0; i < boxes.size(); i += 7) boxes.set(i, i % 2 ? NAN : INFINITY);
  ExpectMatchesReference(RotatedFeatureAlign{.spatial_scale = 0.25f, .points = 5}, {x, boxes});
}

TEST(RotatedFeatureAlign, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectError(RotatedFeatureAlign{}, {f32({1, 3, 4, 4}), f32({1, 4, 5, 5})},
              {"'best_bboxes'", "expected dimension 2 to be W = 4", "got 5"});
  ExpectError(RotatedFeatureAlign{}, {f32({1, 3, 4, 4}), f32({1, 4, 4, 4})},
              {"'best_bboxes'", "expected dimension 3 to be 5, got 4"});
  ExpectAttributeError(*FindOp("rotated_feature_align"), {{"points", AttrValue::Int(3)}},
                       {"'points': expected 1 or 5, got 3"});
  ExpectAttributeError(*FindOp("rotated_feature_align"), {{"spatial_scale", AttrValue::Float(0)}},
                       {"'spatial_scale': expected", "got 0"});
}

}  // namespace
}  // namespace polyop::testing
