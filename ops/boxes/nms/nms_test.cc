// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/nms/nms.h"

#include <array>
#include <cmath>

#include "core/call.h"
#include "core/cuda_context.h"
#include "testing/many_boxes.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Boxes with integer corners: some IoUs are exactly equal to a threshold. `extent` sets how much they overlap.
std::vector<HostTensor> RandomBoxes(int64_t count, int extent, std::mt19937& rng, bool tied_scores) {
  std::uniform_int_distribution<int> corner(0, extent), size(1, 12), score(0, 9);
  HostTensor boxes(DType::kF32, {count, 4}), scores = HostTensor::Uniform(DType::kF32, {count}, rng, 0, 1);
  for (int64_t i = 0; i < count; ++i) {
    const int x = corner(rng), y = corner(rng);
    const double values[4] = {1.0 * x, 1.0 * y, 1.0 * x + size(rng), 1.0 * y + size(rng)};
    for (int k = 0; k < 4; ++k) boxes.set(4 * i + k, values[k]);
    if (tied_scores) scores.set(i, score(rng));
  }
  return {boxes, scores};
}

TEST(Nms, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t count : {0, 1, 2, 15, 16, 17, 63, 100, 300, 700}) {
    for (int extent : {5, 40, 400}) {
      for (float threshold : {0.0f, 0.3f, 0.5f, 0.7f, 1.0f}) {
        for (int64_t offset : {0, 1}) {
          SCOPED_TRACE(std::to_string(count) + " boxes, extent " + std::to_string(extent));
          ExpectMatchesReference(Nms{threshold, offset}, RandomBoxes(count, extent, rng, count % 2 == 0));
        }
      }
    }
  }
}

// More boxes than the GPU keeps masks for at a time, in clusters, so that few are kept.
TEST(Nms, ManyBoxes) {
  std::mt19937 rng(5);
  constexpr int64_t kCount = 9000;
  HostTensor boxes = HostTensor::Uniform(DType::kF32, {kCount, 4}, rng, 0, 3);
  for (int64_t i = 0; i < kCount; ++i) {
    const double x = static_cast<double>(rng() % 10) * 100, y = static_cast<double>(rng() % 10) * 100;
    boxes.set(4 * i, boxes.at(4 * i) + x);
    boxes.set(4 * i + 1, boxes.at(4 * i + 1) + y);
    boxes.set(4 * i + 2, boxes.at(4 * i + 2) + x + 40);
    boxes.set(4 * i + 3, boxes.at(4 * i + 3) + y + 40);
  }
  ExpectMatchesReference(Nms{}, {boxes, HostTensor::Uniform(DType::kF32, {kCount}, rng, 0, 1)});
}

// Enough boxes for the grid of cells to be used.
TEST(Nms, EverySpreadOfManyBoxesMatchesReference) {
  std::mt19937 rng(6);
  for (Spread spread : kSpreads) {
    const float threshold = spread == Spread::kEqual ? 1.0f : std::array{0.0f, 0.3f, 0.7f}[rng() % 3];
    const auto offset = static_cast<int64_t>(rng() % 2);
    SCOPED_TRACE(Concat(NameOf(spread), ", threshold ", threshold, ", offset ", offset));
    const Nms op{.iou_threshold = threshold, .offset = offset, .center_point_box = rng() % 4 == 0};
    ExpectMatchesReference(op, {ManyBoxes(spread, 2600, rng), ManyScores({2600}, rng)});
  }
}

TEST(Nms, ClassesOfManyBoxesMatchReference) {
  std::mt19937 rng(7);
  const HostTensor boxes = ManyBoxes(Spread::kUniform, 2600, rng);
  HostTensor batched(DType::kF32, {1, 2600, 4});
  for (int64_t i = 0; i < boxes.size(); ++i) batched.set(i, boxes.at(i));
  ExpectMatchesReference(Nms{.max_output_boxes_per_class = 1500}, {batched, ManyScores({1, 2, 2600}, rng)});
}

// TensorRT reserves the scratch memory that the largest shapes need.
TEST(Nms, ScratchOnTheDeviceNeverShrinks) {
  size_t before = 0;
  for (int64_t count = 0; count < 300000; count += 1 + count / 7) {
    const std::vector<AnyTensor> inputs = {{nullptr, DType::kF32, true, {count, 4}},
                                           {nullptr, DType::kF32, true, {count}}};
    const Nms op;
    const AnyTensor keep{nullptr, DType::kI64, true, {count}};
    PreparedCall call;
    ASSERT_TRUE(PrepareWithShapes(*FindOp("nms"), GpuDevice(), &op, inputs, {&keep, 1}, &call).ok());
    size_t bytes = 0;
    ASSERT_TRUE(MeasureScratch(call, inputs, &bytes).ok());
    EXPECT_GE(bytes, before) << count << " boxes";
    before = bytes;
  }
}

TEST(Nms, TiedScoresKeepTheLowerIndex) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Nms{0.5f, 0},
                           {HostTensor::Of(DType::kF32, {3, 4}, {0, 0, 9, 9, 0, 0, 9, 9, 20, 20, 30, 30}),
                            HostTensor::Full(DType::kF32, {3}, 0.5)},
                           &out)
                  .ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 2}));
}

TEST(Nms, AnIouEqualToTheThresholdDoesNotSuppress) {
  // Intersection 5, union 10.
  const std::vector<HostTensor> inputs = {HostTensor::Of(DType::kF32, {2, 4}, {0, 0, 1, 10, 0, 0, 1, 5}),
                                          HostTensor::Of(DType::kF32, {2}, {1, 0.5})};
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Nms{0.5f, 0}, inputs, &out).ok());
  EXPECT_EQ(out[0].size(), 2);
  ASSERT_TRUE(testing::Run(Nms{0.49f, 0}, inputs, &out).ok());
  EXPECT_EQ(out[0].size(), 1);
}

TEST(Nms, NanInfinityAndReversedBoxes) {
  const HostTensor boxes = HostTensor::Of(
      DType::kF32, {7, 4}, {0, 0, 9,         9,         NAN,      0,        9,    9,    0,    0,    9, NAN, 9, 9,
                            0, 0, -INFINITY, -INFINITY, INFINITY, INFINITY, 1e30, 1e30, 3e38, 3e38, 0, 0,   9, 9});
  const HostTensor scores = HostTensor::Of(DType::kF32, {7}, {0.9, 0.8, NAN, 0.7, INFINITY, -INFINITY, 0.1});
  for (float threshold : {0.0f, 0.5f}) ExpectMatchesReference(Nms{threshold, 0}, {boxes, scores});
}

// A box suppresses its copy whatever its area rounds to in float, and two boxes are compared by the same rule whether
// areas, their sum or the intersection overflow or underflow.
TEST(Nms, AreasOfEveryMagnitudeMatchTheReference) {
  std::mt19937 rng(8);
  std::vector<double> sides = {0, 1e-45, 1e-20, 1e-15, 1e-6, 0.5, 1, 1e10, 1e18, 1.3e19, 1.5e19, 1.8e19, 2e19, 1e30};
  constexpr int64_t kPairs = 500;
  HostTensor boxes(DType::kF32, {kPairs, 2, 4}), scores = HostTensor::Uniform(DType::kF32, {kPairs, 1, 2}, rng, 0, 1);
  for (float threshold : {0.0f, 5e-7f, 1e-6f, 2e-6f, 1e-5f, 1e-3f, 0.5f, 0.9f, 1.0f}) {
    for (int64_t offset : {0, 1}) {
      for (int64_t i = 0; i < kPairs; ++i) {
        const double width = sides[rng() % sides.size()], height = sides[rng() % sides.size()];
        // The second box is a copy, or it overlaps a part of the first one, down to about the threshold.
        const double kept = rng() % 3 == 0 ? 1 : threshold * (0.99 + static_cast<double>(rng() % 100) / 5000);
        const double first[4] = {0, 0, width, height};
        const double second[4] = {rng() % 2 == 0 ? 0 : width * (1 - kept) + static_cast<double>(offset) * (1 - kept), 0,
                                  width, rng() % 4 == 0 ? height * kept : height};
        for (int k = 0; k < 4; ++k) {
          boxes.set(8 * i + k, first[k]);
          boxes.set(8 * i + 4 + k, second[k] + (k % 2 == 0 && rng() % 8 == 0 ? width / 2 : 0));
        }
      }
      SCOPED_TRACE(Concat("threshold ", threshold, ", offset ", offset));
      Nms op{.iou_threshold = threshold, .offset = offset};
      op.max_output_boxes_per_class = 2;
      ExpectMatchesReference(op, {boxes, scores});
    }
  }
}

TEST(Nms, BatchedFormMatchesReference) {
  std::mt19937 rng(2);
  for (int round = 0; round < Rounds(100); ++round) {
    const int64_t images = rng() % 3, classes = rng() % 4, count = rng() % 70;
    HostTensor boxes = RandomBoxes(images * count, 30, rng, false)[0];
    HostTensor batched(DType::kF32, {images, count, 4});
    for (int64_t i = 0; i < boxes.size(); ++i) batched.set(i, boxes.at(i));
    HostTensor scores = HostTensor::Uniform(DType::kF32, {images, classes, count}, rng, 0, 1);
    for (int64_t i = 0; i < scores.size() && round % 2; ++i) scores.set(i, rng() % 7 == 0 ? NAN : rng() % 9 / 9.0);
    Nms op{.iou_threshold = 0.3f};
    op.max_output_boxes_per_class = static_cast<int64_t>(rng() % 20);
    op.score_threshold = round % 3 ? 0.25f : -INFINITY;
    op.center_point_box = round % 5 == 0;
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(scores.shape())));
    ExpectMatchesReference(op, {batched, scores});
  }
}

TEST(Nms, BatchedFormIsPaddedWithMinusOne) {
  const HostTensor boxes = HostTensor::Of(DType::kF32, {1, 3, 4}, {0, 0, 9, 9, 0, 0, 9, 9, 20, 20, 30, 30});
  const HostTensor scores = HostTensor::Of(DType::kF32, {1, 2, 3}, {0.5, 0.6, 0.7, 0.9, 0, 0});
  std::vector<HostTensor> out;
  const Nms op{.score_threshold = 0.1f, .max_output_boxes_per_class = 2};
  ASSERT_TRUE(testing::Run(op, {boxes, scores}, &out).ok());
  EXPECT_EQ(NameOf(out[0].dtype()), "i32");
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 0, 2, 0, 0, 1, 0, 1, 0, -1, -1, -1}));
}

TEST(Nms, OneSetWithAScoreThresholdAndCentres) {
  const HostTensor boxes = HostTensor::Of(DType::kF32, {3, 4}, {5, 5, 10, 10, 5, 5, 10, 10, 50, 50, 10, 10});
  const HostTensor scores = HostTensor::Of(DType::kF32, {3}, {0.5, 0.6, 0.1});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Nms{.score_threshold = 0.1f, .center_point_box = true}, {boxes, scores}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{1}));
}

TEST(Nms, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(Nms{}, {f32({3, 5}), f32({3})}, {"'boxes'", "expected dimension 1 to be 4, got 5"});
  ExpectError(Nms{}, {f32({3, 4}), f32({2})}, {"'scores'", "expected dimension 0 to be N = 3 as in 'boxes'", "got 2"});
  ExpectError(Nms{}, {f32({1, 3, 4}), f32({3})}, {"'boxes': expected rank", "got 3"});
  ExpectError(Nms{}, {f32({2, 3, 4}), f32({1, 5, 3})}, {"'scores'", "expected dimension 0 to be B = 2", "got 1"});
  ExpectError(Nms{.max_output_boxes_per_class = 5}, {f32({3, 4}), f32({3})},
              {"'max_output_boxes_per_class': expected 0 for 'boxes' of rank 2, got 5"});
  ExpectError(Nms{}, {HostTensor::Full(DType::kF16, {3, 4}, 1), f32({3})}, {"no kernel takes"});
  const Op& op = *FindOp("nms");
  ExpectAttributeError(op, {{"iou_threshold", AttrValue::Float(1.5)}},
                       {"'iou_threshold': expected a number in [0, 1], got 1.5"});
  ExpectAttributeError(op, {{"iou_threshold", AttrValue::Float(-0.1)}}, {"'iou_threshold'"});
  ExpectAttributeError(op, {{"offset", AttrValue::Int(2)}}, {"'offset': expected", "got 2"});
  ExpectAttributeError(op, {{"offset", AttrValue::String("one")}}, {"'offset': expected int, got string one"});
}

}  // namespace
}  // namespace polyop::testing
