// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/qkv_attention/qkv_attention_backward.h"

#include <cmath>

#include "testing/gradients.h"
#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t batch, queries, keys, depth, values;
};

std::vector<HostTensor> Inputs(const Sizes& s, DType dtype, std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {s.batch, s.queries, s.values}, rng),
          HostTensor::Uniform(dtype, {s.batch, s.queries, s.depth}, rng),
          HostTensor::Uniform(dtype, {s.batch, s.keys, s.depth}, rng),
          HostTensor::Uniform(dtype, {s.batch, s.keys, s.values}, rng)};
}

class QkvAttentionBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(QkvAttentionBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  Tolerance tolerance = ToleranceFor(GetParam());
  tolerance.absolute *= 10;
  for (const Sizes& s : {Sizes{1, 1, 1, 1, 1}, Sizes{2, 5, 7, 16, 9}, Sizes{3, 33, 65, 24, 40}, Sizes{1, 130, 3, 8, 64},
                         Sizes{1, 150, 165, 24, 20}}) {
    SCOPED_TRACE(Concat(s.queries, " queries"));
    ExpectAllMasksMatchReference(QkvAttentionBackward{}, Inputs(s, GetParam(), rng), 3, tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, QkvAttentionBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(QkvAttentionBackward, OmitsGradientsThatAreNotRequested) {
  std::mt19937 rng(2);
  ExpectOnlyRequestedGradients(QkvAttentionBackward{}, Inputs({3, 20, 17, 8, 5}, DType::kF32, rng), 3);
}

// Few batch entries are divided into blocks of queries, whose sums are kept.
TEST(QkvAttentionBackward, ScratchForOneThread) {
  std::mt19937 rng(5);
  ExpectScratchOfOneThread(QkvAttentionBackward{},
                           [&](int64_t batch) { return Inputs({batch + 8, 20, 17, 8, 5}, DType::kF32, rng); });
}

// The output is linear in the values.
TEST(QkvAttentionBackward, IsTheAdjointOfTheForwardPass) {
  std::mt19937 rng(3);
  const std::vector<HostTensor> inputs = Inputs({2, 70, 90, 12, 20}, DType::kF32, rng);
  std::vector<HostTensor> grads, out;
  ASSERT_TRUE(testing::Run(QkvAttentionBackward{}, inputs, &grads).ok());
  ASSERT_TRUE(testing::Run(QkvAttention{}, {inputs.begin() + 1, inputs.end()}, &out).ok());
  EXPECT_NEAR(InnerProduct(out[0], inputs[0]), InnerProduct(grads[2], inputs[3]), 1e-3);
}

TEST(QkvAttentionBackward, EmptyAndNotANumber) {
  std::mt19937 rng(4);
  for (const Sizes& s :
       {Sizes{0, 2, 3, 4, 5}, Sizes{2, 0, 3, 4, 5}, Sizes{2, 3, 0, 4, 5}, Sizes{2, 3, 4, 0, 5}, Sizes{2, 3, 4, 5, 0}}) {
    ExpectMatchesReference(QkvAttentionBackward{}, Inputs(s, DType::kF32, rng));
  }
  for (size_t i = 0; i < 4; ++i) {
    std::vector<HostTensor> inputs = Inputs({2, 9, 8, 4, 4}, DType::kF32, rng);
    inputs[i].set(37, NAN);  // in batch entry 1
    ExpectMatchesReference(QkvAttentionBackward{}, inputs);
    std::vector<HostTensor> grads;
    ASSERT_TRUE(testing::Run(QkvAttentionBackward{}, inputs, &grads).ok());
    for (const HostTensor& grad : grads) {
      for (int64_t k = 0; k < grad.size() / 2; ++k) EXPECT_TRUE(std::isfinite(grad.at(k))) << k;
    }
  }
}

TEST(QkvAttentionBackward, RejectsInvalidInputs) {
  std::mt19937 rng(5);
  std::vector<HostTensor> inputs = Inputs({1, 3, 5, 4, 2}, DType::kF32, rng);
  inputs[0] = HostTensor::Full(DType::kF32, {1, 3, 3}, 0);
  ExpectError(QkvAttentionBackward{}, inputs, {"'value'", "V = 3"});
  inputs[0] = HostTensor::Full(DType::kF32, {1, 4, 2}, 0);
  ExpectError(QkvAttentionBackward{}, inputs, {"'query'", "L = 4"});
}

}  // namespace
}  // namespace polyop::testing
