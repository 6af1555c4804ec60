// SPDX-License-Identifier: Apache-2.0
#include "ops/special/gcd/gcd.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class GcdTest : public ::testing::TestWithParam<DType> {};

TEST_P(GcdTest, MatchesReference) {
  std::mt19937 rng(1);
  const bool is_signed = GetParam() != DType::kU8;
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 0, 2}, Shape{60, 101}}) {
    for (const double limit : {3.0, 100.0, 127.0}) {
      const auto random = [&] {
        HostTensor x = HostTensor::Full(GetParam(), shape, 0);
        std::uniform_real_distribution<double> draw(is_signed ? -limit : 0, limit);
        for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::round(draw(rng)));
        return x;
      };
      ExpectMatchesReference(Gcd{}, {random(), random()});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GcdTest,
                         ::testing::Values(DType::kI8, DType::kU8, DType::kI16, DType::kI32, DType::kI64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<double> Divisors(DType type, const std::vector<double>& a, const std::vector<double>& b) {
  const Shape shape = {static_cast<int64_t>(a.size())};
  HostTensor first = HostTensor::Full(type, shape, 0), second = first;
  for (size_t i = 0; i < a.size(); ++i) {
    first.set(static_cast<int64_t>(i), a[i]);
    second.set(static_cast<int64_t>(i), b[i]);
  }
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(Gcd{}, {first, second}, &out).ok());
  return out[0].ToDoubles();
}

TEST(Gcd, KnownValues) {
  EXPECT_EQ(Divisors(DType::kI32, {0, 0, -6, 12, 1071, -7}, {0, -5, 0, -18, 462, -7}),
            (std::vector<double>{0, 5, 6, 6, 21, 7}));
  EXPECT_EQ(Divisors(DType::kI64, {std::exp2(62), std::exp2(40) * 5, -std::exp2(63)}, {std::exp2(40) * 3, 25, 0}),
            (std::vector<double>{std::exp2(40), 5, -std::exp2(63)}));  // the lowest integer has no absolute value
  EXPECT_EQ(Divisors(DType::kI8, {-128, -128}, {-128, 96}), (std::vector<double>{-128, 32}));
}

}  // namespace
}  // namespace polyop::testing
