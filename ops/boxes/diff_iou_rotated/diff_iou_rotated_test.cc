// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/diff_iou_rotated/diff_iou_rotated.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Boxes [B, N, 2 * dimensions + 1] near each other; some have a negative size or none. On a lattice, sides coincide.
HostTensor RandomBoxes(DType type, const Shape& shape, bool lattice, std::mt19937& rng) {
  HostTensor boxes = HostTensor::Uniform(type, shape, rng, 0, 4);
  const int64_t columns = shape[2], dimensions = columns / 2;
  for (int64_t i = 0; i < boxes.size(); ++i) {
    const int64_t k = i % columns;
    if (lattice) boxes.set(i, k < 2 * dimensions ? std::ceil(boxes.at(i)) : 0.0);
    if (!lattice && k == 2 * dimensions) boxes.set(i, boxes.at(i) * 3 - 6);
    if (k >= dimensions && k < 2 * dimensions && rng() % 40 == 0) boxes.set(i, rng() % 2 ? 0 : -boxes.at(i));
  }
  return boxes;
}

class DiffIouRotatedTest : public ::testing::TestWithParam<DType> {};

TEST_P(DiffIouRotatedTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(20); ++round) {
    const int64_t dimensions = 2 + round % 2;
    const Shape shape = {static_cast<int64_t>(rng() % 3), static_cast<int64_t>(rng() % 300), 2 * dimensions + 1};
    const bool lattice = rng() % 3 == 0;
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(shape), lattice ? ", lattice" : ""));
    ExpectMatchesReference(DiffIouRotated{dimensions},
                           {RandomBoxes(GetParam(), shape, lattice, rng), RandomBoxes(GetParam(), shape, lattice, rng)},
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DiffIouRotatedTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

double Iou(const std::vector<double>& a, const std::vector<double>& b) {
  const auto columns = static_cast<int64_t>(a.size());
  std::vector<HostTensor> out;
  const Status status = testing::Run(
      DiffIouRotated{columns / 2},
      {HostTensor::Of(DType::kF32, {1, 1, columns}, a), HostTensor::Of(DType::kF32, {1, 1, columns}, b)}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].at(0) : NAN;
}

TEST(DiffIouRotated, KnownPairs) {
  const double quarter = std::acos(-1.0) / 2;
  const std::vector<double> box = {1, 2, 4, 2, 0};
  EXPECT_EQ(Iou(box, box), 1);
  EXPECT_EQ(Iou({1, 2, 4, 2, 0.7}, {1, 2, 4, 2, 0.7}), 1);
  EXPECT_EQ(Iou(box, {2, 2, 2, 2, 0}), 0.5);      // inside, three sides coincide
  EXPECT_EQ(Iou(box, {1, 2, 1, 1, 0.3}), 0.125);  // inside
  EXPECT_EQ(Iou({1, 2, 1, 1, 0.3}, box), 0.125);
  EXPECT_EQ(Iou(box, {5, 2, 4, 2, 0}), 0);  // touches a side
  EXPECT_EQ(Iou(box, {5, 4, 4, 2, 0}), 0);  // touches a corner
  EXPECT_EQ(Iou(box, {50, 2, 4, 2, 1}), 0);
  EXPECT_NEAR(Iou(box, {1, 2, 4, 2, quarter}), 4.0 / 12, 1e-6);  // a cross
  EXPECT_NEAR(Iou(box, {1, 2, 2, 4, quarter}), 1, 1e-6);         // the same rectangle
  EXPECT_NEAR(Iou(box, {1, 2, 4, 2, 2 * quarter}), 1, 1e-6);
  EXPECT_NEAR(Iou(box, {1, 2, 4, 2, 1e-6}), 1, 1e-5);  // sides that are almost parallel
  EXPECT_NEAR(Iou({0, 0, 2, 2, 0}, {0, 0, 2, 2, quarter / 2}), 1 / std::sqrt(2.0), 1e-6);  // an octagon
  EXPECT_EQ(Iou({1e6, -1e6, 4, 2, 0.25}, {1e6, -1e6, 4, 2, 0.25}), 1);
  // The angle rotates x towards y: the long box reaches the other one only with a positive angle.
  EXPECT_GT(Iou({6, 6, 1, 1, 0}, {0, 0, 20, 1, quarter / 2}), 0.03);
  EXPECT_EQ(Iou({6, 6, 1, 1, 0}, {0, 0, 20, 1, -quarter / 2}), 0);
}

TEST(DiffIouRotated, BoxesOfThreeDimensions) {
  const std::vector<double> box = {1, 2, 3, 4, 2, 6, 0.5};
  EXPECT_EQ(Iou(box, box), 1);
  EXPECT_NEAR(Iou(box, {1, 2, 6, 4, 2, 6, 0.5}), 1.0 / 3, 1e-6);  // half of the length
  EXPECT_EQ(Iou(box, {1, 2, 9, 4, 2, 6, 0.5}), 0);                // touches
  EXPECT_EQ(Iou(box, {1, 2, 30, 4, 2, 6, 0.5}), 0);
  EXPECT_NEAR(Iou(box, {1, 2, 3, 4, 2, 3, 0.5}), 0.5, 1e-6);  // inside
}

TEST(DiffIouRotated, DegenerateBoxes) {
  const std::vector<double> box = {1, 2, 4, 2, 0.3};
  EXPECT_EQ(Iou(box, {1, 2, 0, 2, 0.3}), 0);
  EXPECT_TRUE(std::isnan(Iou({0, 0, 0, 2, 0}, {0, 0, 3, 0, 0})));  // both have no area
  for (size_t k = 0; k < 5; ++k) {
    for (float value : {NAN, INFINITY, -INFINITY}) {
      std::vector<double> other = box;
      other[k] = static_cast<double>(value);
      EXPECT_TRUE(std::isnan(Iou(box, other))) << k << ": " << value;
      EXPECT_TRUE(std::isnan(Iou(other, box))) << k << ": " << value;
    }
  }
}

TEST(DiffIouRotated, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(DiffIouRotated{2}, {f32({2, 3, 7}), f32({2, 3, 7})}, {"'boxes_a'", "expected dimension 2", "5, got 7"});
  ExpectError(DiffIouRotated{3}, {f32({2, 3, 7}), f32({2, 4, 7})},
              {"'boxes_b'", "expected dimension 1 to be N = 3", "got 4"});
  ExpectAttributeError(*FindOp("diff_iou_rotated"), {{"dimensions", AttrValue::Int(4)}},
                       {"'dimensions': expected", "got 4"});
}

}  // namespace
}  // namespace polyop::testing
