// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/softmax/softmax.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class SoftmaxTest : public ::testing::TestWithParam<DType> {};

TEST_P(SoftmaxTest, MatchesReferenceAlongEveryDimension) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{1}, Shape{37}, Shape{3, 5}, Shape{2, 21, 40}, Shape{2, 3, 4, 5}, Shape{4, 700, 19},
                             Shape{1, 9000, 2}, Shape{2, 5, 1000}}) {
    const HostTensor x = HostTensor::Uniform(GetParam(), shape, rng, -9, 9);
    for (int64_t axis = -shape.rank(); axis < shape.rank(); ++axis) {
      for (const int64_t log : {0, 1}) {
        SCOPED_TRACE(Concat(ToString(shape), " along ", axis, log != 0 ? ", logarithm" : ""));
        ExpectMatchesReference(Softmax{.axis = axis, .log = log}, {x}, ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SoftmaxTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<double> Computed(const Softmax& op, const Shape& shape, const std::vector<double>& values) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(op, {HostTensor::Of(DType::kF32, shape, values)}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

TEST(Softmax, SumsAreOneAlsoOfLargeAndDistantNumbers) {
  for (const int64_t axis : {0, 1}) {
    const std::vector<double> got = Computed({.axis = axis}, {2, 2}, {1e38, -3e38, 1e38, -3e38});
    EXPECT_EQ(got, axis == 0 ? std::vector<double>(4, 0.5) : (std::vector<double>{1, 0, 1, 0}));
  }
  const std::vector<double> log = Computed({.axis = 0, .log = 1}, {2, 1}, {-200, 0});
  EXPECT_EQ(log, (std::vector<double>{-200, 0}));
}

TEST(Softmax, LinesWithNanOrInfinity) {
  for (const int64_t inner : {1, 3}) {
    for (const int64_t log : {0, 1}) {
      for (const std::vector<double>& line :
           {std::vector<double>{NAN, 1}, {1, NAN}, {INFINITY, 1}, {-INFINITY, -INFINITY}, {INFINITY, INFINITY}}) {
        std::vector<double> values;
        for (const double v : line) values.insert(values.end(), static_cast<size_t>(inner), v);
        for (const double y : Computed({.axis = 0, .log = log}, {2, inner}, values)) EXPECT_TRUE(std::isnan(y));
      }
      const std::vector<double> got = Computed({.axis = 0, .log = log}, {2, 1}, {-INFINITY, 5});
      EXPECT_EQ(got, (std::vector<double>{log != 0 ? -INFINITY : 0, log != 0 ? 0.0 : 1.0}));
    }
  }
}

TEST(Softmax, SameAtAnyAlignment) {
  std::mt19937 rng(2);
  const HostTensor x = HostTensor::Uniform(DType::kF32, {3, 40, 37}, rng);
  for (const int64_t axis : {1, 2}) ExpectSameAtAnyAlignment(Softmax{.axis = axis}, {x});
}

TEST(Softmax, EmptyAndInvalidInputs) {
  const auto zeros = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(Softmax{.axis = 0}, {zeros({0, 3})});
  ExpectMatchesReference(Softmax{.axis = 0}, {zeros({3, 0})});
  ExpectError(Softmax{.axis = 2}, {zeros({2, 3})}, {"'axis'", "[-2, 1]", "got 2"});
}

}  // namespace
}  // namespace polyop::testing
