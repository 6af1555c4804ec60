// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/box_iou_quadri/box_iou_quadri.h"

#include <cmath>

#include "testing/random_quadrilaterals.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = BoxIouQuadri::Mode;

class BoxIouQuadriTest : public ::testing::TestWithParam<DType> {};

TEST_P(BoxIouQuadriTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(30); ++round) {
    const int64_t rows = rng() % 40, columns = rng() % 70;
    const double extent = rng() % 2 ? 6 : 40;
    SCOPED_TRACE(Concat("round ", round, ": ", rows, " x ", columns, ", extent ", extent));
    ExpectMatchesReference(BoxIouQuadri{static_cast<Mode>(round % 2)},
                           {RandomQuadrilaterals(GetParam(), {rows, 8}, extent, rng),
                            RandomQuadrilaterals(GetParam(), {columns, 8}, extent, rng)},
                           ToleranceFor(GetParam()));
  }
}

TEST_P(BoxIouQuadriTest, BatchesDoNotMix) {
  std::mt19937 rng(2);
  for (int round = 0; round < Rounds(12); ++round) {
    const int64_t batches = rng() % 5, rows = rng() % 9, columns = rng() % 2 ? 1 : rng() % 20;
    SCOPED_TRACE(Concat("round ", round, ": ", batches, " x ", rows, " x ", columns));
    ExpectMatchesReference(BoxIouQuadri{static_cast<Mode>(round % 2)},
                           {RandomQuadrilaterals(GetParam(), {batches, rows, 8}, 8, rng),
                            RandomQuadrilaterals(GetParam(), {batches, columns, 8}, 8, rng)},
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BoxIouQuadriTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

double Measure(Mode mode, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(
      BoxIouQuadri{mode}, {HostTensor::Of(DType::kF32, {1, 8}, a), HostTensor::Of(DType::kF32, {1, 8}, b)}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].at(0) : NAN;
}

TEST(BoxIouQuadri, KnownPairs) {
  using Row = std::vector<double>;
  const Row square = {0, 0, 4, 0, 4, 4, 0, 4}, backwards = {0, 0, 0, 4, 4, 4, 4, 0}, half = {2, 0, 4, 0, 4, 4, 2, 4};
  const Row triangle = {0, 0, 4, 0, 2, 2, 0, 4};  // a corner on a side
  const Row kite = {2, -2, 6, 2, 2, 6, -2, 2};
  EXPECT_EQ(Measure(Mode::kIou, square, square), 1);
  EXPECT_EQ(Measure(Mode::kIou, square, backwards), 1);
  EXPECT_EQ(Measure(Mode::kIou, square, half), 0.5);
  EXPECT_EQ(Measure(Mode::kIof, square, half), 0.5);
  EXPECT_EQ(Measure(Mode::kIof, half, backwards), 1);
  EXPECT_EQ(Measure(Mode::kIof, square, triangle), 0.5);
  EXPECT_EQ(Measure(Mode::kIou, triangle, square), 0.5);
  EXPECT_EQ(Measure(Mode::kIof, kite, square), 0.5);
  EXPECT_EQ(Measure(Mode::kIou, square, {4, 0, 8, 0, 8, 4, 4, 4}), 0);  // a shared side
  EXPECT_EQ(Measure(Mode::kIou, {1e6, 1e6, 1e6 + 4, 1e6, 1e6 + 4, 1e6 + 4, 1e6, 1e6 + 4},
                    {1e6 + 2, 1e6, 1e6 + 4, 1e6, 1e6 + 4, 1e6 + 4, 1e6 + 2, 1e6 + 4}),
            0.5);
}

TEST(BoxIouQuadri, UsesTheConvexHull) {
  const std::vector<double> square = {0, 0, 4, 0, 4, 4, 0, 4};
  EXPECT_EQ(Measure(Mode::kIou, square, {0, 0, 4, 4, 4, 0, 0, 4}), 1);    // crossing sides
  EXPECT_EQ(Measure(Mode::kIou, {0, 0, 4, 0, 1, 1, 0, 4}, square), 0.5);  // a reflex corner
  EXPECT_EQ(Measure(Mode::kIof, square, {0, 0, 4, 0, 4, 4, 4, 4}), 0.5);  // two equal corners
}

TEST(BoxIouQuadri, DegenerateQuadrilateralsOverlapNothing) {
  const std::vector<double> square = {0, 0, 4, 0, 4, 4, 0, 4};
  const std::vector<std::vector<double>> others = {
      {1, 1, 3, 1, 2, 1, 1, 1},                      // a line
      {1, 1, 1 + 1e-8, 1, 1 + 1e-8, 1 + 1e-8, 1, 1}  // no area in fp32
  };
  for (const auto& other : others) {
    for (Mode mode : {Mode::kIou, Mode::kIof}) {
      EXPECT_EQ(Measure(mode, square, other), 0);
      EXPECT_EQ(Measure(mode, other, square), 0);
    }
  }
  for (size_t k = 0; k < 8; ++k) {
    for (float value : {NAN, INFINITY, -INFINITY}) {
      std::vector<double> other = square;
      other[k] = static_cast<double>(value);
      EXPECT_EQ(Measure(Mode::kIou, square, other), 0) << k << ": " << value;
      EXPECT_EQ(Measure(Mode::kIof, other, square), 0) << k << ": " << value;
    }
  }
}

TEST(BoxIouQuadri, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(BoxIouQuadri{}, {f32({3, 5}), f32({3, 8})}, {"'boxes_a'", "expected dimension 1 to be 8, got 5"});
  ExpectError(BoxIouQuadri{}, {f32({2, 3, 8}), f32({1, 3, 8})},
              {"'boxes_b'", "expected dimension 0 to be B = 2", "got 1"});
  ExpectAttributeError(*FindOp("box_iou_quadri"), {{"mode", AttrValue::String("giou")}},
                       {"'mode': expected one of", "got giou"});
}

}  // namespace
}  // namespace polyop::testing
