// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg/eig/eig.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <string>

#include "kernels/cpu/simd.h"
#include "testing/random_call.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Number = std::complex<double>;

Number NumberAt(const HostTensor& pairs, int64_t index) { return {pairs.at(2 * index), pairs.at(2 * index + 1)}; }

// Expects that A v = value v for each matrix, that the vectors have length 1 with a real and positive largest element,
// that conjugates are adjacent, and that the sums of values and of their squares are the traces of A and A^2.
void ExpectEigenvectors(const HostTensor& a, double tolerance) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Eig{}, {a}, &out).ok());
  const int64_t size = a.shape()[a.shape().rank() - 1], area = size * size;
  for (int64_t n = 0; n < a.size() / area; ++n) {
    const auto element = [&](int64_t i, int64_t j) { return a.at(n * area + i * size + j); };
    const auto vector = [&](int64_t i, int64_t k) { return NumberAt(out[1], n * area + i * size + k); };
    Number sum = 0, squares = 0;
    double trace = 0, trace_of_square = 0, norm = 0;
    for (int64_t k = 0; k < size; ++k) {
      const Number value = NumberAt(out[0], n * size + k);
      sum += value;
      squares += value * value;
      if (value.imag() > 0) {
        ASSERT_LT(k + 1, size);
        EXPECT_EQ(NumberAt(out[0], n * size + k + 1), std::conj(value));
      }
      trace += element(k, k);
      double length = 0, largest = 0;
      for (int64_t i = 0; i < size; ++i) {
        Number product = 0;
        for (int64_t j = 0; j < size; ++j) product += element(i, j) * vector(j, k);
        EXPECT_LE(std::abs(product - value * vector(i, k)), tolerance) << n << " " << k;
        length = std::hypot(length, std::abs(vector(i, k)));
        largest = std::max(largest, std::abs(vector(i, k)));
        norm = std::max(norm, std::fabs(element(i, k)));
        trace_of_square += element(k, i) * element(i, k);
      }
      EXPECT_NEAR(length, 1, 1e-6);
      int64_t pivot = 0;
      while (std::abs(vector(pivot, k)) < 0.9989 * largest) ++pivot;
      EXPECT_GT(vector(pivot, k).real(), 0);
      EXPECT_EQ(vector(pivot, k).imag(), 0);
    }
    const auto count = static_cast<double>(size);
    EXPECT_LE(std::abs(sum - trace), count * tolerance);
    EXPECT_LE(std::abs(squares - trace_of_square), 4 * count * tolerance * std::max(1.0, norm));
  }
}

class EigTest : public ::testing::TestWithParam<DType> {
 public:
  double tolerance() const { return GetParam() == DType::kF64 ? 2e-12 : 2e-5; }
};

TEST_P(EigTest, Eigenvectors) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{1, 1}, Shape{40, 2, 2}, Shape{2, 20, 3, 3}, Shape{20, 5, 5}, Shape{301, 4, 4},
                             Shape{9, 16, 16}, Shape{3, 17, 17}, Shape{60, 60}}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), shape, rng);
    ExpectEigenvectors(a, tolerance());
    ExpectMatchesReference(Eig{.vectors = 0}, {a}, {1e3 * tolerance(), tolerance()});
    if (shape[shape.rank() - 1] < 10) ExpectMatchesReference(Eig{}, {a}, {1e3 * tolerance(), 10 * tolerance()});
  }
}

TEST_P(EigTest, SymmetricAndSkewMatrices) {
  std::mt19937 rng(2);
  for (const double sign : {1.0, -1.0}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), {9, 9}, rng);
    HostTensor sum = a;
    for (int64_t i = 0; i < 81; ++i) sum.set(i, a.at(i) + sign * a.at(i % 9 * 9 + i / 9));
    ExpectEigenvectors(sum, 2 * tolerance());
    std::vector<HostTensor> out;
    ASSERT_TRUE(testing::Run(Eig{.vectors = 0}, {sum}, &out).ok());
    for (int64_t k = 0; k < 9; ++k) EXPECT_NEAR(out[0].at(2 * k + (sign > 0 ? 1 : 0)), 0, tolerance());
  }
}

// Matrices of different structure side by side.
TEST_P(EigTest, SmallMatricesOfSpecialStructure) {
  std::mt19937 rng(5);
  for (const int64_t size : {1, 2, 3, 4, 5, 8, 16}) {
    const std::vector<std::function<double(int64_t, int64_t, double)>> elements = {
        [](int64_t, int64_t, double x) { return x; },
        [](int64_t, int64_t, double) { return 0.0; },
        [](int64_t, int64_t, double) { return 1.0; },
        [](int64_t i, int64_t j, double) { return i == j ? 2.0 : 0.0; },
        [](int64_t i, int64_t j, double) { return i == j ? 3.0 : 1.0; },
        [](int64_t i, int64_t j, double) { return std::cos(static_cast<double>(i * j)); },
        [](int64_t i, int64_t j, double x) { return i <= j ? x : 0.0; },
        [](int64_t i, int64_t j, double x) { return i >= j ? x : 0.0; },
        [](int64_t i, int64_t j, double x) { return i / 2 == j / 2 ? x : 0.0; },
        [](int64_t i, int64_t j, double x) { return i <= j + 1 ? x : 0.0; },
        [](int64_t i, int64_t j, double x) { return i == 0       ? x
                                                    : i == j + 1 ? 1.0
                                                                 : 0.0; },
        [=](int64_t i, int64_t j, double) { return (i + 1) % size == j ? 1.0 : 0.0; },
        [=](int64_t i, int64_t j, double) {
          return ((i + 1) % size == j ? 1.0 : 0.0) - 2.0 / static_cast<double>(size);
        },
        [](int64_t i, int64_t j, double) { return i == j || i + 1 == j ? 1.0 : 0.0; },
        // 1 + u v^T, where v^T u = 0: there is no basis of eigenvectors.
        [](int64_t i, int64_t j, double) {
          return (i == j ? 1.0 : 0.0) + (i == 0 ? 1.0 : i == 1 ? -1.0 : 0.0);
        },
        [=](int64_t i, int64_t j, double x) { return x * std::pow(100.0, static_cast<double>(i - j) / size); },
        [](int64_t i, int64_t j, double x) { return i == j  ? 0.0
                                                    : i < j ? 1.0 + 1e-9 * x
                                                            : -1.0; },
        [](int64_t i, int64_t j, double x) { return i == j ? 1.0 : 1e-12 * x; },
    };
    const auto kinds = static_cast<int64_t>(elements.size()), count = 5 * kinds + 3, area = size * size;
    HostTensor a = HostTensor::Uniform(GetParam(), {count, size, size}, rng);
    for (int64_t e = 0; e < a.size(); ++e) {
      const int64_t n = e / area, kind = n < 3 * kinds ? n % kinds : n / 4 % kinds;
      a.set(e, elements[kind](e % area / size, e % size, a.at(e)));
    }
    for (const std::string& isa : AvailableIsas()) {
      ASSERT_TRUE(ForceIsa(isa).ok());
      ExpectEigenvectors(a, 30 * tolerance());
      std::vector<HostTensor> values, both, out;
      ASSERT_TRUE(testing::Run(Eig{.vectors = 0}, {a}, &values).ok());
      ASSERT_TRUE(testing::Run(Eig{}, {a}, &both).ok());
      // NaN and infinities change no other matrix.
      HostTensor with_nan = a;
      for (int64_t n = 0; n < count; n += 3) with_nan.set(n * area + n % area, n % 2 == 0 ? NAN : INFINITY);
      ASSERT_TRUE(testing::Run(Eig{}, {with_nan}, &out).ok());
      for (int64_t e = 0; e < 2 * count * size; ++e) {
        if (e / (2 * size) % 3 == 0) {
          EXPECT_TRUE(std::isnan(out[0].at(e)));
        } else {
          EXPECT_NEAR(out[0].at(e), both[0].at(e), tolerance());
        }
      }
      for (int64_t n = 0; n < count; ++n) {  // rounding errors change values that have one eigenvector
        double first = 0, second = 0;
        for (int64_t k = 0; k < size; ++k) {
          first += values[0].at(2 * (n * size + k));
          second += both[0].at(2 * (n * size + k));
        }
        EXPECT_NEAR(first, second, 30 * tolerance());
      }
    }
    ASSERT_TRUE(ForceIsa("").ok());
  }
}

// Sizes around those of blocks and of windows.
TEST_P(EigTest, LargeMatrices) {
  std::mt19937 rng(3);
  for (const int64_t size : {47, 48, 75, 76, 83, 129}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), {size, size}, rng);
    for (const std::string& isa : AvailableIsas()) {
      ASSERT_TRUE(ForceIsa(isa).ok());
      ExpectEigenvectors(a, 10 * tolerance());
    }
    ASSERT_TRUE(ForceIsa("").ok());
    std::vector<HostTensor> both, values;
    ASSERT_TRUE(testing::Run(Eig{}, {a}, &both).ok());
    ASSERT_TRUE(testing::Run(Eig{.vectors = 0}, {a}, &values).ok());
    for (int64_t k = 0; k < size; ++k) {  // rounding errors may change the order
      double nearest = INFINITY;
      for (int64_t i = 0; i < size; ++i) {
        nearest = std::min(nearest, std::abs(NumberAt(values[0], k) - NumberAt(both[0], i)));
      }
      EXPECT_LE(nearest, 10 * tolerance());
    }
  }
  ExpectEigenvectors(HostTensor::Uniform(GetParam(), {3, 70, 70}, rng), 10 * tolerance());
}

INSTANTIATE_TEST_SUITE_P(Types, EigTest, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Eig, TriangularMatricesHaveTheirDiagonal) {
  HostTensor upper = HostTensor::Full(DType::kF64, {4, 4}, 0), lower = upper;
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = i; j < 4; ++j) {
      upper.set(i * 4 + j, static_cast<double>(4 * i + j + 1));
      lower.set(j * 4 + i, static_cast<double>(4 * j + i + 1));
    }
  }
  for (const HostTensor& a : {upper, lower}) ExpectEigenvectors(a, 1e-12);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Eig{}, {upper}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{1, 0, 6, 0, 11, 0, 16, 0}));
  ASSERT_TRUE(testing::Run(Eig{}, {lower}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{16, 0, 11, 0, 6, 0, 1, 0}));  // as LAPACK's
}

TEST(Eig, MatricesThatCannotBeDiagonalized) {
  HostTensor jordan = HostTensor::Full(DType::kF64, {30, 30}, 0);
  for (int64_t i = 0; i < 30; ++i) {
    jordan.set(i * 31, 2);
    if (i < 29) jordan.set(i * 31 + 1, 1);
  }
  ExpectEigenvectors(jordan, 1e-13);
  ExpectEigenvectors(HostTensor::Full(DType::kF64, {7, 7}, 0), 0);
  ExpectEigenvectors(HostTensor::Of(DType::kF64, {2, 2}, {3, 1, 0, 3}), 1e-13);
}

TEST(Eig, LargeMatricesOfSpecialStructure) {
  constexpr int64_t kSize = 90;
  std::mt19937 rng(4);
  const HostTensor random = HostTensor::Uniform(DType::kF64, {kSize, kSize}, rng);
  const std::vector<double (*)(int64_t, int64_t, double)> elements = {
      [](int64_t, int64_t, double) { return 0.0; },
      [](int64_t, int64_t, double) { return 1.0; },
      [](int64_t i, int64_t j, double) { return (i + 1) % kSize == j ? 1.0 : 0.0; },
      [](int64_t i, int64_t j, double) { return i == j       ? 2.0
                                                : j + 1 == i ? 1.0
                                                             : 0.0; },
      [](int64_t i, int64_t j, double x) { return i / 20 <= j / 20 ? x : 0.0; },
      [](int64_t i, int64_t j, double x) { return i / 20 == j / 20 || i / 20 == 3 ? x : 0.0; },
      [](int64_t i, int64_t j, double x) { return i <= j + 1 ? x : 0.0; },
      [](int64_t i, int64_t j, double x) { return i == 0       ? x
                                                  : i == j + 1 ? 1.0
                                                               : 0.0; },
      [](int64_t i, int64_t, double x) { return x * std::pow(10, -static_cast<double>(i) / 8); },
      [](int64_t i, int64_t j, double x) { return x * std::pow(10, static_cast<double>(i - j) / 30); },
      [](int64_t i, int64_t j, double) { return static_cast<double>((i % 7) * (j % 5)) / 10; },
  };
  for (const auto element : elements) {
    HostTensor a = random;
    for (int64_t e = 0; e < a.size(); ++e) a.set(e, element(e / kSize, e % kSize, random.at(e)));
    ExpectEigenvectors(a, 1e-9);
  }
}

TEST(Eig, LargeMatricesWithNan) {
  HostTensor a = HostTensor::Full(DType::kF64, {2, 60, 60}, 1);
  a.set(77, NAN);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Eig{}, {a}, &out).ok());
  for (int64_t k = 0; k < 120; ++k) EXPECT_TRUE(std::isnan(out[0].at(k)) && std::isfinite(out[0].at(120 + k)));
  a.set(77, INFINITY);
  ASSERT_TRUE(testing::Run(Eig{.vectors = 0}, {a}, &out).ok());
  for (int64_t k = 0; k < 120; ++k) EXPECT_TRUE(std::isnan(out[0].at(k)) && std::isfinite(out[0].at(120 + k)));
}

TEST(Eig, PermutationsHaveTheRootsOfOne) {
  HostTensor cycle = HostTensor::Full(DType::kF64, {6, 6}, 0);  // the QR algorithm without other shifts would not end
  for (int64_t i = 0; i < 6; ++i) cycle.set(i * 6 + (i + 1) % 6, 1);
  ExpectEigenvectors(cycle, 1e-13);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Eig{}, {cycle}, &out).ok());
  for (int64_t k = 0; k < 6; ++k) EXPECT_LE(std::abs(std::pow(NumberAt(out[0], k), 6) - 1.0), 1e-13);
}

TEST(Eig, BadlyScaledMatrices) {
  ExpectEigenvectors(HostTensor::Of(DType::kF64, {3, 3}, {1, 1e8, 0, 1e-8, 2, 1e8, 0, 1e-8, 3}), 1e-7);
  std::vector<HostTensor> out;
  ASSERT_TRUE(
      testing::Run(Eig{}, {HostTensor::Of(DType::kF64, {3, 3}, {1, 1e8, 0, 1e-8, 2, 1e8, 0, 1e-8, 3})}, &out).ok());
  EXPECT_NEAR(out[0].at(0) + out[0].at(2) + out[0].at(4), 6, 1e-14);  // exact only if balanced
  EXPECT_NEAR(out[0].at(2), 2, 1e-14);
}

TEST(Eig, AnyScale) {
  std::mt19937 rng(2);
  for (const double scale : {1e-300, 1e-160, 1e160, 1e300}) {
    const HostTensor a = HostTensor::Uniform(DType::kF64, {3, 4, 4}, rng);
    HostTensor scaled = a;
    for (int64_t i = 0; i < a.size(); ++i) scaled.set(i, a.at(i) * scale);
    std::vector<HostTensor> small, out;
    ASSERT_TRUE(testing::Run(Eig{}, {a}, &small).ok());
    ASSERT_TRUE(testing::Run(Eig{}, {scaled}, &out).ok());
    for (int64_t k = 0; k < 24; ++k) EXPECT_NEAR(out[0].at(k) / scale, small[0].at(k), 1e-12);
    for (int64_t k = 0; k < 96; ++k) EXPECT_NEAR(out[1].at(k), small[1].at(k), 1e-11);
  }
}

TEST(Eig, NanDoesNotAffectOthers) {
  const HostTensor a = HostTensor::Of(DType::kF32, {3, 2, 2}, {0, -1, 1, 0, INFINITY, 0, 0, 1, 3, 0, NAN, 2});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Eig{}, {a}, &out).ok());
  EXPECT_EQ(NumberAt(out[0], 0), Number(0, 1));
  EXPECT_EQ(NumberAt(out[0], 1), Number(0, -1));
  for (int64_t i = 4; i < 12; ++i) EXPECT_TRUE(std::isnan(out[0].at(i)));
  ExpectMatchesReference(Eig{}, {a});
}

TEST(Eig, RaisesTheErrorOfPyTorch) {
  const HostTensor a = HostTensor::Of(DType::kF32, {2, 2, 2}, {1, 0, 0, 1, 1, NAN, 0, 1});
  ExpectError(Eig{.check_errors = 1}, {a}, {"torch.linalg.eig: input tensor should not contain infs or NaNs."});
}

TEST(Eig, EmptyAndInvalidInputs) {
  const auto zeros = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(Eig{}, {zeros({0, 3, 3})});
  ExpectMatchesReference(Eig{}, {zeros({3, 0, 0})});
  ExpectError(Eig{}, {zeros({2, 3})}, {"'a'", "to be N = 2", "got 3"});
}

// log, angle and pow of a number with the imaginary part -0 take another branch.
TEST(Eig, RealEigenvaluesHaveNoNegativeZero) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const int64_t count : {1, 2, 9}) {
      for (const int64_t size : {2, 3, 50}) {
        HostTensor a = HostTensor::Full(dtype, {count, size, size}, 0);
        for (int64_t e = 0; e < a.size(); ++e) {
          const int64_t i = e / size % size, j = e % size;
          a.set(e, i == j ? (i % 3 == 1 ? -3 : 2) : j == i + 1 || i == j + 1 ? 1 : 0);
        }
        std::vector<HostTensor> out;
        ASSERT_TRUE(testing::Run(Eig{}, {a}, &out).ok());
        for (const HostTensor& numbers : out) {
          for (int64_t e = 1; e < numbers.size(); e += 2) EXPECT_FALSE(std::signbit(numbers.at(e))) << count << size;
        }
      }
    }
  }
}

// Their results and the scratch memory of a thread do not depend on their number.
TEST(Eig, ManyMatrices) {
  for (const int64_t size : {3, 16, 20, 50}) {
    const auto inputs_of = [size](int64_t count) {
      std::mt19937 rng(1);
      return std::vector{HostTensor::Uniform(DType::kF64, {count, size, size}, rng)};
    };
    for (const auto& op : {Eig{}, Eig{.vectors = 0}}) {
      ExpectIndependentItems(op, inputs_of(9));
      ExpectScratchOfOneThread(op, inputs_of);
    }
  }
}

}  // namespace
}  // namespace polyop::testing
