// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/diff_iou_rotated/diff_iou_rotated_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

DiffIouRotatedBackward Backward(int64_t dimensions) {
  DiffIouRotatedBackward op;
  op.dimensions = dimensions;
  return op;
}

// Boxes whose coordinates are multiples of 2^-8, in all types of elements: otherwise the gradient of boxes with almost
// coinciding sides depends on rounding errors. On a lattice, sides coincide.
HostTensor RandomBoxes(DType type, const Shape& shape, bool lattice, std::mt19937& rng) {
  HostTensor boxes = HostTensor::Full(type, shape, 0);
  const int64_t columns = shape[2], dimensions = columns / 2;
  for (int64_t i = 0; i < boxes.size(); ++i) {
    const int64_t k = i % columns;
    const double value = 0.25 + static_cast<double>(rng() % 900) / 256;
    boxes.set(i, !lattice ? value : k < 2 * dimensions ? std::ceil(value) : 0.0);
    if (k >= dimensions && k < 2 * dimensions && rng() % 40 == 0) boxes.set(i, rng() % 2 ? 0 : -boxes.at(i));
  }
  return boxes;
}

std::vector<HostTensor> Inputs(DType type, int64_t batch, int64_t pairs, int64_t dimensions, bool lattice,
                               std::mt19937& rng) {
  const Shape shape = {batch, pairs, 2 * dimensions + 1};
  return {HostTensor::Uniform(type, {batch, pairs}, rng), RandomBoxes(type, shape, lattice, rng),
          RandomBoxes(type, shape, lattice, rng)};
}

class DiffIouRotatedBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(DiffIouRotatedBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(20); ++round) {
    const int64_t dimensions = 2 + round % 2, batch = 1 + rng() % 3, pairs = 1 + rng() % 200;
    const bool lattice = rng() % 3 == 0;
    SCOPED_TRACE(Concat("round ", round, ": ", batch, " x ", pairs, ", ", dimensions, lattice ? ", lattice" : ""));
    ExpectAllMasksMatchReference(Backward(dimensions), Inputs(GetParam(), batch, pairs, dimensions, lattice, rng), 2,
                                 ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DiffIouRotatedBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

using Row = std::vector<double>;

// Returns the gradients of a pair, those of the first box before those of the second one.
Row Gradients(const Row& a, const Row& b, double grad = 1) {
  const auto columns = static_cast<int64_t>(a.size());
  std::vector<HostTensor> out;
  EXPECT_TRUE(
      testing::Run(Backward(columns / 2),
                   {HostTensor::Of(DType::kF32, {1, 1}, {grad}), HostTensor::Of(DType::kF32, {1, 1, columns}, a),
                    HostTensor::Of(DType::kF32, {1, 1, columns}, b)},
                   &out)
          .ok());
  Row row = out[0].ToDoubles();
  const Row second = out[1].ToDoubles();
  row.insert(row.end(), second.begin(), second.end());
  return row;
}

// Compares with differences of the operator, in float: the steps are large.
TEST(DiffIouRotatedBackward, MatchesDifferences) {
  std::mt19937 rng(2);
  for (const int64_t dimensions : {2, 3}) {
    const std::vector<HostTensor> inputs = Inputs(DType::kF32, 1, 60, dimensions, false, rng);
    std::vector<HostTensor> grads;
    ASSERT_TRUE(testing::Run(Backward(dimensions), inputs, &grads).ok());
    const int64_t columns = 2 * dimensions + 1;
    int compared = 0;
    for (size_t box = 0; box < 2; ++box) {
      for (int64_t i = 0; i < inputs[1].size(); ++i) {
        constexpr double kStep = 0x1p-11;
        const auto iou_at = [&](double step) {
          std::vector<HostTensor> boxes = {inputs[1], inputs[2]}, iou;
          boxes[box].set(i, boxes[box].at(i) + step);
          EXPECT_TRUE(testing::Run(DiffIouRotated{dimensions}, boxes, &iou).ok());
          return iou[0].at(i / columns);
        };
        const double here = iou_at(0), up = iou_at(kStep), down = iou_at(-kStep);
        if (std::fabs(up - 2 * here + down) > 1e-5) continue;  // a corner passes a side
        ++compared;
        EXPECT_NEAR(grads[box].at(i), (up - down) / (2 * kStep) * inputs[0].at(i / columns), 2e-3)
            << "box " << box << ", element " << i;
      }
    }
    EXPECT_GT(compared, inputs[1].size());  // most of both
  }
}

TEST(DiffIouRotatedBackward, KnownGradients) {
  // Boxes of 4 x 2 with an intersection of 2 x 2: IoU = I / (16 - I), so its derivative by I is 16 / 12^2.
  const double slope = 16.0 / 144;
  const Row row = Gradients({0, 0, 4, 2, 0}, {2, 0, 4, 2, 0}, 3);
  const double by_volume = -3 * (4.0 / 12) / 12;
  EXPECT_NEAR(row[0], 3 * slope * 2, 1e-6);  // moves the right side
  EXPECT_NEAR(row[5], -3 * slope * 2, 1e-6);
  EXPECT_NEAR(row[2], 3 * slope * 1 + by_volume * 2, 1e-6);  // widens to the right by one half
  // Both boxes bound the intersection above and below: each has half of the gradient.
  EXPECT_NEAR(row[3], 3 * slope * 1 + by_volume * 4, 1e-6);
  EXPECT_EQ(row[1], 0);
  EXPECT_EQ(row[4], 0);
}

TEST(DiffIouRotatedBackward, EqualBoxes) {
  // The intersection and the union change by half of what a box changes.
  const Row row = Gradients({1, 2, 4, 2, 0.7}, {1, 2, 4, 2, 0.7});
  for (const double value : row) EXPECT_NEAR(value, 0, 1e-6);
  const Row solid = Gradients({1, 2, 3, 4, 2, 5, 0.7}, {1, 2, 3, 4, 2, 5, 0.7});
  for (const double value : solid) EXPECT_NEAR(value, 0, 1e-6);
}

TEST(DiffIouRotatedBackward, BoxesWithoutIntersection) {
  for (const Row& other : {Row{4, 0, 4, 2, 0}, Row{4, 2, 4, 2, 0}, Row{40, 0, 4, 2, 1}, Row{0, 0, 0, 2, 0}}) {
    for (const double value : Gradients({0, 0, 4, 2, 0}, other)) EXPECT_EQ(value, 0);
  }
}

TEST(DiffIouRotatedBackward, NanStaysInItsPair) {
  std::mt19937 rng(3);
  const std::vector<HostTensor> inputs = Inputs(DType::kF32, 1, 12, 2, false, rng);
  std::vector<HostTensor> clean, got;
  ASSERT_TRUE(testing::Run(Backward(2), inputs, &clean).ok());
  std::vector<HostTensor> broken = inputs;
  broken[0].set(2, NAN);
  broken[1].set(5 * 4, INFINITY);
  broken[2].set(5 * 7 + 4, NAN);
  ExpectMatchesReference(Backward(2), broken);
  ASSERT_TRUE(testing::Run(Backward(2), broken, &got).ok());
  for (size_t box = 0; box < 2; ++box) {
    for (int64_t i = 0; i < got[box].size(); ++i) {
      const int64_t pair = i / 5;
      if (pair == 2 || pair == 4 || pair == 7) {
        EXPECT_TRUE(std::isnan(got[box].at(i))) << pair;
      } else {
        EXPECT_EQ(got[box].at(i), clean[box].at(i)) << pair;
      }
    }
  }
}

TEST(DiffIouRotatedBackward, OnlyRequestedGradients) {
  std::mt19937 rng(4);
  ExpectOnlyRequestedGradients(Backward(3), Inputs(DType::kF32, 2, 9, 3, false, rng), 2);
}

TEST(DiffIouRotatedBackward, EmptyInputs) {
  std::mt19937 rng(5);
  ExpectMatchesReference(Backward(2), Inputs(DType::kF32, 0, 4, 2, false, rng));
  ExpectMatchesReference(Backward(3), Inputs(DType::kF32, 2, 0, 3, false, rng));
}

TEST(DiffIouRotatedBackward, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(Backward(2), {f32({2, 4}), f32({2, 3, 5}), f32({2, 3, 5})},
              {"'boxes_a'", "expected dimension 1 to be N = 4", "got 3"});
}

}  // namespace
}  // namespace polyop::testing
