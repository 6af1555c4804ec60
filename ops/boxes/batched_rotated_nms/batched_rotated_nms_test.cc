// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/batched_rotated_nms/batched_rotated_nms.h"

#include <cmath>

#include "testing/many_boxes.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor RandomBoxes(const Shape& shape, std::mt19937& rng) {
  HostTensor boxes = HostTensor::Uniform(DType::kF32, shape, rng, 0, 1);
  for (int64_t i = 0; i * 5 < boxes.size(); ++i) {
    for (int k = 2; k < 4; ++k) boxes.set(5 * i + k, 0.3 * boxes.at(5 * i + k));
    boxes.set(5 * i + 4, 8 * boxes.at(5 * i + 4) - 4);
  }
  return boxes;
}

TEST(BatchedRotatedNms, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(80); ++round) {
    const int64_t images = rng() % 4, count = rng() % 60, classes = rng() % 20;
    BatchedRotatedNms op;
    op.topk = static_cast<int64_t>(rng() % 30) - 3;
    op.keep_topk = static_cast<int64_t>(rng() % 50);
    op.score_threshold = 0.3f;
    op.iou_threshold = 0.1f * static_cast<float>(rng() % 8);
    op.background_label_id = static_cast<int64_t>(rng() % 4) - 1;
    op.clip_boxes = rng() % 2;
    const HostTensor scores = HostTensor::Uniform(DType::kF32, {images, count, classes}, rng, 0, 1);
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(scores.shape())));
    ExpectMatchesReference(op, {RandomBoxes({images, count, rng() % 2 ? 1 : classes, 5}, rng), scores});
  }
}

// Enough boxes per class for the grid of cells.
TEST(BatchedRotatedNms, ManyBoxesPerClassMatchReference) {
  std::mt19937 rng(6);
  const HostTensor boxes = ManyRotatedBoxes(Spread::kUniform, 2600, rng);
  HostTensor batched(DType::kF32, {1, 2600, 1, 5});
  for (int64_t i = 0; i < boxes.size(); ++i) batched.set(i, boxes.at(i));
  BatchedRotatedNms op;
  op.keep_topk = 3000;
  op.clip_boxes = false;
  ExpectMatchesReference(op, {batched, ManyScores({1, 2600, 2}, rng)});
}

TEST(BatchedRotatedNms, AnglesAreNotClipped) {
  BatchedRotatedNms op;
  op.keep_topk = 1;
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(op,
                           {HostTensor::Of(DType::kF32, {1, 1, 1, 5}, {0.5, 2, 0.5, -1, 3}),
                            HostTensor::Full(DType::kF32, {1, 1, 1}, 0.5)},
                           &out)
                  .ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0.5, 1, 0.5, 0, 3, 0.5}));
}

TEST(BatchedRotatedNms, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(BatchedRotatedNms{}, {f32({1, 5, 1, 4}), f32({1, 5, 3})},
              {"'boxes'", "expected dimension 3 to be 5, got 4"});
  ExpectError(BatchedRotatedNms{}, {f32({1, 5, 2, 5}), f32({1, 5, 3})},
              {"'boxes': expected 1 or C = 3 in dimension 2, got 2 (shape [1, 5, 2, 5])"});
  ExpectError(BatchedRotatedNms{}, {f32({1, 5, 1, 5}), f32({2, 5, 3})}, {"'scores'", "to be B = 1"});
}

}  // namespace
}  // namespace polyop::testing
