// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg/matrix_factors/matrix_factors.h"

#include <cmath>

#include "testing/random_call.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Method = MatrixFactors::Method;

HostTensor F64(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF64, shape, values);
}

// Returns A A^T + 1 for random A, which is positive definite.
HostTensor PositiveDefinite(DType dtype, int64_t count, int64_t size, std::mt19937& rng) {
  const HostTensor factor = HostTensor::Uniform(DType::kF64, {count, size, size}, rng);
  HostTensor product(dtype, {count, size, size});
  for (int64_t e = 0; e < product.size(); ++e) {
    const int64_t n = e / (size * size), i = e / size % size, j = e % size;
    double sum = i == j ? 1 : 0;
    for (int64_t k = 0; k < size; ++k)
      sum += factor.at((n * size + i) * size + k) * factor.at((n * size + j) * size + k);
    product.set(e, sum);
  }
  return product;
}

class MatrixFactorsTest : public ::testing::TestWithParam<DType> {
 public:
  Tolerance tolerance() const { return GetParam() == DType::kF64 ? Tolerance{1e-11, 1e-11} : ToleranceFor(GetParam()); }
};

TEST_P(MatrixFactorsTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{1, 1}, Shape{9, 3, 3}, Shape{2, 3, 5, 4}, Shape{3, 2, 7}, Shape{70, 70}}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), shape, rng);
    ExpectMatchesReference(MatrixFactors{.method = Method::kLu}, {a}, tolerance());
    ExpectMatchesReference(MatrixFactors{.method = Method::kQr}, {a}, tolerance());
  }
  for (const int64_t size : {1, 3, 8, 40}) {
    ExpectMatchesReference(MatrixFactors{.method = Method::kCholesky}, {PositiveDefinite(GetParam(), 5, size, rng)},
                           tolerance());
  }
}

TEST_P(MatrixFactorsTest, ManySmallMatricesMatchReference) {
  std::mt19937 rng(2);
  for (const Shape& shape : {Shape{13, 1, 1}, Shape{11, 2, 2}, Shape{21, 3, 3}, Shape{37, 4, 4}, Shape{6, 3, 5},
                             Shape{21, 8, 8}, Shape{9, 16, 12}, Shape{3, 17, 17}}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), shape, rng);
    ExpectMatchesReference(MatrixFactors{.method = Method::kLu}, {a}, tolerance());
    ExpectMatchesReference(MatrixFactors{.method = Method::kQr}, {a}, tolerance());
    const int64_t size = shape[1];
    ExpectMatchesReference(MatrixFactors{.method = Method::kCholesky}, {PositiveDefinite(GetParam(), 11, size, rng)},
                           tolerance());
  }
}

TEST_P(MatrixFactorsTest, BlocksMatchReference) {
  std::mt19937 rng(4);
  const Tolerance near = GetParam() == DType::kF64 ? Tolerance{1e-10, 1e-10} : Tolerance{1e-5, 1e-5};
  for (const Shape& shape :
       {Shape{48, 48}, Shape{2, 50, 71}, Shape{133, 61}, Shape{101, 101}, Shape{261, 290}, Shape{1700, 48}}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), shape, rng);
    ExpectMatchesReference(MatrixFactors{.method = Method::kLu}, {a}, near);
    ExpectMatchesReference(MatrixFactors{.method = Method::kQr}, {a}, near);
  }
  for (const int64_t size : {49, 130, 277}) {
    HostTensor a = PositiveDefinite(GetParam(), size > 200 ? 1 : 2, size, rng);  // the threads compute one
    ExpectMatchesReference(MatrixFactors{.method = Method::kCholesky}, {a}, near);
    a.set(size * size - 1, -1);
    ExpectMatchesReference(MatrixFactors{.method = Method::kCholesky, .check_errors = 0}, {a}, near);
  }
}

TEST_P(MatrixFactorsTest, BlocksOfSingularAndInfiniteMatrices) {
  std::mt19937 rng(5);
  HostTensor a = HostTensor::Uniform(GetParam(), {60, 60}, rng);
  for (int64_t i = 0; i < 60; ++i) a.set(i * 60 + 33, 0);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(MatrixFactors{}, {a}, &out).ok());
  EXPECT_EQ(out[3].at(0), 34);
  a.set(5, INFINITY);
  ExpectMatchesReference(MatrixFactors{}, {a});
}

TEST_P(MatrixFactorsTest, LdlMatchesReference) {
  std::mt19937 rng(3);
  const Tolerance near = GetParam() == DType::kF64 ? Tolerance{1e-9, 1e-9} : Tolerance{1e-4, 1e-4};
  for (const Shape& shape : {Shape{1, 1}, Shape{40, 2, 2}, Shape{2, 6, 5, 5}, Shape{70, 70}}) {
    ExpectMatchesReference(MatrixFactors{.method = Method::kLdl}, {HostTensor::Uniform(GetParam(), shape, rng)}, near);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MatrixFactorsTest, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(MatrixFactors, KnownFactors) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(MatrixFactors{}, {F64({2, 2}, {1, 2, 4, 6})}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{4, 6, 0.25, 0.5}));
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{-4, 0.5}));
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{2, 2}));
  ASSERT_TRUE(testing::Run(MatrixFactors{.method = Method::kCholesky}, {F64({2, 2}, {4, 99, 6, 25})}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{2, 0, 3, 4}));
  ASSERT_TRUE(testing::Run(MatrixFactors{.method = Method::kQr}, {F64({2, 1}, {3, 4})}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{-5, 0.5}));
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{1.6}));
}

// The values are LAPACK's, by torch.linalg.ldl_factor.
TEST(MatrixFactors, PivotsOfLdl) {
  std::vector<HostTensor> out;
  const HostTensor a = F64({3, 3}, {0, 99, 99, 2, 0, 99, 0, 1, 3});
  ASSERT_TRUE(testing::Run(MatrixFactors{.method = Method::kLdl}, {a}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 0, 0, 2, 0, 0, 0.5, 0, 3}));
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{-2, -2, 3}));
  ASSERT_TRUE(testing::Run(MatrixFactors{.method = Method::kLdl}, {F64({2, 2}, {0, 0, 0, 0})}, &out).ok());
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{1, 2}));
  EXPECT_EQ(out[3].ToDoubles(), (std::vector<double>{1}));
}

TEST(MatrixFactors, InfoNamesTheFirstFailure) {
  std::vector<HostTensor> out;
  const HostTensor a = F64({3, 2, 2}, {1, 2, 2, 4, 1, 0, 0, 1, 0, 0, 0, 0});
  ExpectMatchesReference(MatrixFactors{}, {a});
  ASSERT_TRUE(testing::Run(MatrixFactors{}, {a}, &out).ok());
  EXPECT_EQ(out[3].ToDoubles(), (std::vector<double>{2, 0, 1}));
  ExpectMatchesReference(MatrixFactors{.method = Method::kCholesky}, {a});
  ASSERT_TRUE(testing::Run(MatrixFactors{.method = Method::kCholesky}, {a}, &out).ok());
  EXPECT_EQ(out[3].ToDoubles(), (std::vector<double>{2, 0, 1}));
}

TEST(MatrixFactors, RaisesTheErrorsOfPyTorch) {
  const HostTensor one = F64({2, 2}, {1, 2, 2, 4}), two = F64({2, 2, 2}, {1, 0, 0, 1, 1, 2, 2, 4});
  ExpectError(MatrixFactors{.check_errors = 1}, {two}, {"torch.linalg.lu_factor: (Batch element 1): U[2,2] is zero"});
  ExpectError(MatrixFactors{.method = Method::kCholesky, .check_errors = 1}, {one},
              {"linalg.cholesky: The factorization could not be completed because the input is not positive-definite "
               "(the leading minor of order 2 is not positive-definite)."});
  ExpectMatchesReference(MatrixFactors{.method = Method::kQr, .check_errors = 1}, {two});
}

TEST(MatrixFactors, NanDoesNotAffectOthers) {
  const HostTensor a = F64({2, 2, 2}, {NAN, 1, 1, 1, 2, 0, 0, 2});
  for (const Method method : {Method::kLu, Method::kCholesky, Method::kQr}) {
    std::vector<HostTensor> out;
    ASSERT_TRUE(testing::Run(MatrixFactors{.method = method}, {a}, &out).ok());
    EXPECT_TRUE(std::isnan(out[0].at(0)));
    EXPECT_TRUE(std::isfinite(out[0].at(4)) && std::isfinite(out[0].at(7)));
  }
}

TEST(MatrixFactors, EmptyAndInvalidInputs) {
  ExpectMatchesReference(MatrixFactors{}, {F64({0, 3, 3}, {})});
  ExpectMatchesReference(MatrixFactors{}, {F64({3, 0, 4}, {})});
  ExpectError(MatrixFactors{.method = Method::kCholesky}, {F64({1, 2}, {1, 2})},
              {"'a': expected square matrices for the method cholesky, got shape [1, 2]"});
}

// Their results and the scratch memory of a thread do not depend on their number.
TEST(MatrixFactors, ManyMatrices) {
  for (const int64_t size : {3, 16, 20, 50}) {
    const auto inputs_of = [size](int64_t count) {
      std::mt19937 rng(1);
      return std::vector{HostTensor::Uniform(DType::kF64, {count, size, size}, rng)};
    };
    for (const auto& op : {MatrixFactors{}, MatrixFactors{.method = MatrixFactors::Method::kQr},
                           MatrixFactors{.method = MatrixFactors::Method::kLdl}}) {
      ExpectIndependentItems(op, inputs_of(9));
      ExpectScratchOfOneThread(op, inputs_of);
    }
  }
}

}  // namespace
}  // namespace polyop::testing
