// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/onnx_nms/onnx_nms.h"

#include <array>
#include <cmath>

#include "testing/many_boxes.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor MaxBoxes(double max_boxes) { return HostTensor::Of(DType::kI64, {}, {max_boxes}); }
HostTensor Threshold(double value) { return HostTensor::Of(DType::kF32, {}, {value}); }

// Boxes with integer corners in any order: some IoUs are exactly equal to a threshold.
std::vector<HostTensor> RandomInputs(const Shape& batch_classes_boxes, int extent, std::mt19937& rng) {
  const int64_t b = batch_classes_boxes[0], c = batch_classes_boxes[1], n = batch_classes_boxes[2];
  std::uniform_int_distribution<int> corner(0, extent), size(-12, 12), score(0, 40);
  HostTensor boxes(DType::kF32, {b, n, 4}), scores(DType::kF32, {b, c, n});
  for (int64_t i = 0; i < b * n; ++i) {
    const int y = corner(rng), x = corner(rng);
    const double values[4] = {1.0 * y, 1.0 * x, 1.0 * y + size(rng), 1.0 * x + size(rng)};
    for (int k = 0; k < 4; ++k) boxes.set(4 * i + k, values[k]);
  }
  for (int64_t i = 0; i < scores.size(); ++i) scores.set(i, score(rng) / 40.0);
  return {boxes, scores};
}

// Enough boxes for the grid of cells to be used.
TEST(OnnxNms, EverySpreadOfManyBoxesMatchesReference) {
  std::mt19937 rng(6);
  for (Spread spread : kSpreads) {
    const double threshold = std::array{0.0, 0.3, 0.7}[rng() % 3], max_boxes = rng() % 3 == 0 ? 1000 : 1e9;
    SCOPED_TRACE(Concat(NameOf(spread), ", threshold ", threshold, ", at most ", max_boxes));
    const HostTensor boxes = ManyBoxes(spread, 2500, rng);
    HostTensor batched(DType::kF32, {1, 2500, 4});
    for (int64_t i = 0; i < boxes.size(); ++i) batched.set(i, boxes.at(i));
    const int64_t classes = 1 + static_cast<int64_t>(rng() % 2);
    ExpectMatchesReference(OnnxNms{},
                           {batched, ManyScores({1, classes, 2500}, rng), MaxBoxes(max_boxes), Threshold(threshold)});
  }
}

// More classes than are processed together.
TEST(OnnxNms, ManyImagesNeedBoundedScratch) {
  constexpr int64_t kImages = 60, kClasses = 80, kBoxes = 4000;
  HostTensor boxes(DType::kF32, {kImages, kBoxes, 4});
  HostTensor scores = HostTensor::Full(DType::kF32, {kImages, kClasses, kBoxes}, 0);
  for (int64_t i = 0; i < kImages * kBoxes; ++i) {
    const double x = static_cast<double>(i % kBoxes);
    const double values[4] = {0, 2 * x, 1, 2 * x + 1};
    for (int k = 0; k < 4; ++k) boxes.set(4 * i + k, values[k]);
  }
  // One box of every class, a different one each time.
  const int64_t sets = kImages * kClasses;
  for (int64_t set = 0; set < sets; ++set) scores.set(set * kBoxes + set % kBoxes, 1);
  const std::vector<HostTensor> inputs = {boxes, scores, MaxBoxes(1e9), Threshold(0.5), Threshold(0.5)};
  EXPECT_LE(PeakScratch(OnnxNms{}, inputs), size_t{120} << 20);
  std::vector<HostTensor> out;
  ASSERT_TRUE(polyop::testing::Run(OnnxNms{}, inputs, &out).ok());
  ASSERT_EQ(ToString(out[0].shape()), Concat("[", sets, ", 3]"));
  for (int64_t set = 0; set < sets; ++set) {
    ASSERT_EQ(out[0].at(3 * set), set / kClasses);
    ASSERT_EQ(out[0].at(3 * set + 1), set % kClasses);
    ASSERT_EQ(out[0].at(3 * set + 2), set % kBoxes);
  }
}

TEST(OnnxNms, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{2, 3, 17}, Shape{1, 4, 100}, Shape{1, 1, 300}, Shape{0, 2, 9}}) {
    for (int extent : {5, 100}) {
      for (float threshold : {0.0f, 0.7f}) {
        for (double max_boxes : {1.0, 7.0, 1e9}) {
          for (bool centre : {false, true}) {
            SCOPED_TRACE(ToString(shape) + " extent " + std::to_string(extent));
            std::vector<HostTensor> inputs = RandomInputs(shape, extent, rng);
            inputs.push_back(MaxBoxes(max_boxes));
            inputs.push_back(Threshold(threshold));
            ExpectMatchesReference(OnnxNms{centre}, inputs);
            inputs.push_back(Threshold(0.5));
            ExpectMatchesReference(OnnxNms{centre}, inputs);
          }
        }
      }
    }
  }
}

std::vector<double> Selected(const OnnxNms& op, const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(op, inputs, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{-1};
}

// The IoU is 7 / 10. In float it equals the threshold 0.7f; in double, 0.7 is greater than 0.7f.
TEST(OnnxNms, TheIouIsComparedInFloat) {
  const HostTensor boxes = HostTensor::Of(DType::kF32, {1, 2, 4}, {0, 0, 1, 10, 0, 0, 1, 7});
  const HostTensor scores = HostTensor::Of(DType::kF32, {1, 1, 2}, {0.9, 0.8});
  EXPECT_EQ(Selected({}, {boxes, scores, MaxBoxes(9), Threshold(0.7)}), (std::vector<double>{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(Selected({}, {boxes, scores, MaxBoxes(9), Threshold(0.69)}), (std::vector<double>{0, 0, 0}));
}

TEST(OnnxNms, DefaultsOfOmittedInputs) {
  const HostTensor boxes = HostTensor::Of(DType::kF32, {1, 3, 4}, {0, 0, 1, 1, 5, 5, 6, 6, 0, 0.5, 1, 2});
  const HostTensor scores = HostTensor::Of(DType::kF32, {1, 1, 3}, {-1, NAN, -2});
  EXPECT_EQ(Selected({}, {boxes, scores}), std::vector<double>());  // keeps no boxes by default
  // Without thresholds every box takes part, NaN last, and any overlap suppresses.
  EXPECT_EQ(Selected({}, {boxes, scores, MaxBoxes(9)}), (std::vector<double>{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(Selected({}, {boxes, scores, MaxBoxes(9), HostTensor::Absent(), Threshold(-1.5)}),
            (std::vector<double>{0, 0, 0}));
}

TEST(OnnxNms, BoxesWithoutAreaOrWithNan) {
  const HostTensor boxes = HostTensor::Of(DType::kF32, {1, 4, 4}, {0, 0, 4, 4, 1, 1, 1, 3, NAN, 0, 4, 4, 0, 0, 4, 4});
  const HostTensor scores = HostTensor::Of(DType::kF32, {1, 1, 4}, {4, 3, 2, 1});
  EXPECT_EQ(Selected({}, {boxes, scores, MaxBoxes(9), Threshold(0)}), (std::vector<double>{0, 0, 0, 0, 0, 1, 0, 0, 2}));
}

TEST(OnnxNms, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  for (double threshold : {-0.1, 1.1, std::nan("")}) {
    ExpectError(OnnxNms{}, {f32({1, 2, 4}), f32({1, 1, 2}), MaxBoxes(1), Threshold(threshold)},
                {"'iou_threshold': expected a number in [0, 1], got "});
  }
  ExpectError(OnnxNms{}, {f32({1, 2, 4}), f32({1, 1, 3})}, {"'scores'", "expected dimension 2 to be N = 2", "got 3"});
  ExpectError(OnnxNms{}, {f32({1, 2, 5}), f32({1, 1, 2})}, {"'boxes'", "expected dimension 2 to be 4, got 5"});
}

}  // namespace
}  // namespace polyop::testing
