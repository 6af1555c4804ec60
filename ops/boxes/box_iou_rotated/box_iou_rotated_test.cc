// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/box_iou_rotated/box_iou_rotated.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = BoxIouRotated::Mode;

// Boxes [..., 5] in a square of side `extent`; some have no area, some a negative side.
HostTensor RandomBoxes(DType type, const Shape& shape, double extent, std::mt19937& rng) {
  HostTensor boxes = HostTensor::Uniform(type, shape, rng, 0, 1);
  for (int64_t i = 0; i < boxes.size(); ++i) {
    const int64_t k = i % 5;
    boxes.set(i, k < 2 ? boxes.at(i) * extent : k < 4 ? 0.5 + boxes.at(i) * 5 : (boxes.at(i) - 0.5) * 9);
    if (k >= 2 && k < 4 && rng() % 40 == 0) boxes.set(i, rng() % 2 ? 0 : -boxes.at(i));
  }
  return boxes;
}

class BoxIouRotatedRandom : public ::testing::TestWithParam<DType> {};

TEST_P(BoxIouRotatedRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(40); ++round) {
    const BoxIouRotated op{static_cast<Mode>(round % 2)};
    const int64_t rows = rng() % 40, columns = rng() % 70;
    const double extent = rng() % 2 ? 6 : 40;
    SCOPED_TRACE(Concat("round ", round, ": ", rows, " x ", columns, " boxes, extent ", extent));
    ExpectMatchesReference(
        op, {RandomBoxes(GetParam(), {rows, 5}, extent, rng), RandomBoxes(GetParam(), {columns, 5}, extent, rng)},
        ToleranceFor(GetParam()));
  }
}

TEST_P(BoxIouRotatedRandom, BatchesDoNotMix) {
  std::mt19937 rng(2);
  for (int round = 0; round < Rounds(20); ++round) {
    const int64_t batches = rng() % 5, rows = rng() % 9, columns = rng() % 2 ? 1 : rng() % 20;
    SCOPED_TRACE(Concat("round ", round, ": ", batches, " x ", rows, " x ", columns, " boxes"));
    ExpectMatchesReference(
        BoxIouRotated{static_cast<Mode>(round % 2)},
        {RandomBoxes(GetParam(), {batches, rows, 5}, 8, rng), RandomBoxes(GetParam(), {batches, columns, 5}, 8, rng)},
        ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BoxIouRotatedRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(BoxIouRotated, ManyPairsInParallel) {
  std::mt19937 rng(3);
  ExpectMatchesReference(BoxIouRotated{},
                         {RandomBoxes(DType::kF32, {900, 5}, 80, rng), RandomBoxes(DType::kF32, {700, 5}, 80, rng)});
}

double Measure(Mode mode, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(
      BoxIouRotated{mode}, {HostTensor::Of(DType::kF32, {1, 5}, a), HostTensor::Of(DType::kF32, {1, 5}, b)}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].at(0) : NAN;
}

TEST(BoxIouRotated, KnownPairs) {
  const double quarter = std::acos(-1.0) / 2;
  const std::vector<double> box = {1, 2, 4, 2, 0}, half = {2, 2, 2, 2, 0};
  EXPECT_EQ(Measure(Mode::kIou, box, box), 1);
  EXPECT_EQ(Measure(Mode::kIou, box, half), 0.5);
  EXPECT_EQ(Measure(Mode::kIof, box, half), 0.5);
  EXPECT_EQ(Measure(Mode::kIof, half, box), 1);
  EXPECT_NEAR(Measure(Mode::kIou, box, {1, 2, 4, 2, quarter}), 4.0 / 12, 1e-6);  // a cross
  // The angle rotates x towards y: the long box reaches the other one only with a positive angle.
  EXPECT_GT(Measure(Mode::kIof, {6, 6, 1, 1, 0}, {0, 0, 20, 1, quarter / 2}), 0.5);
  EXPECT_EQ(Measure(Mode::kIof, {6, 6, 1, 1, 0}, {0, 0, 20, 1, -quarter / 2}), 0);
  EXPECT_EQ(Measure(Mode::kIou, {1e6, -1e6, 4, 2, 0.3}, {1e6, -1e6, 4, 2, 0.3}), 1);  // far from the origin
  EXPECT_EQ(Measure(Mode::kIou, {0, 0, 1e-8, 1e-7, 0}, {0, 0, 1e-8, 1e-7, 0}), 0);    // almost no area
}

TEST(BoxIouRotated, InvalidBoxesOverlapNothing) {
  const std::vector<double> box = {0, 0, 4, 2, 0};
  for (size_t k = 0; k < 5; ++k) {
    for (float value : {NAN, INFINITY, -INFINITY}) {
      std::vector<double> other = box;
      other[k] = static_cast<double>(value);
      for (Mode mode : {Mode::kIou, Mode::kIof}) {
        EXPECT_EQ(Measure(mode, box, other), 0) << k << ": " << value;
        EXPECT_EQ(Measure(mode, other, box), 0) << k << ": " << value;
      }
    }
  }
}

TEST(BoxIouRotated, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(BoxIouRotated{}, {f32({3, 4}), f32({3, 5})}, {"'boxes_a'", "expected dimension 1 to be 5, got 4"});
  ExpectError(BoxIouRotated{}, {f32({2, 3, 5}), f32({1, 3, 5})},
              {"'boxes_b'", "expected dimension 0 to be B = 2", "got 1"});
  ExpectError(BoxIouRotated{}, {f32({3, 5}), f32({2, 3, 5})}, {"'boxes_b': expected rank", "got 3"});
  ExpectAttributeError(*FindOp("box_iou_rotated"), {{"mode", AttrValue::String("giou")}},
                       {"'mode': expected one of", "got giou"});
}

}  // namespace
}  // namespace polyop::testing
