// SPDX-License-Identifier: Apache-2.0
#include "ops/example/my_add/my_add.h"

#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Shapes {
  Shape a, b;
};

class MyAddTest : public ::testing::TestWithParam<DType> {};

TEST_P(MyAddTest, MatchesReference) {
  const Shapes kShapes[] = {
      {{}, {}},         {{1}, {1}},           {{7}, {7}},         {{4, 1}, {1, 33}},        {{2, 3, 5}, {5}},
      {{5}, {2, 3, 5}}, {{2, 1, 4}, {3, 1}},  {{1, 65}, {17, 1}}, {{0, 3}, {1, 3}},         {{2, 0, 3}, {3}},
      {{16385}, {1}},   {{3, 16385}, {3, 1}}, {{2, 3, 4, 5}, {}}, {{64, 1031}, {64, 1031}},
  };
  std::mt19937 rng(1);
  for (const Shapes& s : kShapes) {
    SCOPED_TRACE(ToString(s.a) + " + " + ToString(s.b));
    ExpectMatchesReference(MyAdd{},
                           {HostTensor::Uniform(GetParam(), s.a, rng), HostTensor::Uniform(GetParam(), s.b, rng)},
                           ToleranceFor(GetParam()));
  }
}

TEST_P(MyAddTest, PropagatesNanAndInfinity) {
  const std::vector<double> values = {NAN, INFINITY, -INFINITY, 1, 2, NAN};
  ExpectMatchesReference(MyAdd{}, {HostTensor::Of(GetParam(), {6}, values),
                                   HostTensor::Of(GetParam(), {6}, {1, 1, 1, NAN, -INFINITY, NAN})});
}

INSTANTIATE_TEST_SUITE_P(Types, MyAddTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

TEST(MyAdd, RejectsInvalidInputs) {
  std::mt19937 rng(2);
  const auto f32 = [&](const Shape& shape) { return HostTensor::Uniform(DType::kF32, shape, rng); };
  ExpectError(MyAdd{}, {f32({2, 3}), f32({4})}, {"[2, 3] and [4] do not broadcast", "got 3 and 4"});
  ExpectError(MyAdd{}, {f32({2}), HostTensor::Uniform(DType::kF16, {2}, rng)},
              {"no kernel takes inputs (f32[2], f16[2])"});
  ExpectError(MyAdd{}, {f32({2})}, {"expected 2 inputs, got 1"});
}

}  // namespace
}  // namespace polyop::testing
