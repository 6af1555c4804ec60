// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/boxes_iou3d/boxes_iou3d.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = BoxesIou3d::Mode;

// Boxes in a cube of side `extent`; some have no height or area, some a negative extent.
HostTensor RandomBoxes(DType type, int64_t count, double extent, std::mt19937& rng) {
  HostTensor boxes = HostTensor::Uniform(type, {count, 7}, rng, 0, 1);
  for (int64_t i = 0; i < boxes.size(); ++i) {
    const int64_t k = i % 7;
    boxes.set(i, k < 3 ? boxes.at(i) * extent : k < 6 ? 0.5 + boxes.at(i) * 5 : (boxes.at(i) - 0.5) * 9);
    if (k >= 3 && k < 6 && rng() % 40 == 0) boxes.set(i, rng() % 2 ? 0 : -boxes.at(i));
  }
  return boxes;
}

class BoxesIou3dRandom : public ::testing::TestWithParam<DType> {};

TEST_P(BoxesIou3dRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(60); ++round) {
    const BoxesIou3d op{static_cast<Mode>(round % 3)};
    const int64_t rows = rng() % 40, columns = rng() % 70;
    const double extent = rng() % 2 ? 6 : 40;
    SCOPED_TRACE(Concat("round ", round, ": ", rows, " x ", columns, " boxes, extent ", extent));
    ExpectMatchesReference(op,
                           {RandomBoxes(GetParam(), rows, extent, rng), RandomBoxes(GetParam(), columns, extent, rng)},
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BoxesIou3dRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(BoxesIou3d, ManyPairsInParallel) {
  std::mt19937 rng(2);
  ExpectMatchesReference(BoxesIou3d{},
                         {RandomBoxes(DType::kF32, 900, 80, rng), RandomBoxes(DType::kF32, 700, 80, rng)});
}

double Measure(Mode mode, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(
      BoxesIou3d{mode}, {HostTensor::Of(DType::kF32, {1, 7}, a), HostTensor::Of(DType::kF32, {1, 7}, b)}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].at(0) : NAN;
}

TEST(BoxesIou3d, KnownPairs) {
  const double quarter = std::acos(-1.0) / 2;
  const std::vector<double> box = {1, 2, 3, 4, 2, 2, 0};
  for (Mode mode : {Mode::kIou3d, Mode::kIouBev}) EXPECT_EQ(Measure(mode, box, box), 1);
  EXPECT_EQ(Measure(Mode::kOverlapBev, box, box), 8);
  // A cross: 4 of 12. A box that is half a height higher: z is the centre, so they share half of their height.
  EXPECT_NEAR(Measure(Mode::kIouBev, box, {1, 2, 3, 4, 2, 2, quarter}), 4.0 / 12, 1e-6);
  EXPECT_NEAR(Measure(Mode::kIou3d, box, {1, 2, 4, 4, 2, 2, 0}), 8.0 / 24, 1e-6);
  EXPECT_NEAR(Measure(Mode::kIou3d, box, {1, 2, 3, 4, 2, 4, 0}), 0.5, 1e-6);  // one within a higher one
  EXPECT_EQ(Measure(Mode::kIou3d, box, {1, 2, 5, 4, 2, 2, 0}), 0);    // the top face touches the other's bottom face
  EXPECT_EQ(Measure(Mode::kIouBev, box, {1, 2, 50, 4, 2, 2, 0}), 1);  // z is ignored
  // The heading rotates x towards y: the long box reaches the other one only with a positive heading.
  EXPECT_GT(Measure(Mode::kOverlapBev, {0, 0, 0, 20, 1, 1, quarter / 2}, {6, 6, 0, 1, 1, 1, 0}), 0.9);
  EXPECT_EQ(Measure(Mode::kOverlapBev, {0, 0, 0, 20, 1, 1, -quarter / 2}, {6, 6, 0, 1, 1, 1, 0}), 0);
}

TEST(BoxesIou3d, CornersOutsideDoNotCount) {
  // The other box begins 0.005 outside: MMCV counts its corners as inside.
  EXPECT_EQ(Measure(Mode::kOverlapBev, {0, 0, 0, 2, 2, 2, 0}, {2.005, 0, 0, 2, 2, 2, 0}), 0);
}

TEST(BoxesIou3d, ExactFarFromTheOrigin) {
  EXPECT_EQ(Measure(Mode::kIou3d, {1e6, -1e6, 1e7, 4, 2, 2, 0.3}, {1e6, -1e6, 1e7, 4, 2, 2, 0.3}), 1);
}

TEST(BoxesIou3d, InvalidBoxesOverlapNothing) {
  const std::vector<double> box = {0, 0, 0, 4, 2, 2, 0};
  for (int k = 0; k < 7; ++k) {
    for (float value : {NAN, INFINITY, -INFINITY, -4.0f, 0.0f}) {
      std::vector<double> other = box;
      other[static_cast<size_t>(k)] = static_cast<double>(value);
      const bool finite = std::isfinite(value), is_extent = k >= 3 && k < 6, is_z = k == 2 || k == 5;
      if (finite && !is_extent) continue;  // only another position or heading
      EXPECT_EQ(Measure(Mode::kIou3d, box, other), 0) << k << ": " << value;
      EXPECT_EQ(Measure(Mode::kIouBev, other, box), is_z ? 1 : 0) << k << ": " << value;
      EXPECT_EQ(Measure(Mode::kOverlapBev, other, box), is_z ? 8 : 0) << k << ": " << value;
    }
  }
}

TEST(BoxesIou3d, TinyBoxesUseTheMinimumUnion) {
  EXPECT_NEAR(Measure(Mode::kIouBev, {0, 0, 0, 1e-5, 1e-5, 1, 0}, {0, 0, 0, 1e-5, 1e-5, 1, 0}), 1e-2, 1e-7);
  EXPECT_NEAR(Measure(Mode::kIou3d, {0, 0, 0, 1e-3, 1e-3, 1e-2, 0}, {0, 0, 0, 1e-3, 1e-3, 1e-2, 0}), 1e-2, 1e-7);
}

TEST(BoxesIou3d, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(BoxesIou3d{}, {f32({3, 5}), f32({3, 7})}, {"'boxes_a'", "expected dimension 1 to be 7, got 5"});
  ExpectError(BoxesIou3d{}, {f32({3, 7}), f32({2, 3, 7})}, {"'boxes_b': expected rank 2, got 3"});
  ExpectAttributeError(*FindOp("boxes_iou3d"), {{"mode", AttrValue::Int(3)}}, {"'mode': expected", "got 3"});
}

}  // namespace
}  // namespace polyop::testing
