// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg/slogdet/slogdet.h"

#include <cmath>

#include "testing/random_call.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor F64(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF64, shape, values);
}

class SlogdetTest : public ::testing::TestWithParam<DType> {
 public:
  Tolerance tolerance() const { return GetParam() == DType::kF64 ? Tolerance{1e-11, 1e-11} : ToleranceFor(GetParam()); }
};

TEST_P(SlogdetTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 1, 1}, Shape{21, 2, 2}, Shape{3, 5, 3, 3}, Shape{19, 4, 4},
                             Shape{9, 5, 5}, Shape{7, 16, 16}, Shape{3, 17, 17}, Shape{2, 60, 60}, Shape{101, 101}}) {
    ExpectMatchesReference(Slogdet{}, {HostTensor::Uniform(GetParam(), shape, rng)}, tolerance());
  }
}

TEST_P(SlogdetTest, HugeAndTinyDeterminants) {
  std::mt19937 rng(2);
  for (const int64_t size : {3, 4, 12}) {
    for (const double scale : {1e30, 1e-30}) {
      HostTensor a = HostTensor::Uniform(GetParam(), {9, size, size}, rng);
      for (int64_t e = 0; e < a.size(); ++e) a.set(e, a.at(e) * scale);
      ExpectMatchesReference(Slogdet{}, {a}, tolerance());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SlogdetTest, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Slogdet, KnownDeterminants) {
  std::vector<HostTensor> out;
  const HostTensor a = F64({4, 2, 2}, {0, 2, 4, 0, 3, 0, 0, -1, 1, 2, 2, 4, -2, 0, 0, -4});
  ASSERT_TRUE(testing::Run(Slogdet{}, {a}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{-1, -1, 0, 1}));
  EXPECT_NEAR(out[1].at(0), std::log(8), 1e-15);
  EXPECT_NEAR(out[1].at(1), std::log(3), 1e-15);
  EXPECT_EQ(out[1].at(2), -INFINITY);
  EXPECT_NEAR(out[1].at(3), std::log(8), 1e-15);
}

TEST(Slogdet, SpecialValues) {
  for (const int64_t size : {2, 3, 6, 50}) {
    HostTensor a = HostTensor::Full(DType::kF64, {6, size, size}, 0);
    const double values[] = {NAN, INFINITY, 0, 5e-324, 1e300, 1};
    for (int64_t n = 0; n < 6; ++n) {
      for (int64_t i = 0; i < size; ++i) a.set((n * size + i) * size + i, i == 1 ? values[n] : -3);
    }
    ExpectMatchesReference(Slogdet{}, {a}, Tolerance{1e-11, 1e-11});
    std::vector<HostTensor> out;
    ASSERT_TRUE(testing::Run(Slogdet{}, {a}, &out).ok());
    EXPECT_TRUE(out[0].at(0) == 0 && std::isnan(out[1].at(0)));
    EXPECT_TRUE(out[0].at(2) == 0 && out[1].at(2) == -INFINITY);
  }
}

TEST(Slogdet, EmptyMatrices) {
  ExpectMatchesReference(Slogdet{}, {F64({0, 3, 3}, {})});
  ExpectMatchesReference(Slogdet{}, {F64({3, 0, 0}, {})});
  ExpectError(Slogdet{}, {F64({1, 2}, {1, 2})}, {"'a'"});
}

// Their results and the scratch memory of a thread do not depend on their number.
TEST(Slogdet, ManyMatrices) {
  for (const int64_t size : {3, 16, 20, 50}) {
    const auto inputs_of = [size](int64_t count) {
      std::mt19937 rng(1);
      return std::vector{HostTensor::Uniform(DType::kF64, {count, size, size}, rng)};
    };
    for (const auto& op : {Slogdet{}}) {
      ExpectIndependentItems(op, inputs_of(9));
      ExpectScratchOfOneThread(op, inputs_of);
    }
  }
}

// A GPU computes them in parts, with scratch memory for one part.
TEST(Slogdet, MoreMatricesThanAGpuHasBlocks) {
  std::mt19937 rng(1);
  ExpectMatchesReference(Slogdet{}, {HostTensor::Uniform(DType::kF64, {1030, 9, 9}, rng)}, Tolerance{1e-8, 1e-8});
  ExpectMatchesReference(Slogdet{}, {HostTensor::Uniform(DType::kF64, {65'600, 2, 2}, rng)}, Tolerance{1e-8, 1e-8});
}

}  // namespace
}  // namespace polyop::testing
