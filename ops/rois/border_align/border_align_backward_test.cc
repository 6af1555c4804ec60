// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/border_align/border_align_backward.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

BorderAlignBackward Backward(int64_t pool_size) {
  BorderAlignBackward op;
  op.pool_size = pool_size;
  return op;
}

std::vector<HostTensor> Inputs(DType dtype, const Shape& map, int64_t boxes, std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {map[0], map[1] / 4, boxes, 4}, rng), HostTensor::Uniform(dtype, map, rng),
          HostTensor::Uniform(dtype, {map[0], boxes, 4}, rng, -4, 20)};
}

class BorderAlignBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(BorderAlignBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t pool_size : {1, 3, 10}) {
    for (const Shape& map : {Shape{2, 12, 9, 13}, Shape{1, 68, 11, 7}, Shape{1, 64, 1, 1}, Shape{3, 4, 20, 20}}) {
      for (int64_t boxes : {1, 5, 40}) {
        SCOPED_TRACE(Concat(ToString(map), ", ", boxes, " boxes"));
        ExpectMatchesReference(Backward(pool_size), Inputs(GetParam(), map, boxes, rng), ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BorderAlignBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The samples' taps are not kept for this many boxes.
TEST(BorderAlignBackward, ManySamples) {
  std::mt19937 rng(2);
  ExpectMatchesReference(Backward(1000), Inputs(DType::kF32, {1, 4, 4, 5}, 300, rng), {1e-4, 1e-4});
}

TEST(BorderAlignBackward, NanAndSamplesOutside) {
  HostTensor input = HostTensor::Full(DType::kF32, {1, 4, 3, 3}, -1);
  input.set(0, NAN);
  const HostTensor boxes = HostTensor::Of(DType::kF32, {1, 3, 4}, {0, 0, 2, 2, 0, 0, 9, 9, NAN, 0, 2, INFINITY});
  HostTensor grad = HostTensor::Full(DType::kF32, {1, 1, 3, 4}, 1);
  grad.set(1, NAN);
  grad.set(4, INFINITY);  // its side has a sample outside, which is larger than -1
  ExpectMatchesReference(Backward(2), {grad, input, boxes});
}

TEST(BorderAlignBackward, EmptyInputs) {
  std::mt19937 rng(3);
  ExpectMatchesReference(Backward(2), Inputs(DType::kF32, {1, 4, 3, 3}, 0, rng));
  ExpectMatchesReference(Backward(2), Inputs(DType::kF32, {1, 0, 3, 3}, 2, rng));
  ExpectMatchesReference(Backward(2), Inputs(DType::kF32, {1, 4, 0, 3}, 2, rng));
}

TEST(BorderAlignBackward, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectError(Backward(2), {f32({1, 1, 2, 4}), f32({1, 6, 3, 3}), f32({1, 2, 4})},
              {"'input': expected a multiple of 4 channels (a quarter for each side), got 6"});
  ExpectError(Backward(2), {f32({1, 1, 2, 4}), f32({1, 8, 3, 3}), f32({1, 2, 4})}, {"'grad_output'", "C4/4", "got 1"});
}

}  // namespace
}  // namespace polyop::testing
