// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/points_in_boxes_part/points_in_boxes_part.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

TEST(PointsInBoxesPart, SidesAreOutsideAndTheTopIsInside) {
  // In both boxes, on a side, on the top face, only in the second box, in no box, NaN.
  const HostTensor points = HostTensor::Of(DType::kF32, {1, 6, 3},
                                           {0.25, 0, 0.5, 1, 0, 0.5, 0.25, 0, 1, 0.25, 1.5, 0.5, 9, 9, 9, NAN, 0, 0.5});
  const HostTensor boxes =
      HostTensor::Of(DType::kF32, {1, 2, 7}, {0, 0, 0, 2, 2, 1, 0, 0, 0, 0, 4, 1, 2, 1.5707963267948966});
  std::vector<HostTensor> out;
  ASSERT_TRUE(polyop::testing::Run(PointsInBoxesPart{}, {points, boxes}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, -1, 0, 1, -1, -1}));
}

TEST(PointsInBoxesPart, MatchesReference) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (int round = 0; round < 60; ++round) {
    const DType dtype = kTypes[rng() % 3];
    const int64_t batches = rng() % 4, count = rng() % 40;
    HostTensor points = HostTensor::Uniform(dtype, {batches, static_cast<int64_t>(rng() % 90), 3}, rng, -3, 3);
    HostTensor boxes = HostTensor::Uniform(dtype, {batches, count, 7}, rng, -3, 3);
    const bool upright = rng() % 3 == 0;  // with points exactly on their sides
    for (int64_t i = 0; upright && i < points.size(); ++i) points.set(i, std::floor(points.at(i)));
    for (int64_t i = 0; upright && i < boxes.size(); ++i) boxes.set(i, i % 7 == 6 ? 0 : std::floor(boxes.at(i)));
    SCOPED_TRACE(Concat("round ", round, ": ", batches, " x ", count, " boxes"));
    ExpectMatchesReference(PointsInBoxesPart{}, {points, boxes});
  }
}

TEST(PointsInBoxesPart, ManyPointsInParallel) {
  std::mt19937 rng(2);
  ExpectMatchesReference(PointsInBoxesPart{}, {HostTensor::Uniform(DType::kF32, {2, 9000, 3}, rng, -3, 3),
                                               HostTensor::Uniform(DType::kF32, {2, 21, 7}, rng, -3, 3)});
}

TEST(PointsInBoxesPart, RejectsInvalidInputs) {
  const HostTensor points = HostTensor::Full(DType::kF32, {2, 5, 3}, 1);
  ExpectError(PointsInBoxesPart{}, {points, HostTensor::Full(DType::kF32, {1, 4, 7}, 1)},
              {"'boxes'", "to be B = 2", "(shape [1, 4, 7] for"});
  ExpectError(PointsInBoxesPart{}, {points, HostTensor::Full(DType::kF32, {2, 4, 6}, 1)},
              {"'boxes'", "(shape [2, 4, 6] for"});
  ExpectError(PointsInBoxesPart{}, {points, HostTensor::Full(DType::kF16, {2, 4, 7}, 1)}, {"no kernel takes inputs"});
}

}  // namespace
}  // namespace polyop::testing
