// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg/inverse/inverse.h"

#include <cmath>

#include "testing/random_call.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor F32(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF32, shape, values);
}

class InverseTest : public ::testing::TestWithParam<DType> {};

TEST_P(InverseTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape :
       {Shape{1, 1}, Shape{7, 2, 2}, Shape{2, 3, 4, 4}, Shape{3, 17, 17}, Shape{1, 150, 150}, Shape{271, 271}}) {
    HostTensor input = HostTensor::Uniform(GetParam(), shape, rng);
    // A dominant diagonal, so that elements of the inverse are near 1.
    const int64_t size = shape[shape.rank() - 1];
    for (int64_t i = 0; i < input.size(); ++i) {
      if (i / size % size == i % size) input.set(i, input.at(i) + (size > 20 ? 20 : 3));
    }
    ExpectMatchesReference(Inverse{}, {input}, ToleranceFor(GetParam()));
  }
}

// Each matrix has its large elements elsewhere, so that the lanes have different pivots.
TEST_P(InverseTest, ManySmallMatricesMatchReference) {
  std::mt19937 rng(2);
  for (const int64_t size : {1, 2, 3, 4, 5, 16}) {
    HostTensor input = HostTensor::Uniform(GetParam(), {37, size, size}, rng);
    for (int64_t e = 0; e < input.size(); ++e) {
      const int64_t n = e / (size * size), i = e / size % size, j = e % size;
      if (i == (n % 2 == 0 ? j + n / 2 : n / 2 + size - j) % size) input.set(e, input.at(e) + (size > 5 ? 20 : 4));
    }
    ExpectMatchesReference(Inverse{}, {input}, ToleranceFor(GetParam()));
  }
}

// Zeros on the diagonal, and the columns in reverse order.
TEST_P(InverseTest, PermutedRows) {
  HostTensor input = HostTensor::Full(GetParam(), {2, 5, 5}, 0), expected = input;
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t i = 0; i < 5; ++i) {
      input.set(n * 25 + i * 5 + (i + 1 + n) % 5, 4);
      expected.set(n * 25 + (i + 1 + n) % 5 * 5 + i, 0.25);
    }
  }
  ExpectMatchesReference(Inverse{}, {input});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Inverse{}, {input}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), expected.ToDoubles());
}

INSTANTIATE_TEST_SUITE_P(Types, InverseTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Inverse, ASingularMatrixDoesNotAffectOthers) {
  const HostTensor input = F32({5, 3, 3}, {1, 2, 3, 4, 5,   6, 7, 8,        9,  // of rank 2, with rounding
                                           2, 0, 0, 0, 4,   0, 0, 0,        8,  // regular
                                           0, 0, 0, 0, 0,   0, 0, 0,        0,  //
                                           1, 0, 0, 0, NAN, 0, 0, 0,        1,  //
                                           1, 0, 0, 0, 1,   0, 0, INFINITY, 1});
  ExpectMatchesReference(Inverse{}, {input});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Inverse{}, {input}, &out).ok());
  for (int64_t i = 0; i < 45; ++i) {
    if (i / 9 != 1) {
      EXPECT_TRUE(std::isnan(out[0].at(i))) << i;
    }
  }
  EXPECT_EQ(out[0].at(9), 0.5);
  EXPECT_EQ(out[0].at(17), 0.125);
}

TEST(Inverse, RaisesTheErrorOfPyTorch) {
  const HostTensor singular = F32({3, 2, 2}, {NAN, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 4});
  ExpectError(Inverse{.check_errors = 1}, {singular},
              {"linalg.inv: (Batch element 2): The diagonal element 2 is zero, the inversion could not be completed "
               "because the input matrix is singular."});
  ExpectMatchesReference(Inverse{.check_errors = 1}, {F32({2, 2, 2}, {NAN, 0, 0, 1, 1, 0, 0, 1})});
}

TEST(Inverse, AnyScale) {
  const HostTensor input = F32({2, 2, 2}, {1e30, 0, 0, 1e-30, 1e-30, 2e-30, 3e30, 4e30});
  ExpectMatchesReference(Inverse{}, {input});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Inverse{}, {input}, &out).ok());
  EXPECT_NEAR(out[0].at(3) * 1e-30, 1, 1e-6);
  EXPECT_NEAR(out[0].at(4) * 1e-30, -2, 1e-6);
  ASSERT_TRUE(testing::Run(Inverse{}, {F32({1, 1}, {1e-40})}, &out).ok());
  EXPECT_TRUE(std::isinf(out[0].at(0)));
}

TEST(Inverse, EmptyAndInvalidInputs) {
  ExpectMatchesReference(Inverse{}, {F32({0, 4, 4}, {})});
  ExpectMatchesReference(Inverse{}, {F32({3, 0, 0}, {})});
  ExpectError(Inverse{}, {HostTensor::Full(DType::kF32, {2, 3, 4}, 0)}, {"'input'", "to be M = 3", "got 4"});
  ExpectError(Inverse{}, {HostTensor::Full(DType::kF32, {4}, 0)}, {"'input': expected rank at least 2, got 1"});
}

// Their results and the scratch memory of a thread do not depend on their number.
TEST(Inverse, ManyMatrices) {
  for (const int64_t size : {3, 16, 20, 50}) {
    const auto inputs_of = [size](int64_t count) {
      std::mt19937 rng(1);
      return std::vector{HostTensor::Uniform(DType::kF32, {count, size, size}, rng)};
    };
    for (const auto& op : {Inverse{}}) {
      ExpectIndependentItems(op, inputs_of(9));
      ExpectScratchOfOneThread(op, inputs_of);
    }
  }
}

}  // namespace
}  // namespace polyop::testing
