// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg/matrix_solve/matrix_solve.h"

#include <cmath>
#include <utility>

#include "testing/random_call.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Method = MatrixSolve::Method;

HostTensor F64(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF64, shape, values);
}

class MatrixSolveTest : public ::testing::TestWithParam<DType> {};

TEST_P(MatrixSolveTest, MatchesReference) {
  std::mt19937 rng(1);
  const Tolerance tolerance = GetParam() == DType::kF64 ? Tolerance{1e-10, 1e-10} : ToleranceFor(GetParam());
  for (const int64_t size : {1, 3, 8, 33, 77}) {
    HostTensor a = HostTensor::Uniform(GetParam(), {2, 3, size, size}, rng);
    for (int64_t e = 0; e < a.size(); ++e) {
      if (e / size % size == e % size) a.set(e, a.at(e) + (size > 40 ? 20 : 4));
    }
    const HostTensor b = HostTensor::Uniform(GetParam(), {2, 3, size, 5}, rng);
    HostTensor pivots(DType::kI32, {2, 3, size});
    for (int64_t i = 0; i < pivots.size(); ++i) {
      const int64_t k = i % size;
      pivots.set(i, static_cast<double>(k + 1 + static_cast<int64_t>(rng() % static_cast<uint64_t>(size - k))));
    }
    ExpectMatchesReference(MatrixSolve{.method = Method::kCholesky}, {a, b, HostTensor::Absent()}, tolerance);
    for (const int64_t transpose : {0, 1}) {
      for (const int64_t unit : {0, 1}) {
        for (const Method method : {Method::kGeneral, Method::kLower, Method::kUpper}) {
          ExpectMatchesReference(MatrixSolve{.method = method, .transpose = transpose, .unit = unit},
                                 {a, b, HostTensor::Absent()}, tolerance);
        }
      }
      ExpectMatchesReference(MatrixSolve{.method = Method::kLu, .transpose = transpose}, {a, b, pivots}, tolerance);
    }
  }
}

TEST_P(MatrixSolveTest, ManySmallSystemsMatchReference) {
  std::mt19937 rng(2);
  const Tolerance tolerance = GetParam() == DType::kF64 ? Tolerance{1e-10, 1e-10} : ToleranceFor(GetParam());
  for (const int64_t size : {1, 2, 4, 11, 16, 17}) {
    HostTensor a = HostTensor::Uniform(GetParam(), {19, size, size}, rng);
    for (int64_t e = 0; e < a.size(); ++e) {
      if (e / size % size == e % size) a.set(e, a.at(e) + 4);
    }
    const HostTensor b = HostTensor::Uniform(GetParam(), {19, size, 3}, rng), absent = HostTensor::Absent();
    HostTensor pivots(DType::kI32, {19, size});
    for (int64_t i = 0; i < pivots.size(); ++i) {
      pivots.set(
          i, static_cast<double>(i % size + 1 + static_cast<int64_t>(rng() % static_cast<uint64_t>(size - i % size))));
    }
    ExpectMatchesReference(MatrixSolve{.method = Method::kCholesky}, {a, b, absent}, tolerance);
    for (const int64_t transpose : {0, 1}) {
      ExpectMatchesReference(MatrixSolve{.transpose = transpose}, {a, b, absent}, tolerance);
      ExpectMatchesReference(MatrixSolve{.method = Method::kUpper, .transpose = transpose}, {a, b, absent}, tolerance);
      ExpectMatchesReference(MatrixSolve{.method = Method::kLu, .transpose = transpose}, {a, b, pivots}, tolerance);
    }
  }
}

// Each matrix has its large elements elsewhere, so that the lanes have different pivots.
TEST_P(MatrixSolveTest, SmallSystemsWithOneRightSideMatchReference) {
  std::mt19937 rng(3);
  const Tolerance tolerance = GetParam() == DType::kF64 ? Tolerance{1e-10, 1e-10} : ToleranceFor(GetParam());
  for (const int64_t size : {1, 2, 3, 4, 5}) {
    for (const int64_t count : {3, 37}) {
      HostTensor a = HostTensor::Uniform(GetParam(), {count, size, size}, rng);
      HostTensor permuted = a, pivots(DType::kI32, {count, size});
      for (int64_t e = 0; e < a.size(); ++e) {
        const int64_t n = e / (size * size), i = e / size % size, j = e % size;
        if (i == j) a.set(e, a.at(e) + 4);
        if (i == (n % 2 == 0 ? j + n / 2 : n / 2 + size - j) % size) permuted.set(e, permuted.at(e) + 4);
      }
      for (int64_t i = 0; i < pivots.size(); ++i) {
        pivots.set(i, static_cast<double>(1 + static_cast<int64_t>(rng() % static_cast<uint64_t>(size))));
      }
      const HostTensor b = HostTensor::Uniform(GetParam(), {count, size, 1}, rng), absent = HostTensor::Absent();
      ExpectMatchesReference(MatrixSolve{.method = Method::kCholesky}, {a, b, absent}, tolerance);
      for (const int64_t transpose : {0, 1}) {
        ExpectMatchesReference(MatrixSolve{.transpose = transpose}, {permuted, b, absent}, tolerance);
        ExpectMatchesReference(MatrixSolve{.method = Method::kLu, .transpose = transpose}, {a, b, pivots}, tolerance);
        for (const Method method : {Method::kLower, Method::kUpper}) {
          const MatrixSolve op{.method = method, .transpose = transpose, .unit = size % 2};
          ExpectMatchesReference(op, {a, b, absent}, tolerance);
        }
      }
    }
  }
}

// One matrix, whose blocks the threads compute.
TEST_P(MatrixSolveTest, ALargeMatrixMatchesReference) {
  std::mt19937 rng(4);
  const Tolerance tolerance = GetParam() == DType::kF64 ? Tolerance{1e-10, 1e-10} : ToleranceFor(GetParam());
  const HostTensor absent = HostTensor::Absent();
  for (const auto& [size, columns] : {std::pair<int64_t, int64_t>{48, 1}, {65, 33}, {129, 8}, {290, 32}, {161, 201}}) {
    HostTensor a = HostTensor::Uniform(GetParam(), {size, size}, rng);
    for (int64_t e = 0; e < a.size(); ++e) {
      a.set(e, a.at(e) / static_cast<double>(size) + (e / size == e % size ? 2 : 0));
    }
    HostTensor lower = a, upper = a;  // NaN is in the other triangle
    for (int64_t e = 0; e < a.size(); ++e) {
      if (e / size < e % size) lower.set(e, NAN);
      if (e / size > e % size) upper.set(e, NAN);
    }
    const HostTensor b = HostTensor::Uniform(GetParam(), {size, columns}, rng);
    ExpectMatchesReference(MatrixSolve{.method = Method::kCholesky}, {a, b, absent}, tolerance);
    for (const int64_t transpose : {0, 1}) {
      ExpectMatchesReference(MatrixSolve{.transpose = transpose}, {a, b, absent}, tolerance);
      for (const int64_t unit : {0, 1}) {
        ExpectMatchesReference(MatrixSolve{.method = Method::kLower, .transpose = transpose, .unit = unit},
                               {lower, b, absent}, tolerance);
        ExpectMatchesReference(MatrixSolve{.method = Method::kUpper, .transpose = transpose, .unit = unit},
                               {upper, b, absent}, tolerance);
      }
    }
  }
}

TEST_P(MatrixSolveTest, LdlMatchesReference) {
  std::mt19937 rng(3);
  const Tolerance tolerance = GetParam() == DType::kF64 ? Tolerance{1e-10, 1e-10} : ToleranceFor(GetParam());
  HostTensor a = HostTensor::Uniform(GetParam(), {4, 5, 5}, rng);
  for (int64_t e = 0; e < a.size(); e += 6) a.set(e, a.at(e) + 4);
  const HostTensor b = HostTensor::Uniform(GetParam(), {4, 5, 3}, rng);
  const HostTensor pivots =
      HostTensor::Of(DType::kI32, {4, 5}, {1, 2, 3, 4, 5, 3, -4, -4, 5, 5, -2, -2, -5, -5, 5, -3, -3, 4, -5, -5});
  ExpectMatchesReference(MatrixSolve{.method = Method::kLdl}, {a, b, pivots}, tolerance);
  // Pivots that FactorLdl never returns.
  const HostTensor odd = HostTensor::Of(
      DType::kI32, {4, 5}, {-1, 2, -3, 4, -5, 9, -9, 0, 0, -1, 1, 1, 1, 1, -1, -2147483648.0, 2147483647, -1, -1, -1});
  ExpectMatchesReference(MatrixSolve{.method = Method::kLdl}, {a, b, odd}, Tolerance{1e-3, 1e-3});
}

INSTANTIATE_TEST_SUITE_P(Types, MatrixSolveTest, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MatrixSolve, KnownSolutions) {
  std::vector<HostTensor> out;
  const HostTensor a = F64({2, 2}, {0, 2, 4, 8}), b = F64({2, 1}, {4, 8});
  ASSERT_TRUE(testing::Run(MatrixSolve{}, {a, b, HostTensor::Absent()}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{-2, 2}));
  ASSERT_TRUE(testing::Run(MatrixSolve{.transpose = 1}, {a, b, HostTensor::Absent()}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 1}));
  // The matrix [[0, 2, 0], [2, 0, 1], [0, 1, 3]], whose factors torch.linalg.ldl_factor computes.
  const HostTensor factors = F64({3, 3}, {0, 0, 0, 2, 0, 0, 0.5, 0, 3}), right = F64({3, 1}, {4, 5, 11});
  const HostTensor pivots = HostTensor::Of(DType::kI32, {3}, {-2, -2, 3});
  ASSERT_TRUE(testing::Run(MatrixSolve{.method = Method::kLdl}, {factors, right, pivots}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{1, 2, 3}));
}

TEST(MatrixSolve, ASingularMatrixDoesNotAffectOthers) {
  std::vector<HostTensor> out;
  const HostTensor a = F64({2, 2, 2}, {1, 2, 2, 4, 1, 0, 0, 2}), b = F64({2, 2, 1}, {1, 1, 1, 1});
  ExpectMatchesReference(MatrixSolve{}, {a, b, HostTensor::Absent()});
  ASSERT_TRUE(testing::Run(MatrixSolve{}, {a, b, HostTensor::Absent()}, &out).ok());
  EXPECT_TRUE(std::isnan(out[0].at(0)) && std::isnan(out[0].at(1)));
  EXPECT_EQ(out[0].at(3), 0.5);
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{2, 0}));
}

TEST(MatrixSolve, RaisesTheErrorsOfPyTorch) {
  const HostTensor one = F64({2, 2}, {1, 2, 2, 4}), two = F64({2, 2, 2}, {1, 0, 0, 1, 1, 2, 2, 4});
  ExpectError(MatrixSolve{.raises = MatrixSolve::Raises::kSolve}, {two, two, HostTensor::Absent()},
              {"torch.linalg.solve: (Batch element 1): The solver failed because the input matrix is singular."});
  ExpectError(MatrixSolve{.raises = MatrixSolve::Raises::kInv}, {one, one, HostTensor::Absent()},
              {"linalg.inv: The diagonal element 2 is zero, the inversion could not be completed because the input "
               "matrix is singular."});
}

TEST(MatrixSolve, PivotsOutsideOfTheMatrixAreIgnored) {
  const HostTensor a = F64({2, 2}, {1, 0, 0, 1}), b = F64({2, 1}, {3, 4});
  for (const double pivot : {0.0, -5.0, 3.0, 2147483647.0}) {
    std::vector<HostTensor> out;
    const HostTensor pivots = HostTensor::Full(DType::kI32, {2}, pivot);
    ExpectMatchesReference(MatrixSolve{.method = Method::kLu}, {a, b, pivots});
    ASSERT_TRUE(testing::Run(MatrixSolve{.method = Method::kLu}, {a, b, pivots}, &out).ok());
    EXPECT_EQ(out[0].ToDoubles(), b.ToDoubles());
  }
}

TEST(MatrixSolve, EmptyAndInvalidInputs) {
  const HostTensor a = F64({2, 2}, {1, 0, 0, 1}), b = F64({2, 1}, {3, 4});
  ExpectMatchesReference(MatrixSolve{}, {F64({3, 0, 0}, {}), F64({3, 0, 2}, {}), HostTensor::Absent()});
  ExpectError(MatrixSolve{.method = Method::kLu}, {a, b, HostTensor::Absent()},
              {"'pivots': expected them for the method lu"});
  ExpectError(MatrixSolve{.method = Method::kLdl}, {a, b, HostTensor::Full(DType::kI32, {1}, 1)},
              {"'pivots': expected the shape of 'a' without its last dimension, got [1] for [2, 2]"});
  ExpectError(MatrixSolve{}, {a, b, HostTensor::Full(DType::kI32, {2}, 1)}, {"'pivots': expected none"});
  ExpectError(MatrixSolve{.method = Method::kLu}, {a, b, HostTensor::Full(DType::kI32, {3}, 1)},
              {"'pivots': expected the shape of 'a' without its last dimension, got [3] for [2, 2]"});
}

// Their results and the scratch memory of a thread do not depend on their number.
TEST(MatrixSolve, ManyMatrices) {
  for (const int64_t size : {3, 16, 20, 50}) {
    const auto inputs_of = [size](int64_t count) {
      std::mt19937 rng(1);
      return std::vector{HostTensor::Uniform(DType::kF64, {count, size, size}, rng),
                         HostTensor::Uniform(DType::kF64, {count, size, 2}, rng)};
    };
    for (const auto& op : {MatrixSolve{}}) {
      ExpectIndependentItems(op, inputs_of(9));
      ExpectScratchOfOneThread(op, inputs_of);
    }
  }
}

}  // namespace
}  // namespace polyop::testing
