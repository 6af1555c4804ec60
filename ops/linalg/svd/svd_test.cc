// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg/svd/svd.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "kernels/cpu/simd.h"
#include "testing/random_call.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Expects that u diag(s) vh is the matrix, that the values are sorted, and that the vectors are orthonormal.
void ExpectDecomposes(const HostTensor& a, bool full, double tolerance) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Svd{.full_matrices = full}, {a}, &out).ok());
  const int64_t rows = a.shape()[a.shape().rank() - 2], columns = a.shape()[a.shape().rank() - 1],
                least = std::min(rows, columns), left = full ? rows : least, right = full ? columns : least;
  for (int64_t n = 0; n < a.size() / (rows * columns); ++n) {
    const auto u = [&](int64_t i, int64_t k) { return out[0].at((n * rows + i) * left + k); };
    const auto s = [&](int64_t k) { return out[1].at(n * least + k); };
    const auto v = [&](int64_t k, int64_t j) { return out[2].at((n * right + k) * columns + j); };
    for (int64_t k = 0; k < least; ++k) EXPECT_GE(s(k), k + 1 < least ? s(k + 1) : 0);
    for (int64_t e = 0; e < rows * columns; ++e) {
      double sum = 0;
      for (int64_t k = 0; k < least; ++k) sum += u(e / columns, k) * s(k) * v(k, e % columns);
      EXPECT_NEAR(sum, a.at(n * rows * columns + e), tolerance);
    }
    for (int64_t e = 0; e < left * left; ++e) {
      double dot = 0;
      for (int64_t i = 0; i < rows; ++i) dot += u(i, e / left) * u(i, e % left);
      EXPECT_NEAR(dot, e / left == e % left ? 1 : 0, tolerance);
    }
    for (int64_t e = 0; e < right * right; ++e) {
      double dot = 0;
      for (int64_t j = 0; j < columns; ++j) dot += v(e / right, j) * v(e % right, j);
      EXPECT_NEAR(dot, e / right == e % right ? 1 : 0, tolerance);
    }
  }
}

class SvdTest : public ::testing::TestWithParam<DType> {
 public:
  double tolerance() const { return GetParam() == DType::kF64 ? 1e-13 : 1e-5; }
};

TEST_P(SvdTest, Decomposes) {
  std::mt19937 rng(1);
  for (const Shape& shape :
       {Shape{1, 1}, Shape{5, 3, 3}, Shape{2, 2, 4, 3}, Shape{3, 2, 7}, Shape{16, 16}, Shape{30, 21}}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), shape, rng);
    for (const int64_t full : {0, 1}) {
      ExpectDecomposes(a, full != 0, 4 * tolerance());
      ExpectMatchesReference(Svd{.full_matrices = full}, {a}, {1e3 * tolerance(), tolerance()});
    }
    ExpectMatchesReference(Svd{.vectors = 0}, {a}, {1e3 * tolerance(), tolerance()});
  }
}

TEST_P(SvdTest, ManySmallMatrices) {
  std::mt19937 rng(2);
  for (const Shape& shape : {Shape{11, 1, 1}, Shape{7, 3, 3}, Shape{5, 16, 16}, Shape{9, 4, 7}, Shape{9, 7, 4}}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), shape, rng);
    for (const int64_t full : {0, 1}) {
      ExpectDecomposes(a, full != 0, 4 * tolerance());
      ExpectMatchesReference(Svd{.full_matrices = full, .vectors = 0}, {a}, {1e3 * tolerance(), tolerance()});
    }
  }
  HostTensor mixed = HostTensor::Uniform(GetParam(), {9, 3, 3}, rng);  // with matrices of rank 0 and 1
  for (int64_t i = 0; i < 9; ++i) mixed.set(9 + i, 0);
  for (int64_t i = 0; i < 9; ++i) mixed.set(36 + i, static_cast<double>(1 + i % 3));
  ExpectDecomposes(mixed, true, 20 * tolerance());
}

// Tiny singular values are as exact as large ones next to matrices whose values are similar.
TEST_P(SvdTest, ManySmallMatricesOfAnyCondition) {
  std::mt19937 rng(6);
  for (const int64_t size : {2, 5, 16}) {
    HostTensor a = HostTensor::Uniform(GetParam(), {21, size, size}, rng);
    for (int64_t e = 0; e < a.size(); ++e) {
      const int64_t n = e / (size * size), i = e / size % size;
      a.set(e, std::ldexp(a.at(e) + (i == e % size ? 2 : 0), n % 4 == 1 ? static_cast<int>(-i) : 0));
    }
    ExpectDecomposes(a, true, 4 * tolerance());
    ExpectMatchesReference(Svd{.vectors = 0}, {a}, {1e3 * tolerance(), 0});
  }
}

TEST_P(SvdTest, AnyRank) {
  for (const Shape& shape : {Shape{5, 5}, Shape{6, 3}, Shape{3, 6}}) {
    HostTensor counted = HostTensor::Full(GetParam(), shape, 0);
    ExpectDecomposes(counted, true, tolerance());
    ExpectDecomposes(HostTensor::Full(GetParam(), shape, 2), true, 20 * tolerance());
    for (int64_t i = 0; i < counted.size(); ++i) counted.set(i, static_cast<double>(i));
    ExpectDecomposes(counted, true, 100 * tolerance());
  }
}

// Sizes around those of blocks.
TEST_P(SvdTest, LargeMatrices) {
  std::mt19937 rng(4);
  for (const Shape& shape :
       {Shape{47, 60}, Shape{48, 48}, Shape{49, 49}, Shape{65, 66}, Shape{50, 97}, Shape{98, 64}}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), shape, rng);
    for (const std::string& isa : AvailableIsas()) {
      ASSERT_TRUE(ForceIsa(isa).ok());
      ExpectDecomposes(a, shape[0] % 2 == 0, 10 * tolerance());
    }
    ASSERT_TRUE(ForceIsa("").ok());
    ExpectMatchesReference(Svd{.vectors = 0}, {a}, {1e3 * tolerance(), tolerance()});
  }
}

TEST_P(SvdTest, LargeMatricesOfAnyCondition) {
  const int64_t size = 64;
  std::mt19937 rng(5);
  HostTensor a = HostTensor::Uniform(GetParam(), {size, size}, rng);
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) a.set(i * size + j, std::ldexp(a.at(i * size + j), static_cast<int>(-i / 4)));
  }
  ExpectDecomposes(a, false, 10 * tolerance());
  ExpectMatchesReference(Svd{.vectors = 0}, {a}, {1e3 * tolerance(), 0});  // of small values, too
  for (int64_t i = 3 * size; i < size * size; ++i) a.set(i, a.at(i % (3 * size)));
  ExpectDecomposes(a, true, 100 * tolerance());
  ExpectDecomposes(HostTensor::Full(GetParam(), {size, size}, 0), true, 0);
}

// Vectors whose lengths are 0 but for rounding errors are orthogonal, too.
TEST_P(SvdTest, LargeMatricesOfAnyRank) {
  constexpr int64_t kRows = 66, kColumns = 54;
  std::mt19937 rng(7);
  const HostTensor random = HostTensor::Uniform(GetParam(), {kRows, kColumns}, rng);
  const auto expect = [&](const std::function<double(int64_t, int64_t)>& element) {
    HostTensor a(GetParam(), {kRows, kColumns}), wide(GetParam(), {kColumns, kRows});
    for (int64_t e = 0; e < a.size(); ++e) {
      const int64_t i = e / kColumns, j = e % kColumns;
      a.set(e, element(i, j));
      wide.set(j * kRows + i, element(i, j));
    }
    for (const HostTensor& matrix : {a, wide}) {
      ExpectDecomposes(matrix, true, 100 * tolerance());
      ExpectMatchesReference(Svd{.vectors = 0}, {matrix}, {0, 100 * tolerance()});
    }
  };
  const auto at = [&](int64_t i, int64_t j) { return random.at(i * kColumns + j); };
  for (const int64_t rank : {1, 5, 40}) {
    expect([&](int64_t i, int64_t j) {
      double sum = 0;
      for (int64_t k = 0; k < rank; ++k) sum += at(i, k) * at(k, j);
      return sum;
    });
  }
  expect([&](int64_t i, int64_t j) { return i < 20 ? at(i, j) : 0; });
  expect([&](int64_t i, int64_t j) { return j < 20 ? at(i, j) : 0; });
  expect([&](int64_t i, int64_t j) { return at(i % 20, j % 30); });
  expect([&](int64_t i, int64_t j) { return i == j ? (i < 20 ? 1 : 1e-8) : 1e-9 * at(i, j); });
  expect([&](int64_t i, int64_t j) { return i == j ? std::pow(0.3, static_cast<double>(i)) : 0; });
  expect([&](int64_t i, int64_t j) { return at(i, j) * std::pow(0.3, static_cast<double>(i + j)); });
}

INSTANTIATE_TEST_SUITE_P(Types, SvdTest, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Svd, SmallValuesAreExact) {
  const HostTensor a = HostTensor::Of(DType::kF64, {2, 2}, {1, 1, 0, 1e-20});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Svd{}, {a}, &out).ok());
  EXPECT_NEAR(out[1].at(0), std::sqrt(2.0), 1e-15);
  EXPECT_NEAR(out[1].at(1) * 1e20, std::sqrt(0.5), 1e-14);
}

TEST(Svd, AnyScale) {
  for (const double scale : {1e-310, 1e-160, 1e160, 1e300}) {
    const HostTensor a = HostTensor::Of(DType::kF64, {2, 2}, {3 * scale, 0, 0, -4 * scale});
    std::vector<HostTensor> out;
    ASSERT_TRUE(testing::Run(Svd{}, {a}, &out).ok());
    EXPECT_NEAR(out[1].at(0) / scale, 4, 1e-9);
    EXPECT_NEAR(out[1].at(1) / scale, 3, 1e-9);
    EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 1, 1, 0}));
    EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{0, -1, 1, 0}));
  }
}

TEST(Svd, NanDoesNotAffectOthers) {
  const HostTensor a = HostTensor::Of(DType::kF32, {3, 1, 2}, {1, NAN, INFINITY, 0, 3, 4});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Svd{.full_matrices = 1}, {a}, &out).ok());
  for (int64_t i = 0; i < 8; ++i) EXPECT_TRUE(std::isnan(out[2].at(i)));
  EXPECT_TRUE(std::isnan(out[1].at(0)) && std::isnan(out[1].at(1)) && std::isnan(out[0].at(1)));
  EXPECT_EQ(out[1].at(2), 5);
  ExpectMatchesReference(Svd{.full_matrices = 1}, {a});
}

TEST(Svd, RaisesTheErrorOfPyTorch) {
  const HostTensor a = HostTensor::Of(DType::kF32, {2, 2}, {1, NAN, 0, 1});
  ExpectError(Svd{.check_errors = 1}, {a},
              {"linalg.svd: The algorithm failed to converge because the input matrix "
               "contained non-finite values."});
}

TEST(Svd, EmptyInputs) {
  const auto zeros = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(Svd{}, {zeros({0, 3, 2})});
  ExpectMatchesReference(Svd{}, {zeros({3, 0, 2})});
  ExpectMatchesReference(Svd{.full_matrices = 1}, {zeros({2, 3, 0})});  // the unit matrix
}

// Their results and the scratch memory of a thread do not depend on their number.
TEST(Svd, ManyMatrices) {
  for (const int64_t size : {3, 16, 20, 50}) {
    const auto inputs_of = [size](int64_t count) {
      std::mt19937 rng(1);
      return std::vector{HostTensor::Uniform(DType::kF64, {count, size, size}, rng)};
    };
    for (const auto& op : {Svd{}, Svd{.vectors = 0}}) {
      ExpectIndependentItems(op, inputs_of(9));
      ExpectScratchOfOneThread(op, inputs_of);
    }
  }
}

// A GPU computes them in parts, with scratch memory for one part.
TEST(Svd, MoreMatricesThanAGpuHasBlocks) {
  std::mt19937 rng(1);
  ExpectMatchesReference(Svd{.vectors = 0}, {HostTensor::Uniform(DType::kF64, {1030, 9, 9}, rng)},
                         Tolerance{1e-8, 1e-8});
}

}  // namespace
}  // namespace polyop::testing
