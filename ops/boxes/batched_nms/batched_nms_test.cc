// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/batched_nms/batched_nms.h"

#include <algorithm>
#include <cmath>

#include "testing/many_boxes.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor RandomBoxes(const Shape& shape, std::mt19937& rng) {
  HostTensor boxes = HostTensor::Uniform(DType::kF32, shape, rng, 0, 1);
  for (int64_t i = 0; i * 4 < boxes.size(); ++i) {
    for (int k = 2; k < 4; ++k) boxes.set(4 * i + k, boxes.at(4 * i + k - 2) + 0.3 * boxes.at(4 * i + k));
  }
  return boxes;
}

BatchedNms Make(int64_t topk, int64_t keep_topk, float score_threshold, float iou_threshold = 0.4f) {
  BatchedNms op;
  op.topk = topk;
  op.keep_topk = keep_topk;
  op.score_threshold = score_threshold;
  op.iou_threshold = iou_threshold;
  return op;
}

TEST(BatchedNms, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(100); ++round) {
    const int64_t images = rng() % 4, count = rng() % 80, classes = rng() % 40;
    BatchedNms op = Make(static_cast<int64_t>(rng() % 30) - 3, static_cast<int64_t>(rng() % 50), 0.3f);
    op.background_label_id = static_cast<int64_t>(rng() % 4) - 1;
    op.clip_boxes = rng() % 2;
    HostTensor scores = HostTensor::Uniform(DType::kF32, {images, count, classes}, rng, 0, 1);
    for (int64_t i = 0; i < scores.size() && round % 2; ++i) scores.set(i, rng() % 6 / 5.0);  // ties
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(scores.shape())));
    ExpectMatchesReference(op, {RandomBoxes({images, count, rng() % 2 ? 1 : classes, 4}, rng), scores});
  }
}

// Enough boxes per class for the grid of cells.
TEST(BatchedNms, ManyBoxesMatchReference) {
  std::mt19937 rng(6);
  for (Spread spread : kSpreads) {
    SCOPED_TRACE(NameOf(spread));
    const HostTensor boxes = ManyBoxes(spread, 2600, rng);
    HostTensor batched(DType::kF32, {1, 2600, 1, 4});
    for (int64_t i = 0; i < boxes.size(); ++i) batched.set(i, boxes.at(i));
    BatchedNms op = Make(rng() % 2 == 0 ? -1 : 2500, 4000, 0.01f);
    op.clip_boxes = false;
    ExpectMatchesReference(op, {batched, ManyScores({1, 2600, 2}, rng)});
  }
}

TEST(BatchedNms, ManyClassesOfManyBoxes) {
  std::mt19937 rng(2);
  ExpectMatchesReference(Make(200, 100, 0.9f), {RandomBoxes({2, 1500, 1, 4}, rng),
                                                HostTensor::Uniform(DType::kF32, {2, 1500, 80}, rng, 0, 1)});
}

// More images than are processed together.
TEST(BatchedNms, ManyImagesNeedBoundedScratch) {
  std::mt19937 rng(9);
  constexpr int64_t kImages = 30, kBoxes = 3000, kClasses = 80;
  const BatchedNms op = Make(-1, 20, 0.99f);
  const HostTensor boxes = RandomBoxes({1, kBoxes, 1, 4}, rng);
  const HostTensor scores = HostTensor::Uniform(DType::kF32, {1, kBoxes, kClasses}, rng, 0, 1);
  const auto repeated = [&](const HostTensor& one, const Shape& shape) {
    HostTensor all(DType::kF32, shape);
    for (int64_t i = 0; i < kImages; ++i)
      std::copy_n(one.data<float>(), one.size(), all.data<float>() + i * one.size());
    return all;
  };
  const std::vector<HostTensor> inputs = {repeated(boxes, {kImages, kBoxes, 1, 4}),
                                          repeated(scores, {kImages, kBoxes, kClasses})};
  // 64 tasks have the candidates of 16 classes each.
  EXPECT_LE(PeakScratch(op, inputs), size_t{130} << 20);
  std::vector<HostTensor> one, all;
  ASSERT_TRUE(polyop::testing::Run(op, {boxes, scores}, &one).ok());
  ASSERT_TRUE(polyop::testing::Run(op, inputs, &all).ok());
  for (size_t o = 0; o < one.size(); ++o) {
    for (int64_t i = 0; i < all[o].size(); ++i) ASSERT_EQ(all[o].at(i), one[o].at(i % one[o].size())) << "output " << o;
  }
}

TEST(BatchedNms, IndexIsComputedWhenRequested) {
  std::mt19937 rng(3);
  const std::vector<HostTensor> inputs = {RandomBoxes({1, 20, 3, 4}, rng),
                                          HostTensor::Uniform(DType::kF32, {1, 20, 3}, rng, 0, 1)};
  ExpectMatchesReference(Make(-1, 10, 0.1f), inputs, {}, 2);
  ExpectMatchesReference(Make(-1, 10, 0.1f), inputs, {}, 3);
}

TEST(BatchedNms, NoScoreReachesTheThreshold) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(
      testing::Run(Make(5, 3, 2.0f),
                   {HostTensor::Full(DType::kF32, {1, 9, 1, 4}, 1), HostTensor::Full(DType::kF32, {1, 9, 2}, 1)}, &out)
          .ok());
  EXPECT_EQ(out[0].ToDoubles(), std::vector<double>(15, 0));
  EXPECT_EQ(out[1].ToDoubles(), std::vector<double>(3, -1));
  EXPECT_EQ(out[2].ToDoubles(), std::vector<double>(3, -1));
}

TEST(BatchedNms, NanAndInfinity) {
  std::mt19937 rng(4);
  HostTensor boxes = RandomBoxes({1, 30, 1, 4}, rng), scores = HostTensor::Uniform(DType::kF32, {1, 30, 4}, rng, 0, 1);
  for (int i = 0; i < 10; ++i) boxes.set(static_cast<int64_t>(rng() % 120), i % 2 ? NAN : INFINITY);
  for (int i = 0; i < 20; ++i) scores.set(static_cast<int64_t>(rng() % 120), i % 2 ? NAN : INFINITY);
  ExpectMatchesReference(Make(-1, 40, 0.1f), {boxes, scores});
}

TEST(BatchedNms, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(BatchedNms{}, {f32({1, 5, 1, 5}), f32({1, 5, 3})}, {"'boxes'", "expected dimension 3 to be 4, got 5"});
  ExpectError(BatchedNms{}, {f32({1, 5, 2, 4}), f32({1, 5, 3})},
              {"'boxes': expected 1 or C = 3 in dimension 2, got 2 (shape [1, 5, 2, 4])"});
  ExpectError(BatchedNms{}, {f32({1, 5, 1, 4}), f32({1, 6, 3})},
              {"'scores'", "expected dimension 1 to be N = 5", "got 6"});
  BatchedNms op;
  op.num_classes = 4;
  ExpectError(op, {f32({1, 5, 1, 4}), f32({1, 5, 3})},
              {"'scores': expected num_classes = 4 in dimension 2, got 3 (shape [1, 5, 3])"});
  const Op& record = *FindOp("batched_nms");
  ExpectAttributeError(record, {}, {"'keep_topk'"});
  const auto keep = std::pair{std::string("keep_topk"), AttrValue::Int(10)};
  ExpectAttributeError(record, {keep, {"iou_threshold", AttrValue::Float(2)}}, {"'iou_threshold': expected", "got 2"});
  ExpectAttributeError(record, {{"keep_topk", AttrValue::Int(-1)}}, {"'keep_topk': expected", "got -1"});
}

}  // namespace
}  // namespace polyop::testing
