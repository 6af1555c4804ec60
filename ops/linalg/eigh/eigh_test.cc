// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg/eigh/eigh.h"

#include <cmath>
#include <string>

#include "kernels/cpu/simd.h"
#include "testing/random_call.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Expects that A v = value v for each matrix, that the values are sorted, and that the vectors are orthonormal.
void ExpectEigenvectors(const HostTensor& a, bool upper, double tolerance) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Eigh{.upper = upper}, {a}, &out).ok());
  const int64_t size = a.shape()[a.shape().rank() - 1], area = size * size;
  for (int64_t n = 0; n < a.size() / area; ++n) {
    const auto value = [&](int64_t k) { return out[0].at(n * size + k); };
    const auto vector = [&](int64_t i, int64_t k) { return out[1].at(n * area + i * size + k); };
    for (int64_t k = 0; k < size; ++k) {
      if (k > 0) {
        EXPECT_LE(value(k - 1), value(k));
      }
      for (int64_t i = 0; i < size; ++i) {
        double product = 0, dot = 0;
        for (int64_t j = 0; j < size; ++j) {
          const bool swap = upper ? j < i : j > i;
          product += a.at(n * area + (swap ? j * size + i : i * size + j)) * vector(j, k);
          dot += vector(j, i) * vector(j, k);
        }
        EXPECT_NEAR(product, value(k) * vector(i, k), tolerance) << n << " " << k;
        EXPECT_NEAR(dot, i == k ? 1 : 0, tolerance);
      }
    }
  }
}

class EighTest : public ::testing::TestWithParam<DType> {
 public:
  double tolerance() const { return GetParam() == DType::kF64 ? 1e-12 : 1e-5; }
};

TEST_P(EighTest, Eigenvectors) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{1, 1}, Shape{4, 2, 2}, Shape{2, 3, 3, 3}, Shape{2, 16, 16}, Shape{60, 60}}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), shape, rng);
    ExpectEigenvectors(a, false, tolerance());
    ExpectEigenvectors(a, true, tolerance());
    const Tolerance near = {1e3 * tolerance(), tolerance()};
    ExpectMatchesReference(Eigh{.vectors = 0}, {a}, near);
    if (shape[shape.rank() - 1] < 10) ExpectMatchesReference(Eigh{.upper = 1}, {a}, near);
  }
}

TEST_P(EighTest, ManySmallMatrices) {
  std::mt19937 rng(3);
  for (const int64_t size : {1, 2, 3, 5, 16, 17}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), {11, size, size}, rng);
    ExpectEigenvectors(a, false, tolerance());
    ExpectMatchesReference(Eigh{.vectors = 0}, {a}, {1e3 * tolerance(), tolerance()});
  }
}

// Each lane of a vector has a matrix of another structure, which falls apart into other blocks.
TEST_P(EighTest, SmallMatricesOfDifferentStructure) {
  std::mt19937 rng(5);
  for (const int64_t size : {2, 4, 9, 16}) {
    HostTensor a = HostTensor::Uniform(GetParam(), {33, size, size}, rng);
    for (int64_t e = 0; e < a.size(); ++e) {
      const int64_t kind = e / (size * size) % 11, i = e / size % size, j = e % size;
      const double ordered = static_cast<double>(std::min(i, j) + 1);
      if (kind == 0) a.set(e, 0);
      if (kind == 1) a.set(e, i == j ? 1 : 0);
      if (kind == 2) a.set(e, i == j ? ordered : 0);
      if (kind == 3) a.set(e, 1);
      if (kind == 4) a.set(e, i / 3 == j / 3 ? a.at(e) : 0);
      if (kind == 5) a.set(e, std::abs(i - j) == 1 ? 1 : 0);
      if (kind == 6) a.set(e, std::abs(i - j) <= 1 ? std::ldexp(1, static_cast<int>(-4 * ordered)) : 0);
      if (kind == 7) a.set(e, std::ldexp(a.at(e), -30));
      if (kind == 8) a.set(e, i == 0 || j == 0 ? a.at(e) : 0);
    }
    ExpectEigenvectors(a, false, 4 * tolerance());
    ExpectEigenvectors(a, true, 4 * tolerance());
  }
}

// Sizes around those of blocks and of strips.
TEST_P(EighTest, LargeMatrices) {
  std::mt19937 rng(4);
  for (const int64_t size : {47, 48, 49, 63, 64, 65, 66, 81, 96, 97, 98, 129}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), {size, size}, rng);
    for (const std::string& isa : AvailableIsas()) {
      ASSERT_TRUE(ForceIsa(isa).ok());
      ExpectEigenvectors(a, size % 2 == 0, tolerance());
    }
    ASSERT_TRUE(ForceIsa("").ok());
    ExpectMatchesReference(Eigh{.vectors = 0}, {a}, {1e3 * tolerance(), tolerance()});
  }
  ExpectEigenvectors(HostTensor::Uniform(GetParam(), {3, 50, 50}, rng), true, tolerance());
}

TEST_P(EighTest, LargeMatricesOfLowRank) {
  const int64_t size = 70;
  HostTensor a = HostTensor::Full(GetParam(), {size, size}, 0);
  ExpectEigenvectors(a, false, 0);
  for (int64_t i = 0; i < size; ++i) a.set(i * (size + 1), i < 40 ? 2 : static_cast<double>(i));
  ExpectEigenvectors(a, false, tolerance());
  a.set(5 * size + 3, 1);
  a.set(3 * size + 5, 1);
  ExpectEigenvectors(a, false, tolerance());
  ExpectEigenvectors(HostTensor::Full(GetParam(), {size, size}, 1), true, 10 * tolerance());
  a.set(7 * size + 1, NAN);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Eigh{}, {a}, &out).ok());
  for (const HostTensor& result : out) {
    for (const double value : result.ToDoubles()) EXPECT_TRUE(std::isnan(value));
  }
}

// Matrices are scaled by powers of two, so that results differ by the scale only.
TEST_P(EighTest, LargeMatricesOfAnyScale) {
  std::mt19937 rng(6);
  const HostTensor a = HostTensor::Uniform(GetParam(), {150, 150}, rng);
  ExpectEigenvectors(a, false, tolerance());
  std::vector<HostTensor> expected;
  ASSERT_TRUE(testing::Run(Eigh{}, {a}, &expected).ok());
  for (const double scale : {0x1p-90, 0x1p90}) {
    HostTensor scaled = a;
    for (int64_t i = 0; i < a.size(); ++i) scaled.set(i, a.at(i) * scale);
    std::vector<HostTensor> out;
    ASSERT_TRUE(testing::Run(Eigh{}, {scaled}, &out).ok());
    for (int64_t k = 0; k < out[0].size(); ++k) EXPECT_EQ(out[0].at(k), expected[0].at(k) * scale);
    EXPECT_EQ(out[1].ToDoubles(), expected[1].ToDoubles());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EighTest, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Eigh, EqualEigenvalues) {
  ExpectEigenvectors(HostTensor::Full(DType::kF64, {7, 7}, 1), false, 1e-13);
  ExpectEigenvectors(HostTensor::Full(DType::kF64, {7, 7}, 0), false, 0);
  HostTensor unit = HostTensor::Full(DType::kF64, {2, 5, 5}, 0);
  for (int64_t i = 0; i < 25; i += 6) unit.set(i, 3);
  ExpectEigenvectors(unit, false, 0);
  ExpectEigenvectors(HostTensor::Full(DType::kF64, {9, 6, 6}, 1), false, 1e-13);
}

TEST(Eigh, AnyScale) {
  std::mt19937 rng(2);
  for (const double scale : {1e-300, 1e-160, 1e160, 1e300}) {
    HostTensor a = HostTensor::Uniform(DType::kF64, {4, 4}, rng), scaled = a;
    for (int64_t i = 0; i < a.size(); ++i) scaled.set(i, a.at(i) * scale);
    std::vector<HostTensor> small, out;
    ASSERT_TRUE(testing::Run(Eigh{}, {a}, &small).ok());
    ASSERT_TRUE(testing::Run(Eigh{}, {scaled}, &out).ok());
    for (int64_t k = 0; k < 4; ++k) EXPECT_NEAR(out[0].at(k) / scale, small[0].at(k), 1e-13);
    for (int64_t k = 0; k < 16; ++k) EXPECT_NEAR(out[1].at(k), small[1].at(k), 1e-12);
  }
}

TEST(Eigh, NanDoesNotAffectOthersAndTheOtherTriangleIsNotRead) {
  const HostTensor a = HostTensor::Of(DType::kF32, {3, 2, 2}, {1, NAN, 0, 2, INFINITY, 0, 0, 1, 3, 0, 0, 2});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Eigh{}, {a}, &out).ok());
  EXPECT_EQ(out[0].at(0), 1);
  EXPECT_TRUE(std::isnan(out[0].at(2)) && std::isnan(out[0].at(3)) && std::isnan(out[1].at(7)));
  EXPECT_EQ(out[0].at(4), 2);
  EXPECT_EQ(out[0].at(5), 3);
  ExpectMatchesReference(Eigh{}, {a});
}

TEST(Eigh, RaisesTheErrorOfPyTorch) {
  const HostTensor a = HostTensor::Of(DType::kF32, {2, 2, 2}, {1, 0, 0, 1, 1, NAN, NAN, 1});
  ExpectError(Eigh{.check_errors = 1}, {a}, {"linalg.eigh: (Batch element 1): The algorithm failed to converge"});
  ExpectMatchesReference(Eigh{.check_errors = 1}, {HostTensor::Full(DType::kF32, {1, 1}, NAN)});
}

TEST(Eigh, EmptyAndInvalidInputs) {
  const auto zeros = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(Eigh{}, {zeros({0, 3, 3})});
  ExpectMatchesReference(Eigh{}, {zeros({3, 0, 0})});
  ExpectError(Eigh{}, {zeros({2, 3})}, {"'a'", "to be N = 2", "got 3"});
}

// Their results and the scratch memory of a thread do not depend on their number.
TEST(Eigh, ManyMatrices) {
  for (const int64_t size : {3, 16, 20, 50}) {
    const auto inputs_of = [size](int64_t count) {
      std::mt19937 rng(1);
      return std::vector{HostTensor::Uniform(DType::kF64, {count, size, size}, rng)};
    };
    for (const auto& op : {Eigh{}, Eigh{.vectors = 0}}) {
      ExpectIndependentItems(op, inputs_of(9));
      ExpectScratchOfOneThread(op, inputs_of);
    }
  }
}

// A GPU computes them in parts, with scratch memory for one part.
TEST(Eigh, MoreMatricesThanAGpuHasBlocks) {
  std::mt19937 rng(1);
  ExpectMatchesReference(Eigh{.vectors = 0}, {HostTensor::Uniform(DType::kF64, {1030, 9, 9}, rng)},
                         Tolerance{1e-8, 1e-8});
}

}  // namespace
}  // namespace polyop::testing
