// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/efficient_nms/efficient_nms.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "testing/many_boxes.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Coding = EfficientNms::Coding;

EfficientNms Make(float score_threshold, float iou_threshold, int64_t max_boxes) {
  EfficientNms op;
  op.score_threshold = score_threshold;
  op.iou_threshold = iou_threshold;
  op.max_output_boxes = max_boxes;
  return op;
}

HostTensor F32(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF32, shape, values);
}

// Corners in [0, 1.3), some of them reversed, on a coarse grid, so that IoUs often equal the threshold.
HostTensor RandomBoxes(DType type, const Shape& shape, std::mt19937& rng) {
  HostTensor boxes = HostTensor::Uniform(type, shape, rng, 0, 1);
  for (int64_t i = 0; i * 4 < boxes.size(); ++i) {
    for (int k = 0; k < 4; ++k) {
      boxes.set(4 * i + k, std::round(boxes.at(4 * i + k) * 16) / 16 + (k >= 2 && rng() % 9 != 0 ? 0.25 : 0));
    }
  }
  return boxes;
}

HostTensor RandomScores(DType type, const Shape& shape, std::mt19937& rng, bool ties) {
  HostTensor scores = HostTensor::Uniform(type, shape, rng, -1, 1);
  for (int64_t i = 0; ties && i < scores.size(); ++i) scores.set(i, rng() % 11 == 0 ? NAN : rng() % 6 / 5.0);
  return scores;
}

// Enough detections for the grid of cells.
TEST(EfficientNms, ManyBoxesMatchReference) {
  std::mt19937 rng(6);
  for (Spread spread : kSpreads) {
    EfficientNms op = Make(0, std::array{0.1f, 0.5f, 0.75f}[rng() % 3], rng() % 2 == 0 ? 1500 : 9000);
    op.class_agnostic = rng() % 2 == 0;
    SCOPED_TRACE(Concat(NameOf(spread), ", threshold ", op.iou_threshold, ", agnostic ", op.class_agnostic));
    const HostTensor boxes = ManyBoxes(spread, 2600, rng);
    HostTensor batched(DType::kF32, {1, 2600, 4});
    for (int64_t i = 0; i < boxes.size(); ++i) batched.set(i, boxes.at(i));
    ExpectMatchesReference(op, {batched, ManyScores({1, 2600, 2}, rng)});
  }
}

class EfficientNmsRandom : public ::testing::TestWithParam<DType> {};

TEST_P(EfficientNmsRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(120); ++round) {
    const int64_t images = rng() % 4, count = rng() % 60, classes = rng() % 9;
    EfficientNms op = Make(rng() % 4 ? 0.25f : 0.0f, rng() % 3 ? 0.5f : 0.3f, 1 + rng() % 40);
    op.background_class = static_cast<int64_t>(rng() % 5) - 1;
    op.score_activation = rng() % 2;
    op.box_coding = rng() % 2 ? Coding::kCorners : Coding::kCenterSize;
    op.class_agnostic = rng() % 2;
    const Shape kShapes[] = {{images, count, 4}, {images, count, 1, 4}, {images, count, classes, 4}};
    std::vector<HostTensor> inputs = {RandomBoxes(GetParam(), kShapes[rng() % 3], rng),
                                      RandomScores(GetParam(), {images, count, classes}, rng, round % 2)};
    if (rng() % 2) {
      inputs.push_back(HostTensor::Uniform(GetParam(), {rng() % 2 ? 1 : images, count, 4}, rng, 0.1, 1));
    }
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(inputs[0].shape()), ToString(inputs[1].shape())));
    ExpectMatchesReference(op, inputs, ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EfficientNmsRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(EfficientNms, ManyElementsPerImage) {
  std::mt19937 rng(2);
  const std::vector<HostTensor> inputs = {RandomBoxes(DType::kF32, {1, 2600, 4}, rng),
                                          RandomScores(DType::kF32, {1, 2600, 20}, rng, false)};
  ExpectMatchesReference(Make(0.01f, 0.5f, 300), inputs);
  ExpectMatchesReference(Make(0.9f, 0.9f, 5000), inputs);
}

// Returns the detections of one image as rows (x1, y1, x2, y2, score, class, index).
std::vector<std::vector<double>> Detections(const EfficientNms& op, const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(op, inputs, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<std::vector<double>> rows;
  for (int64_t k = 0; status.ok() && k < static_cast<int64_t>(out[0].at(0)); ++k) {
    std::vector<double> row;
    for (int i = 0; i < 4; ++i) row.push_back(out[1].at(4 * k + i));
    row.insert(row.end(), {out[2].at(k), out[3].at(k), out[4].at(k)});
    rows.push_back(row);
  }
  return rows;
}

// More images than are processed together: 65, whose results are those of one image. The last group has more tasks.
TEST(EfficientNms, ManyImagesNeedBoundedScratch) {
  std::mt19937 rng(9);
  constexpr int64_t kImages = 129, kBoxes = 1600, kClasses = 80;
  const EfficientNms op = Make(0.9f, 0.5f, 10);
  const HostTensor boxes = RandomBoxes(DType::kF32, {1, kBoxes, 4}, rng);
  const HostTensor scores = HostTensor::Uniform(DType::kF32, {1, kBoxes, kClasses}, rng, 0, 1);
  const auto repeated = [&](const HostTensor& one, const Shape& shape) {
    HostTensor all(DType::kF32, shape);
    for (int64_t i = 0; i < kImages; ++i)
      std::copy_n(one.data<float>(), one.size(), all.data<float>() + i * one.size());
    return all;
  };
  const std::vector<HostTensor> inputs = {repeated(boxes, {kImages, kBoxes, 4}),
                                          repeated(scores, {kImages, kBoxes, kClasses})};
  EXPECT_LE(PeakScratch(op, inputs), size_t{100} << 20);
  std::vector<HostTensor> one, all;
  ASSERT_TRUE(polyop::testing::Run(op, {boxes, scores}, &one).ok());
  ASSERT_TRUE(polyop::testing::Run(op, inputs, &all).ok());
  for (size_t o = 0; o < one.size(); ++o) {
    for (int64_t i = 0; i < all[o].size(); ++i) ASSERT_EQ(all[o].at(i), one[o].at(i % one[o].size())) << "output " << o;
  }
}

TEST(EfficientNms, ThresholdsAreInclusive) {
  // The IoU of the first two is 5 / 10.
  const std::vector<HostTensor> inputs = {F32({1, 3, 4}, {0, 0, 1, 10, 0, 0, 1, 5, 20, 0, 30, 9}),
                                          F32({1, 3, 1}, {0.75, 0.5, 0.25})};
  using Rows = std::vector<std::vector<double>>;
  EXPECT_EQ(Detections(Make(0.25f, 0.5f, 9), inputs), (Rows{{0, 0, 1, 10, 0.75, 0, 0}, {20, 0, 30, 9, 0.25, 0, 2}}));
  EXPECT_EQ(Detections(Make(0.26f, 0.51f, 9), inputs), (Rows{{0, 0, 1, 10, 0.75, 0, 0}, {0, 0, 1, 5, 0.5, 0, 1}}));
  EXPECT_EQ(Detections(Make(0.0f, 0.5f, 1), inputs), (Rows{{0, 0, 1, 10, 0.75, 0, 0}}));
}

TEST(EfficientNms, ClassesAreSeparateUnlessAgnostic) {
  const std::vector<HostTensor> inputs = {F32({1, 2, 4}, {0, 0, 9, 9, 0, 0, 9, 9}),
                                          F32({1, 2, 3}, {0.5, 0.75, 0, 0.5, 0, 0.9})};
  EfficientNms op = Make(0.1f, 0.5f, 9);
  EXPECT_EQ(Detections(op, inputs).size(), 3u);  // box 1 of class 2, 0 of 1, 0 of 0
  op.background_class = 2;
  EXPECT_EQ(Detections(op, inputs).size(), 2u);
  op.class_agnostic = true;
  EXPECT_EQ(Detections(op, inputs), (std::vector<std::vector<double>>{{0, 0, 9, 9, 0.75, 1, 0}}));
}

TEST(EfficientNms, ThresholdIsComparedAsLogit) {
  const std::vector<HostTensor> inputs = {F32({1, 4, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}),
                                          F32({1, 4, 1}, {0, -1e-3, -INFINITY, 40})};
  EfficientNms op = Make(0.5f, 0.5f, 9);
  op.score_activation = true;
  const auto rows = Detections(op, inputs);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0], (std::vector<double>{6, 6, 7, 7, 1, 0, 3}));
  EXPECT_EQ(rows[1], (std::vector<double>{0, 0, 1, 1, 0.5, 0, 0}));
  op.score_threshold = 0;
  EXPECT_EQ(Detections(op, inputs).size(), 4u);
  op.score_threshold = 1.5f;
  EXPECT_EQ(Detections(op, inputs).size(), 0u);
}

TEST(EfficientNms, BoxesAreNotClippedOrReordered) {
  const EfficientNms corners = Make(0, 0.5f, 9);
  EXPECT_EQ(Detections(corners, {F32({1, 1, 4}, {9, 8, -3, 4}), F32({1, 1, 1}, {1})})[0],
            (std::vector<double>{9, 8, -3, 4, 1, 0, 0}));  // reversed, and below 0
  EfficientNms op = corners;
  op.box_coding = Coding::kCenterSize;
  EXPECT_EQ(Detections(op, {F32({1, 1, 4}, {5, 5, 4, 2}), F32({1, 1, 1}, {1})})[0],
            (std::vector<double>{3, 4, 7, 6, 1, 0, 0}));
  EXPECT_EQ(Detections(op, {F32({1, 1, 4}, {1, 2, 0, 0}), F32({1, 1, 1}, {1}), F32({1, 1, 4}, {10, 20, 4, 8})})[0],
            (std::vector<double>{12, 32, 16, 40, 1, 0, 0}));
  EXPECT_EQ(Detections(corners, {F32({1, 1, 4}, {3, 1, 1, 3}), F32({1, 1, 1}, {1}), F32({1, 1, 4}, {0, 9, 7, 5})})[0],
            (std::vector<double>{1, 6, 10, 12, 1, 0, 0}));  // the corners of both are ordered, then added
}

TEST(EfficientNms, NanAndInfinity) {
  const HostTensor boxes =
      F32({1, 6, 4}, {0, 0, 9, 9, 0, 0, NAN, 9, 0, 0, INFINITY, 9, -INFINITY, 0, 9, 9, 0, 0, INFINITY, 9, 0, 0, 9, 9});
  const HostTensor scores = F32({1, 6, 1}, {NAN, 0.9, 0.8, 0.7, 0.6, INFINITY});
  for (bool agnostic : {false, true}) {
    EfficientNms op = Make(0.1f, 0.5f, 9);
    op.class_agnostic = agnostic;
    EXPECT_EQ(Detections(op, {boxes, scores}).size(), 5u);  // all but the first
    ExpectMatchesReference(op, {boxes, scores});
  }
}

TEST(EfficientNms, NoCandidates) {
  for (const Shape& scores : {Shape{2, 0, 3}, Shape{2, 5, 0}}) {
    std::vector<HostTensor> out;
    ASSERT_TRUE(
        testing::Run(Make(0.1f, 0.5f, 3),
                     {HostTensor::Full(DType::kF32, {2, scores[1], 4}, 1), HostTensor::Full(DType::kF32, scores, 1)},
                     &out)
            .ok());
    EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 0}));
    EXPECT_EQ(out[1].ToDoubles(), std::vector<double>(24, 0));
    EXPECT_EQ(out[4].ToDoubles(), std::vector<double>(6, 0));
  }
}

TEST(EfficientNms, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  const EfficientNms op = Make(0.1f, 0.5f, 3);
  ExpectError(op, {f32({1, 5, 5}), f32({1, 5, 3})}, {"'boxes'", "expected dimension 2 to be 4, got 5"});
  ExpectError(op, {f32({1, 5, 2, 4}), f32({1, 5, 3})},
              {"'boxes': expected 1 or C = 3 in dimension 2, got 2 (shape [1, 5, 2, 4])"});
  ExpectError(op, {f32({1, 5, 4}), f32({1, 6, 3})}, {"'scores'", "expected dimension 1 to be B = 5", "got 6"});
  ExpectError(op, {f32({3, 5, 4}), f32({3, 5, 3}), f32({2, 5, 4})},
              {"'anchors': expected 1 or N = 3 in dimension 0, got 2 (shape [2, 5, 4])"});
  const Op& record = *FindOp("efficient_nms");
  ExpectAttributeError(record, {}, {"'score_threshold'"});
  const auto with = [&](const char* name, const AttrValue& value, const std::vector<std::string>& parts) {
    ExpectAttributeError(record, {{name, value}}, parts);
  };
  with("score_threshold", AttrValue::Float(-1), {"'score_threshold': expected", "got -1"});
  with("score_threshold", AttrValue::Float(NAN), {"'score_threshold': expected", "got nan"});
}

}  // namespace
}  // namespace polyop::testing
