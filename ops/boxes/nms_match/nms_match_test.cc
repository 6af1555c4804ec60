// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/nms_match/nms_match.h"

#include <array>
#include <cmath>

#include "testing/many_boxes.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor Scalar(double v) { return HostTensor::Full(DType::kF32, {1}, v); }

// Corners on a grid: some IoUs are exactly equal to a threshold.
HostTensor RandomBoxes(const Shape& shape, int extent, std::mt19937& rng) {
  HostTensor boxes(DType::kF32, shape);
  std::uniform_int_distribution<int> corner(0, extent), size(0, 12);
  for (int64_t i = 0; i * 4 < boxes.size(); ++i) {
    const int x = corner(rng), y = corner(rng);
    const double values[4] = {1.0 * x, 1.0 * y, 1.0 * x + size(rng), 1.0 * y + size(rng)};
    for (int k = 0; k < 4; ++k) boxes.set(4 * i + k, values[k]);
  }
  return boxes;
}

TEST(NmsMatch, ListsWhatEachBoxSuppressed) {
  // Boxes 0, 2 and 3 overlap; box 1 stands alone; the best is box 2.
  const HostTensor boxes =
      HostTensor::Of(DType::kF32, {1, 4, 4}, {0, 0, 10, 10, 50, 50, 60, 60, 0, 0, 10, 9, 0, 1, 10, 10});
  const HostTensor scores = HostTensor::Of(DType::kF32, {1, 1, 4}, {0.5, 0.9, 0.8, 0.6});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(NmsMatch{}, {boxes, scores, Scalar(0.5), Scalar(0)}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 0, 2, 3, 0, 0, 2, 0}));
  ASSERT_TRUE(testing::Run(NmsMatch{}, {boxes, scores, Scalar(0.5), Scalar(0.8)}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[0, 4]");  // scores must be strictly greater
}

// Two boxes with a common corner. The second is inside the first, so the IoU is the quotient of their areas.
TEST(NmsMatch, AnIouEqualToTheThresholdSuppresses) {
  struct Case {
    double width, height, inner_width, inner_height;
    float iou;
  };
  const Case cases[] = {
      {1, 10, 1, 5, 0.5f},
      {1024, 1024, 1024, 512, 0.5f},
      {1, 10, 1, 3, 0.3f},
      {1, 10, 1, 7, 0.7f},
      {100, 10, 100, 1, 0.1f},
      {3, 3, 3, 3, 1.0f},
      {0.5, 0.5, 0.25, 0.25, 0.25f},
      {1e-3, 1e-3, 1e-3, 1e-3, 1.0f},
      {1e-22, 1e-22, 1e-22, 1e-22, 1.0f},
      {1e20, 1e20, 1e20, 1e20, 1.0f},
  };
  const auto matches = [](const Case& c, float threshold) {
    const HostTensor boxes =
        HostTensor::Of(DType::kF32, {1, 2, 4}, {0, 0, c.width, c.height, 0, 0, c.inner_width, c.inner_height});
    const HostTensor scores = HostTensor::Of(DType::kF32, {1, 1, 2}, {1, 0.5});
    std::vector<HostTensor> out;
    const NmsMatch op;
    ExpectMatchesReference(op, {boxes, scores, Scalar(threshold), Scalar(0)});
    EXPECT_TRUE(testing::Run(op, {boxes, scores, Scalar(threshold), Scalar(0)}, &out).ok());
    return out.at(0).ToDoubles() == std::vector<double>{0, 0, 0, 1};
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(Concat(c.width, " x ", c.height, " and ", c.inner_width, " x ", c.inner_height));
    EXPECT_TRUE(matches(c, c.iou));
    EXPECT_TRUE(matches(c, std::nextafter(c.iou, 0.0f)));
    EXPECT_FALSE(matches(c, std::nextafter(c.iou, 2.0f)));
  }
}

// Enough boxes for the grid of cells to be used.
TEST(NmsMatch, EverySpreadOfManyBoxesMatchesReference) {
  std::mt19937 rng(6);
  for (Spread spread : kSpreads) {
    const double threshold = std::array{0.1, 0.5, 0.75, 1.0}[rng() % 4];
    SCOPED_TRACE(Concat(NameOf(spread), ", threshold ", threshold));
    const HostTensor boxes = ManyBoxes(spread, 2600, rng);
    HostTensor batched(DType::kF32, {1, 2600, 4});
    for (int64_t i = 0; i < boxes.size(); ++i) batched.set(i, boxes.at(i));
    const int64_t classes = 1 + static_cast<int64_t>(rng() % 2);
    ExpectMatchesReference(NmsMatch{},
                           {batched, ManyScores({1, classes, 2600}, rng), Scalar(threshold), Scalar(rng() % 2 / 4.0)});
  }
}

TEST(NmsMatch, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(150); ++round) {
    const int64_t images = rng() % 3, classes = rng() % 4, count = rng() % 120;
    HostTensor scores = HostTensor::Uniform(DType::kF32, {images, classes, count}, rng, 0, 1);
    for (int64_t i = 0; i < scores.size() && round % 2; ++i) scores.set(i, rng() % 5 / 5.0);
    const double iou[] = {-1, 0, 0.1, 0.5, 0.7, 1, 2};
    SCOPED_TRACE(Concat("round ", round, ": ", images, " images, ", classes, " classes, ", count, " boxes"));
    ExpectMatchesReference(NmsMatch{}, {RandomBoxes({images, count, 4}, round % 3 ? 15 : 100, rng), scores,
                                        Scalar(iou[rng() % 7]), Scalar(rng() % 2 ? -1 : 0.4)});
  }
}

TEST(NmsMatch, NanInfinityAndReversedBoxes) {
  const HostTensor boxes = HostTensor::Of(
      DType::kF32, {1, 7, 4}, {0,         0,         9,        9,        NAN, 0, 9, 9, 0, 0, 9, NAN, 9, 9, 0, 0,  //
                               -INFINITY, -INFINITY, INFINITY, INFINITY, 5,   5, 5, 5, 5, 5, 5, 5});
  const HostTensor scores = HostTensor::Of(DType::kF32, {1, 1, 7}, {0.9, 0.8, NAN, 0.7, INFINITY, -INFINITY, 0.1});
  for (double iou : {0.0, 0.5}) ExpectMatchesReference(NmsMatch{}, {boxes, scores, Scalar(iou), Scalar(-1)});
}

TEST(NmsMatch, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0.5); };
  ExpectError(NmsMatch{}, {f32({2, 3, 5}), f32({2, 1, 3}), Scalar(0), Scalar(0)}, {"'boxes'", "to be 4, got 5"});
  ExpectError(NmsMatch{}, {f32({2, 3, 4}), f32({2, 1, 4}), Scalar(0), Scalar(0)}, {"'scores'", "to be N = 3"});
  ExpectError(NmsMatch{}, {f32({2, 3, 4}), f32({2, 1, 3}), f32({2}), Scalar(0)}, {"'iou_threshold'"});
  ExpectError(NmsMatch{}, {f32({2, 3, 4}), f32({2, 1, 3}), Scalar(NAN), Scalar(0)},
              {"'iou_threshold': expected a number, got NaN"});
  ExpectError(NmsMatch{}, {f32({2, 3, 4}), f32({2, 1, 3}), Scalar(0), Scalar(NAN)},
              {"'score_threshold': expected a number, got NaN"});
}

}  // namespace
}  // namespace polyop::testing
