// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/active_rotated_filter/active_rotated_filter.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class ActiveRotatedFilterTest : public ::testing::TestWithParam<std::tuple<DType, DType>> {};

// Each rotation permutes the entries, or maps them at random: then some positions stay 0 and others have several
// sources.
HostTensor RandomIndices(DType type, const Shape& shape, bool permutation, std::mt19937& rng) {
  HostTensor indices(type, shape);
  const int64_t rotations = shape[3], entries = indices.size() / std::max<int64_t>(rotations, 1);
  std::vector<int64_t> order(static_cast<size_t>(entries));
  for (int64_t r = 0; r < rotations; ++r) {
    std::iota(order.begin(), order.end(), 1);
    std::shuffle(order.begin(), order.end(), rng);
    for (int64_t e = 0; e < entries; ++e) {
      const int64_t anywhere = 1 + static_cast<int64_t>(rng() % static_cast<uint64_t>(entries));
      indices.set(e * rotations + r, static_cast<double>(permutation ? order[static_cast<size_t>(e)] : anywhere));
    }
  }
  return indices;
}

TEST_P(ActiveRotatedFilterTest, MatchesReference) {
  const auto [type, index_type] = GetParam();
  std::mt19937 rng(1);
  for (const Shape& indices : {Shape{8, 3, 3, 8}, Shape{1, 3, 3, 4}, Shape{2, 1, 5, 1}, Shape{1, 1, 1, 3}}) {
    for (const auto& [filters, planes] : {std::pair{5, 7}, std::pair{1, 1}, std::pair{40, 33}}) {
      for (bool permutation : {true, false}) {
        SCOPED_TRACE(Concat(ToString(indices), ", ", filters, " x ", planes));
        ExpectMatchesReference(ActiveRotatedFilter{},
                               {HostTensor::Uniform(type, {filters, planes, indices[0], indices[1], indices[2]}, rng),
                                RandomIndices(index_type, indices, permutation, rng)});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ActiveRotatedFilterTest,
                         ::testing::Combine(::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                                            ::testing::Values(DType::kI32, DType::kI64)),
                         [](const auto& test) {
                           return Concat(NameOf(std::get<0>(test.param)), "_", NameOf(std::get<1>(test.param)));
                         });

TEST(ActiveRotatedFilter, KnownIndices) {
  const HostTensor filter = HostTensor::Of(DType::kF32, {1, 1, 1, 1, 3}, {5, NAN, 7});
  const HostTensor indices = HostTensor::Of(DType::kI32, {1, 1, 3, 2}, {3, 2, 1, 1, 2, 2});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(ActiveRotatedFilter{}, {filter, indices}, &out).ok());
  ASSERT_EQ(out[0].shape(), (Shape{2, 1, 1, 3}));
  EXPECT_TRUE(std::isnan(out[0].at(0)));
  EXPECT_EQ(out[0].at(1), 7);
  EXPECT_EQ(out[0].at(2), 5);
  EXPECT_TRUE(std::isnan(out[0].at(3)));
  EXPECT_EQ(out[0].at(4), 7);  // the last of two sources
  EXPECT_EQ(out[0].at(5), 0);  // no source
}

TEST(ActiveRotatedFilter, EmptyInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  const auto indices = [](const Shape& shape) { return HostTensor::Full(DType::kI64, shape, 1); };
  ExpectMatchesReference(ActiveRotatedFilter{}, {f32({0, 3, 1, 3, 3}), indices({1, 3, 3, 2})});
  ExpectMatchesReference(ActiveRotatedFilter{}, {f32({2, 3, 1, 3, 3}), indices({1, 3, 3, 0})});
  ExpectMatchesReference(ActiveRotatedFilter{}, {f32({2, 3, 0, 3, 3}), indices({0, 3, 3, 2})});
}

TEST(ActiveRotatedFilter, RejectsInvalidInputs) {
  const HostTensor filter = HostTensor::Full(DType::kF32, {2, 2, 1, 1, 2}, 1);
  const auto make_indices = [](const Shape& shape, double last) {
    HostTensor indices = HostTensor::Full(DType::kI32, shape, 1);
    indices.set(indices.size() - 1, last);
    return indices;
  };
  for (double last : {0.0, 3.0, -1.0}) {
    ExpectError(ActiveRotatedFilter{}, {filter, make_indices({1, 1, 2, 1}, last)},
                {Concat("'indices'[0, 0, 1, 0]: expected an index in [1, 2], got ", last)});
  }
  ExpectError(ActiveRotatedFilter{}, {filter, make_indices({1, 1, 3, 1}, 1)},
              {"'indices'", "expected dimension 2 to be W = 2", "got 3"});
  ExpectError(ActiveRotatedFilter{}, {filter, make_indices({2, 1, 2, 1}, 1)},
              {"'indices'", "expected dimension 0 to be A = 1", "got 2"});
}

}  // namespace
}  // namespace polyop::testing
