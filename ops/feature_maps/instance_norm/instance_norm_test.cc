// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/instance_norm/instance_norm.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(DType dtype, const Shape& shape, std::mt19937& rng, double low, double high) {
  return {HostTensor::Uniform(dtype, shape, rng, low, high), HostTensor::Uniform(dtype, {shape[1]}, rng, -2, 2),
          HostTensor::Uniform(dtype, {shape[1]}, rng, -2, 2)};
}

class InstanceNormTypes : public ::testing::TestWithParam<DType> {};

TEST_P(InstanceNormTypes, MatchesReference) {
  const Shape kShapes[] = {{1, 1, 1},         {2, 3, 7},
                           {1, 17, 33},       {2, 64, 5, 5},
                           {3, 2, 4, 5, 6},   {0, 3, 4},
                           {2, 0, 4},         {2, 3, 0},
                           {2, 3, 4, 0},      {1, 2, 4095},
                           {1, 2, 64, 65},    {1, 2, 300, 300},
                           {1, 17, 200, 201}, {1, 2, 2, 2, 2, 2, 2, 3}};
  std::mt19937 rng(1);
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(ToString(shape));
    ExpectMatchesReference(InstanceNorm{}, Inputs(GetParam(), shape, rng, -1, 3), ToleranceFor(GetParam()));
    ExpectMatchesReference(InstanceNorm{.epsilon = 0.5f}, Inputs(GetParam(), shape, rng, -1, 1),
                           ToleranceFor(GetParam()));
  }
}

TEST_P(InstanceNormTypes, RandomShapes) {
  std::mt19937 rng(2);
  for (int round = 0; round < Rounds(100); ++round) {
    Shape shape{static_cast<int64_t>(rng() % 4), 1 + static_cast<int64_t>(rng() % 9)};
    for (uint32_t d = 0, dims = 1 + rng() % 3; d < dims; ++d) shape.push_back(1 + static_cast<int64_t>(rng() % 20));
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(shape)));
    ExpectMatchesReference(InstanceNorm{}, Inputs(GetParam(), shape, rng, -8, 8), ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, InstanceNormTypes, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// A mean that is large compared with the deviation breaks naive sums and an fp32 mean.
TEST(InstanceNorm, LargeMeanSmallDeviation) {
  std::mt19937 rng(3);
  for (const Shape& shape : {Shape{2, 3, 1000}, Shape{1, 1, 300, 500}}) {
    for (double mean : {1000.0, -65536.0, 1e7}) {
      ExpectMatchesReference(InstanceNorm{}, Inputs(DType::kF32, shape, rng, mean - 0.3, mean + 4));
    }
  }
}

TEST(InstanceNorm, OneElementFarFromTheRest) {
  std::mt19937 rng(4);
  std::vector<HostTensor> inputs = Inputs(DType::kF32, {1, 1, 9000}, rng, 1, 2);
  inputs[0].set(0, 1e8);
  ExpectMatchesReference(InstanceNorm{}, inputs);
}

TEST(InstanceNorm, HugeAndTinyNumbers) {
  std::mt19937 rng(5);
  ExpectMatchesReference(InstanceNorm{}, Inputs(DType::kF32, {1, 3, 100}, rng, -1e30, 1e30));
  ExpectMatchesReference(InstanceNorm{.epsilon = 0}, Inputs(DType::kF32, {1, 3, 100}, rng, -1e-15, 1e-15));
}

TEST(InstanceNorm, NanAndInfinityStayInTheirChannel) {
  std::mt19937 rng(6);
  for (double odd : {static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
    for (int64_t length : {40, 70000}) {
      std::vector<HostTensor> inputs = Inputs(DType::kF32, {1, 3, length}, rng, 1, 2);
      inputs[0].set(length + 17, odd);
      ExpectMatchesReference(InstanceNorm{}, inputs);
    }
  }
  // Constant channels become B; without epsilon they are 0 / 0.
  ExpectMatchesReference(InstanceNorm{},
                         {HostTensor::Full(DType::kF32, {1, 1, 50}, 0.1), HostTensor::Full(DType::kF32, {1}, 3),
                          HostTensor::Full(DType::kF32, {1}, 7)});
}

// The output is large enough to be streamed past the caches, with aligned and unaligned rows.
TEST(InstanceNorm, LargeOutputs) {
  std::mt19937 rng(7);
  for (const Shape& shape : {Shape{1, 20, 256, 256}, Shape{1, 20, 255, 255}, Shape{1, 1, 1100, 1024}}) {
    ExpectMatchesReference(InstanceNorm{}, Inputs(DType::kF32, shape, rng, -1, 3));
  }
}

TEST(InstanceNorm, RejectsInvalidInputs) {
  std::mt19937 rng(8);
  const auto f32 = [&](const Shape& shape) { return HostTensor::Uniform(DType::kF32, shape, rng); };
  ExpectError(InstanceNorm{}, {f32({2, 3}), f32({3}), f32({3})}, {"'input': expected rank at least 3, got 2"});
  ExpectError(InstanceNorm{}, {f32({2, 3, 4}), f32({2}), f32({3})}, {"'scale'", "to be C = 3", "(shape [2] for"});
  ExpectError(InstanceNorm{}, {f32({2, 3, 4}), f32({3}), f32({4})}, {"'B'", "to be C = 3", "(shape [4] for"});
  ExpectError(InstanceNorm{}, {f32({2, 3, 4}), f32({3})}, {"inputs, got 2"});
  ExpectError(InstanceNorm{}, {f32({2, 3, 4}), f32({3}), HostTensor::Full(DType::kF16, {3}, 1)}, {"no kernel takes"});
  const Op& op = *FindOp("instance_norm");
  ExpectAttributeError(op, {{"epsilon", AttrValue::Float(-1)}}, {"epsilon", "-1"});
  ExpectAttributeError(op, {{"epsilon", AttrValue::Float(NAN)}}, {"epsilon"});
}

TEST(InstanceNorm, SameAtAnyAlignment) {
  std::mt19937 rng(5);
  const HostTensor scale = HostTensor::Uniform(DType::kF32, {3}, rng),
                   shift = HostTensor::Uniform(DType::kF32, {3}, rng);
  ExpectSameAtAnyAlignment(InstanceNorm{}, {HostTensor::Uniform(DType::kF32, {1, 3, 340, 1101}, rng), scale, shift});
}

}  // namespace
}  // namespace polyop::testing
