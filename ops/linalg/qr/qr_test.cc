// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg/qr/qr.h"

#include <cmath>

#include "testing/random_call.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class QrTest : public ::testing::TestWithParam<DType> {
 public:
  Tolerance tolerance() const { return GetParam() == DType::kF64 ? Tolerance{1e-10, 1e-10} : Tolerance{1e-5, 1e-5}; }
};

TEST_P(QrTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{1, 1}, Shape{9, 3, 3}, Shape{2, 3, 5, 4}, Shape{13, 2, 7}, Shape{21, 8, 8},
                             Shape{6, 16, 12}, Shape{3, 17, 17}, Shape{48, 48}, Shape{2, 50, 71}, Shape{133, 61}}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), shape, rng);
    for (const int64_t complete : {0, 1}) ExpectMatchesReference(Qr{.complete = complete}, {a}, tolerance());
  }
}

TEST_P(QrTest, UnusualValues) {
  HostTensor a = HostTensor::Full(GetParam(), {5, 3, 3}, 0);
  const double huge = GetParam() == DType::kF64 ? 1e200 : 1e30;
  for (int64_t i = 0; i < 9; ++i) {
    a.set(9 + i, huge * static_cast<double>(i % 4));
    a.set(18 + i, static_cast<double>(i % 4) / huge);
    a.set(27 + i, static_cast<double>(i % 2));
  }
  a.set(40, NAN);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Qr{}, {a}, &out).ok());
  for (int64_t n = 0; n < 4; ++n) {
    for (int64_t e = 0; e < 9; ++e) {
      double square = 0, product = 0;
      for (int64_t k = 0; k < 3; ++k) {
        square += out[0].at(n * 9 + k * 3 + e / 3) * out[0].at(n * 9 + k * 3 + e % 3);
        product += out[0].at(n * 9 + e / 3 * 3 + k) * out[1].at(n * 9 + k * 3 + e % 3);
      }
      const double scale = n == 1 ? huge : n == 2 ? 1 / huge : 1;
      EXPECT_NEAR(square, e / 3 == e % 3 ? 1 : 0, 1e-6);
      EXPECT_NEAR(product / scale, a.at(n * 9 + e) / scale, 1e-5);
    }
  }
  EXPECT_TRUE(std::isnan(out[1].at(40)));
}

INSTANTIATE_TEST_SUITE_P(Types, QrTest, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Qr, KnownFactors) {
  std::vector<HostTensor> out;
  const HostTensor a = HostTensor::Of(DType::kF64, {2, 1}, {3, 4});
  ASSERT_TRUE(testing::Run(Qr{}, {a}, &out).ok());
  EXPECT_NEAR(out[0].at(0), -0.6, 1e-15);
  EXPECT_NEAR(out[0].at(1), -0.8, 1e-15);
  EXPECT_NEAR(out[1].at(0), -5, 1e-15);
  ASSERT_TRUE(testing::Run(Qr{.complete = 1}, {a}, &out).ok());
  EXPECT_EQ(out[0].shape(), (Shape{2, 2}));
  EXPECT_EQ(out[1].shape(), (Shape{2, 1}));
}

TEST(Qr, EmptyInputs) {
  for (const Shape& shape : {Shape{0, 3, 3}, Shape{3, 0, 4}, Shape{3, 4, 0}}) {
    for (const int64_t complete : {0, 1}) {
      ExpectMatchesReference(Qr{.complete = complete}, {HostTensor::Full(DType::kF32, shape, 0)});
    }
  }
}

// Their results and the scratch memory of a thread do not depend on their number.
TEST(Qr, ManyMatrices) {
  for (const int64_t size : {3, 16, 20, 50}) {
    const auto inputs_of = [size](int64_t count) {
      std::mt19937 rng(1);
      return std::vector{HostTensor::Uniform(DType::kF64, {count, size, size}, rng)};
    };
    for (const auto& op : {Qr{}}) {
      ExpectIndependentItems(op, inputs_of(9));
      ExpectScratchOfOneThread(op, inputs_of);
    }
  }
}

// A GPU computes them in parts, with scratch memory for one part.
TEST(Qr, MoreMatricesThanAGpuHasBlocks) {
  std::mt19937 rng(1);
  ExpectMatchesReference(Qr{}, {HostTensor::Uniform(DType::kF64, {1030, 9, 9}, rng)}, Tolerance{1e-8, 1e-8});
}

}  // namespace
}  // namespace polyop::testing
