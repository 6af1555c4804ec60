// SPDX-License-Identifier: Apache-2.0
#include "ops/sorting/find_indices/find_indices.h"

#include <cmath>

#include "core/elements.h"
#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = FindIndices::Mode;

// Small integers, of which many are 0 or equal their predecessors.
HostTensor Few(DType dtype, const Shape& shape, std::mt19937& rng, double zeros) {
  HostTensor x = HostTensor::Full(dtype, shape, 0);
  std::uniform_real_distribution<double> chance(0, 1);
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, chance(rng) < zeros ? 0 : 1);
  for (int64_t i = 5; IsReal(dtype) && i < x.size(); i += 1 + i / 3) x.set(i, NAN);  // next to each other at first
  return x;
}

class FindIndicesTest : public ::testing::TestWithParam<DType> {};

TEST_P(FindIndicesTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Mode mode : {Mode::kNonZero, Mode::kRunStarts}) {
    for (const Shape& shape : {Shape{0}, Shape{1}, Shape{63}, Shape{64}, Shape{65}, Shape{130, 7}, Shape{3, 0, 2},
                               Shape{2, 3, 5, 1, 4}, Shape{40000}, Shape{300, 2, 70}, Shape{}}) {
      for (const double zeros : {0.0, 0.5, 0.99, 1.0}) {
        const HostTensor x = Few(GetParam(), shape, rng, zeros);
        for (const int64_t dimensions : {1, 2, 3, 6}) {
          SCOPED_TRACE(Concat(ToString(shape), ", zeros ", zeros, ", dimensions ", dimensions));
          ExpectMatchesReference(FindIndices{.mode = mode, .dimensions = dimensions}, {x});
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, FindIndicesTest,
                         ::testing::Values(DType::kBool, DType::kU8, DType::kI32, DType::kI64, DType::kF32,
                                           DType::kF64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<double> Indices(const FindIndices& op, const HostTensor& x) {
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(op, {x}, &out).ok());
  return out[0].ToDoubles();
}

TEST(FindIndices, KnownValues) {
  const HostTensor x = HostTensor::Of(DType::kF32, {2, 3}, {0, 2, -0.0, NAN, NAN, 5});
  EXPECT_EQ(Indices({.dimensions = 2}, x), (std::vector<double>{0, 1, 1, 0, 1, 1, 1, 2}));
  EXPECT_EQ(Indices({}, x), (std::vector<double>{1, 3, 4, 5}));
  EXPECT_EQ(Indices({.mode = Mode::kRunStarts}, x), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Indices({.mode = Mode::kRunStarts}, HostTensor::Of(DType::kF64, {5}, {0, -0.0, 3, 3, 0})),
            (std::vector<double>{0, 2, 4}));
  EXPECT_EQ(Indices({.dimensions = 3}, HostTensor::Of(DType::kI64, {2}, {0, int64_t{1} << 40})),
            (std::vector<double>{0, 0, 1}));
}

TEST(FindIndices, SameAtAnyAlignment) {
  std::mt19937 rng(2);
  ExpectSameAtAnyAlignment(FindIndices{.dimensions = 2}, {Few(DType::kI32, {30, 100}, rng, 0.5)});
}

TEST(FindIndices, RejectsInvalidAttributes) {
  ExpectAttributeError(*FindOp("find_indices"), {{"dimensions", AttrValue::Int(0)}}, {"'dimensions'"});
}

}  // namespace
}  // namespace polyop::testing
