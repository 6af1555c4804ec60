// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/nms3d/nms3d.h"

#include <array>
#include <cmath>
#include <span>

#include "testing/many_boxes.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor F32(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF32, shape, values);
}

// Returns boxes in a square of `extent`, at any height. A few repeat the previous box, some have no area.
HostTensor RandomBoxes(DType type, int64_t count, double extent, std::mt19937& rng) {
  HostTensor boxes = HostTensor::Uniform(type, {count, 7}, rng, 0, 1);
  for (int64_t i = 0; i < boxes.size(); ++i) {
    const int64_t k = i % 7;
    boxes.set(i, k < 2 ? boxes.at(i) * extent : k < 6 ? 0.1 + boxes.at(i) * 20 : (boxes.at(i) - 0.5) * 20);
    if (k == 3 && rng() % 16 == 0) boxes.set(i, 0);
    if (i / 7 % 11 == 1) boxes.set(i, boxes.at(i - 7));
  }
  return boxes;
}

class Nms3dRandom : public ::testing::TestWithParam<DType> {};

TEST_P(Nms3dRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t count : {0, 1, 2, 15, 17, 63, 200, 400}) {
    for (double extent : {10.0, 100.0}) {
      for (float threshold : {0.0f, 0.1f, 0.5f, 0.9f}) {
        SCOPED_TRACE(Concat(count, " boxes, extent ", extent, ", threshold ", threshold));
        HostTensor scores = HostTensor::Uniform(GetParam(), {count}, rng, 0, 1);
        for (int64_t i = 0; i < count && count % 2 == 0; ++i) scores.set(i, rng() % 8 / 8.0);  // ties
        ExpectMatchesReference(Nms3d{threshold, rng() % 3 == 0}, {RandomBoxes(GetParam(), count, extent, rng), scores});
      }
    }
  }
}

// Enough boxes for the grid of cells to be used.
TEST_P(Nms3dRandom, EverySpreadOfManyBoxesMatchesReference) {
  std::mt19937 rng(6);
  const std::span all(kSpreads);
  for (Spread spread : GetParam() == DType::kF32 ? all : all.first(2)) {
    float threshold = std::array{0.0f, 0.3f, 0.7f}[rng() % 3];
    if (spread == Spread::kHuge) threshold = 0.3f;  // at 1e30, rounding decides whether boxes intersect
    SCOPED_TRACE(Concat(NameOf(spread), ", threshold ", threshold));
    const HostTensor above = ManyRotatedBoxes(spread, 2600, rng);
    HostTensor boxes = HostTensor::Full(DType::kF32, {2600, 7}, 1);
    constexpr int kAt[5] = {0, 1, 3, 4, 6};
    for (int64_t i = 0; i < above.size(); ++i) boxes.set(i / 5 * 7 + kAt[i % 5], above.at(i));
    ExpectMatchesReference(Nms3d{threshold, rng() % 3 == 0},
                           {boxes.Cast(GetParam()), ManyScores({2600}, rng).Cast(GetParam())});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Nms3dRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<double> Kept(const Nms3d& op, const HostTensor& boxes, const std::vector<double>& scores) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(op, {boxes, F32({static_cast<int64_t>(scores.size())}, scores)}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

TEST(Nms3d, IgnoresHeightsAndWithNormalHeadings) {
  const double quarter = std::acos(-1.0) / 2;
  const HostTensor boxes = F32({3, 7}, {0, 0, 0, 8, 1, 1, 0, 0, 0, 90, 8, 1, NAN, 0, 0, 0, 0, 8, 1, 1, quarter});
  EXPECT_EQ(Kept(Nms3d{0.5f, false}, boxes, {0.5, 0.75, 0.25}), (std::vector<double>{1, 2}));
  EXPECT_EQ(Kept(Nms3d{0.5f, true}, boxes, {0.5, 0.75, 0.25}), (std::vector<double>{1}));
}

TEST(Nms3d, AnIouEqualToTheThresholdDoesNotSuppress) {
  // The intersection of both boxes is 2, their union 4.
  const HostTensor boxes = F32({2, 7}, {0, 0, 0, 2, 2, 1, 0, 0, 0, 0, 1, 2, 1, 0});
  EXPECT_EQ(Kept(Nms3d{0.5f}, boxes, {1, 0}), (std::vector<double>{0, 1}));
  EXPECT_EQ(Kept(Nms3d{0.49f}, boxes, {1, 0}), (std::vector<double>{0}));
}

TEST(Nms3d, CornersOutsideAreOutside) {
  // 0.005 apart: MMCV counts the corners as inside.
  EXPECT_EQ(Kept(Nms3d{0.0f}, F32({2, 7}, {0, 0, 0, 2, 2, 1, 0, 2.005, 0, 0, 2, 2, 1, 0}), {1, 0}),
            (std::vector<double>{0, 1}));
}

TEST(Nms3d, TinyBoxesUseTheMinimumUnion) {
  const HostTensor boxes = F32({2, 7}, {0, 0, 0, 1e-5, 1e-5, 1, 0, 0, 0, 0, 1e-5, 1e-5, 1, 0});  // IoU 0.01
  EXPECT_EQ(Kept(Nms3d{0.02f}, boxes, {1, 0}), (std::vector<double>{0, 1}));
  EXPECT_EQ(Kept(Nms3d{0.005f}, boxes, {1, 0}), (std::vector<double>{0}));
}

TEST(Nms3d, NanAndInfinity) {
  std::vector<double> rows;
  for (int k : {0, 1, 3, 4, 6}) {
    for (double value : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      std::vector<double> row = {0, 0, 0, 4, 4, 4, 0};
      row[static_cast<size_t>(k)] = value;
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  const std::vector<double> usual = {0, 0, 0, 4, 4, 4, 0, 0, 0, 0, -4, -4, 4, 0, 0, 0, 0, 4, 4, 4, 1};
  rows.insert(rows.end(), usual.begin(), usual.end());
  const HostTensor boxes = F32({13, 7}, rows);
  std::vector<double> scores(13, 0.5);
  scores[3] = scores[7] = NAN;
  for (float threshold : {0.0f, 0.5f}) {
    ExpectMatchesReference(Nms3d{threshold}, {boxes, F32({13}, scores)});
    EXPECT_EQ(Kept(Nms3d{threshold}, boxes, scores), (std::vector<double>{0, 1, 2, 4, 5, 6, 8, 9, 10, 11, 3, 7}));
  }
}

TEST(Nms3d, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(Nms3d{}, {f32({3, 5}), f32({3})}, {"'boxes'", "expected dimension 1 to be 7, got 5"});
  ExpectError(Nms3d{}, {f32({3, 7}), f32({2})}, {"'scores'", "expected dimension 0 to be N = 3", "got 2"});
  ExpectError(Nms3d{}, {f32({3, 7}), HostTensor::Full(DType::kF16, {3}, 1)}, {"no kernel takes inputs"});
  ExpectAttributeError(*FindOp("nms3d"), {{"iou_threshold", AttrValue::Float(1.5)}},
                       {"'iou_threshold': expected", "got 1.5"});
}

}  // namespace
}  // namespace polyop::testing
