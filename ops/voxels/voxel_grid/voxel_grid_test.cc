// SPDX-License-Identifier: Apache-2.0
#include "ops/voxels/voxel_grid/voxel_grid.h"

#include <cmath>
#include <limits>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

constexpr double kInf = INFINITY;
constexpr double kNoVoxel = static_cast<double>(std::numeric_limits<int64_t>::min());

HostTensor F32(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF32, shape, values);
}

std::vector<double> Voxels(const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> outputs;
  const Status status = Run(VoxelGrid{}, inputs, &outputs);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? outputs[0].ToDoubles() : std::vector<double>{};
}

TEST(VoxelGrid, NumbersVoxelsWithDimensionZeroFastest) {
  const HostTensor pos = F32({4, 2}, {0, 0, 11, 9, 2, 8, 2, 2});
  EXPECT_EQ(Voxels({pos, F32({2}, {5, 5}), HostTensor::Absent(), HostTensor::Absent()}),
            (std::vector<double>{0, 5, 3, 0}));  // 3 x 2 voxels
  EXPECT_EQ(Voxels({pos, F32({2}, {5, 5}), F32({2}, {-5, 0}), F32({2}, {14, 9})}),
            (std::vector<double>{1, 7, 5, 1}));  // 4 x 2 voxels
}

TEST(VoxelGrid, PointsOutsideGetTheResultOfTheFormula) {
  const HostTensor pos = F32({4, 2}, {-0.5, 0, -7, 0, 30, 0, 0, 12});
  EXPECT_EQ(Voxels({pos, F32({2}, {1, 1}), F32({2}, {0, 0}), F32({2}, {9, 9})}), (std::vector<double>{0, -7, 30, 120}));
}

TEST(VoxelGrid, NanAndInfinityGetTheLowestInteger) {
  std::vector<double> values(40 * 3, 0.5), expected(40, 0);
  values[3 * 7] = NAN;
  values[3 * 20 + 1] = kInf;
  values[3 * 39 + 2] = -kInf;
  values[0] = 3.5;
  values[3] = 3e38;  // finite, but its number does not fit
  expected[7] = expected[20] = expected[39] = expected[1] = kNoVoxel;
  expected[0] = 3;
  const HostTensor size = F32({3}, {1, 1, 1});
  EXPECT_EQ(Voxels({F32({40, 3}, values), size, F32({3}, {0, 0, 0}), F32({3}, {4, 4, 4})}), expected);
  values[3] = 0.5;  // the bounds are computed from finite coordinates only: 0.5 to 3.5
  expected[1] = 0;
  EXPECT_EQ(Voxels({F32({40, 3}, values), size, HostTensor::Absent(), HostTensor::Absent()}), expected);
  EXPECT_EQ(Voxels({F32({2, 1}, {NAN, kInf}), F32({1}, {1}), HostTensor::Absent(), HostTensor::Absent()}),
            (std::vector<double>{kNoVoxel, kNoVoxel}));
}

TEST(VoxelGrid, EmptyInputs) {
  EXPECT_EQ(Voxels({F32({0, 3}, {}), F32({3}, {1, 1, 1}), HostTensor::Absent(), HostTensor::Absent()}).size(), 0u);
  EXPECT_EQ(Voxels({F32({3, 0}, {}), F32({0}, {}), HostTensor::Absent(), HostTensor::Absent()}),
            (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(Voxels({F32({0, 1}, {}), F32({1}, {1}), F32({1}, {5}), HostTensor::Absent()}).size(), 0u);
}

class VoxelGridRandom : public ::testing::TestWithParam<DType> {};

TEST_P(VoxelGridRandom, MatchesReference) {
  std::mt19937 rng(7);
  for (int round = 0; round < Rounds(100); ++round) {
    const int64_t points = rng() % 5 == 0 ? rng() % 3000 : rng() % 70, dims = 1 + rng() % 6;
    HostTensor pos = HostTensor::Uniform(GetParam(), {points, dims}, rng, -20, 20);
    const HostTensor size = HostTensor::Uniform(GetParam(), {dims}, rng, 0.1, 6);
    HostTensor start, end;
    if (rng() % 2) start = HostTensor::Uniform(GetParam(), {dims}, rng, -22, -10);
    if (rng() % 2) end = HostTensor::Uniform(GetParam(), {dims}, rng, 10, 22);
    const std::vector<double> odd = {NAN, kInf, -kInf, 1e30, -1e30, -20.5, 0, -0.0};
    for (int k = 0; pos.size() > 0 && k < static_cast<int>(rng() % 4); ++k) {
      pos.set(static_cast<int64_t>(rng() % static_cast<uint64_t>(pos.size())),
              odd[rng() % (start.present() && end.present() ? 8 : 3)]);
    }
    SCOPED_TRACE(Concat("round ", round, ": ", points, " points of ", dims, " dimensions"));
    ExpectMatchesReference(VoxelGrid{}, {pos, size, start, end});
  }
}

TEST_P(VoxelGridRandom, ManyPointsOfAWideGrid) {
  std::mt19937 rng(8);
  for (int64_t dims : {1, 2, 3, 4, 5}) {
    const HostTensor pos = HostTensor::Uniform(GetParam(), {50001, dims}, rng, -100, 100);
    // Voxel numbers fit in 31 bits for up to three dimensions, but not for more.
    ExpectMatchesReference(VoxelGrid{}, {pos, HostTensor::Full(GetParam(), {dims}, 0.25), {}, {}});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, VoxelGridRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(VoxelGrid, RejectsInvalidInputs) {
  const HostTensor pos = F32({2, 2}, {0, 0, 1, 1}), one = F32({2}, {1, 1}), none;
  const auto error = [&](const HostTensor& size, const HostTensor& start, const HostTensor& end,
                         const std::vector<std::string>& parts) {
    ExpectError(VoxelGrid{}, {pos, size, start, end}, parts);
  };
  error(F32({2}, {1, 0}), none, none, {"'size'[1]: expected a positive finite number, got 0"});
  error(F32({2}, {-1, 1}), none, none, {"'size'[0]: expected a positive finite number, got -1"});
  error(F32({2}, {NAN, 1}), none, none, {"'size'[0]: expected a positive finite number, got nan"});
  error(F32({2}, {1, kInf}), none, none, {"'size'[1]: expected a positive finite number, got inf"});
  error(F32({3}, {1, 1, 1}), none, none, {"'size'", "[3]", "D = 2"});
  error(one, F32({2}, {0, NAN}), none, {"'start'[1]: expected a finite number, got nan"});
  error(one, none, F32({2}, {kInf, 1}), {"'end'[0]: expected a finite number, got inf"});
  error(one, F32({2}, {0, 3}), F32({2}, {1, 2}), {"'end'[1]: expected at least start = 3, got 2"});
  error(one, F32({1}, {0}), none, {"'start'"});
  error(F32({2}, {1e-12, 1e-12}), none, none, {"'size'[1]: expected a number of voxels", "that fits in 64 bits"});
  error(F32({2}, {1e-38, 1}), none, none, {"'size'[0]: expected a number of voxels", "that fits in 64 bits"});
  error(one, F32({2}, {-3e38, 0}), F32({2}, {3e38, 0}), {"that fits in 64 bits"});
  ExpectError(VoxelGrid{}, {F32({4}, {0, 0, 0, 0}), one, none, none}, {"'pos': expected rank 2, got 1"});
  ExpectError(VoxelGrid{}, {pos, HostTensor::Full(DType::kF16, {2}, 1)}, {"no kernel takes inputs"});
}

TEST(VoxelGrid, SameAtAnyAlignment) {
  std::mt19937 rng(5);
  const HostTensor start = HostTensor::Full(DType::kF32, {3}, 0), end = HostTensor::Full(DType::kF32, {3}, 50);
  // Some points lie outside of the grid.
  ExpectSameAtAnyAlignment(VoxelGrid{}, {HostTensor::Uniform(DType::kF32, {600001, 3}, rng, -0.01, 50.01),
                                         HostTensor::Full(DType::kF32, {3}, 0.5), start, end});
}

}  // namespace
}  // namespace polyop::testing
