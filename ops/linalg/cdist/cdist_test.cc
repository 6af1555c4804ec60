// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg/cdist/cdist.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class CdistTest : public ::testing::TestWithParam<DType> {
 protected:
  Tolerance tolerance() const { return GetParam() == DType::kF64 ? Tolerance{1e-12, 1e-12} : Tolerance{2e-6, 2e-6}; }
};

TEST_P(CdistTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const float p : {0.0f, 0.5f, 1.0f, 1.7f, 2.0f, 3.0f, 4.0f, 5.0f, INFINITY}) {
    for (const auto& [rows, others] : {std::pair(1, 1), {5, 3}, {40, 2}, {2, 40}, {17, 33}, {0, 4}, {4, 0}}) {
      for (const int64_t size : {0, 1, 3, 65}) {
        SCOPED_TRACE(Concat("p ", p, ", ", rows, " x ", others, " x ", size));
        const HostTensor a = HostTensor::Uniform(GetParam(), {2, rows, size}, rng, -2, 2);
        const HostTensor b = HostTensor::Uniform(GetParam(), {2, others, size}, rng, -2, 2);
        ExpectMatchesReference(Cdist{.p = p}, {a, b}, tolerance());
        ExpectMatchesReference(Cdist{.p = p, .condensed = 1}, {a, a}, tolerance());
      }
    }
  }
}

TEST_P(CdistTest, CondensedRowsOfSeveralTiles) {
  std::mt19937 rng(2);
  for (const int64_t rows : {2, 15, 16, 17, 32, 49, 100}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), {rows, 7}, rng, -2, 2);
    for (const float p : {1.0f, 2.0f}) ExpectMatchesReference(Cdist{.p = p, .condensed = 1}, {a, a}, tolerance());
  }
}

TEST_P(CdistTest, NanAndInfinities) {
  const HostTensor a =
      HostTensor::Of(GetParam(), {7, 2}, {0, 0, NAN, 1, 1, NAN, INFINITY, 1, -INFINITY, 2, 3, INFINITY, -0.0, 0});
  for (const float p : {0.0f, 0.5f, 1.0f, 2.0f, 2.5f, 3.0f, INFINITY}) {
    SCOPED_TRACE(p);
    ExpectMatchesReference(Cdist{.p = p}, {a, a}, tolerance());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CdistTest, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Cdist, KnownValues) {
  const HostTensor a = HostTensor::Of(DType::kF32, {3, 2}, {0, 0, 3, 4, 3, 0});
  const auto distances = [&](float p, int64_t condensed) {
    std::vector<HostTensor> out;
    EXPECT_TRUE(testing::Run(Cdist{.p = p, .condensed = condensed}, {a, a}, &out).ok());
    return out[0].ToDoubles();
  };
  EXPECT_EQ(distances(2, 1), (std::vector<double>{5, 3, 4}));
  EXPECT_EQ(distances(1, 1), (std::vector<double>{7, 3, 4}));
  EXPECT_EQ(distances(0, 1), (std::vector<double>{2, 1, 1}));
  EXPECT_EQ(distances(INFINITY, 1), (std::vector<double>{4, 3, 4}));
  EXPECT_EQ(distances(2, 0), (std::vector<double>{0, 5, 3, 5, 0, 4, 3, 4, 0}));
}

TEST(Cdist, SameAtAnyAlignment) {
  std::mt19937 rng(3);
  const HostTensor a = HostTensor::Uniform(DType::kF32, {30, 9}, rng, -2, 2);
  ExpectSameAtAnyAlignment(Cdist{.p = 1}, {a, HostTensor::Uniform(DType::kF32, {70, 9}, rng, -2, 2)});
}

TEST(Cdist, RejectsInvalidInputs) {
  const HostTensor a = HostTensor::Full(DType::kF32, {2, 3}, 0), b = HostTensor::Full(DType::kF32, {4, 3}, 0);
  ExpectError(Cdist{}, {a, HostTensor::Full(DType::kF32, {2, 4}, 0)}, {"'b'"});
  ExpectError(Cdist{.condensed = 1}, {a, b}, {"'b': expected the shape of 'a' for condensed distances, [2, 3]"});
  ExpectError(Cdist{.p = 1e-3f}, {a, b}, {"attribute 'p': expected 0 or at least 0.01, got 0.001"});
  ExpectAttributeError(*FindOp("cdist"), {{"p", AttrValue::Float(-1)}}, {"'p'"});
}

}  // namespace
}  // namespace polyop::testing
