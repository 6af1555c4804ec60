// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/qkv_attention/qkv_attention.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Sizes {
  int64_t batch, queries, keys, depth, values;
};

std::vector<HostTensor> Inputs(const Sizes& s, DType dtype, std::mt19937& rng) {
  return {HostTensor::Uniform(dtype, {s.batch, s.queries, s.depth}, rng),
          HostTensor::Uniform(dtype, {s.batch, s.keys, s.depth}, rng),
          HostTensor::Uniform(dtype, {s.batch, s.keys, s.values}, rng)};
}

class QkvAttentionTest : public ::testing::TestWithParam<DType> {};

TEST_P(QkvAttentionTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Sizes& s :
       {Sizes{1, 1, 1, 1, 1}, Sizes{2, 5, 7, 16, 9}, Sizes{3, 33, 65, 24, 40}, Sizes{1, 130, 3, 8, 64}}) {
    ExpectMatchesReference(QkvAttention{}, Inputs(s, GetParam(), rng), ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, QkvAttentionTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(QkvAttention, EmptyAndNotANumber) {
  std::mt19937 rng(2);
  for (const Sizes& s :
       {Sizes{0, 2, 3, 4, 5}, Sizes{2, 0, 3, 4, 5}, Sizes{2, 3, 0, 4, 5}, Sizes{2, 3, 4, 0, 5}, Sizes{2, 3, 4, 5, 0}}) {
    ExpectMatchesReference(QkvAttention{}, Inputs(s, DType::kF32, rng));
  }
  for (const double value : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    std::vector<HostTensor> inputs = Inputs({1, 3, 4, 2, 5}, DType::kF32, rng);
    inputs[0].set(2, value);
    ExpectMatchesReference(QkvAttention{}, inputs);
  }
}

// Keys and values of 65 batch entries are packed at a time. The other 60 are divided into more tasks.
TEST(QkvAttention, LastBatchEntriesAreDividedIntoMoreTasks) {
  std::mt19937 rng(3);
  constexpr int64_t kBatch = 125;
  const std::vector<HostTensor> inputs = Inputs({kBatch, 4, 1000, 64, 64}, DType::kF32, rng);
  std::vector<HostTensor> last, out, out_of_last;
  for (const HostTensor& input : inputs) {
    last.emplace_back(input.dtype(), Shape{1, input.shape()[1], input.shape()[2]});
    const int64_t size = last.back().size();
    for (int64_t i = 0; i < size; ++i) last.back().set(i, input.at((kBatch - 1) * size + i));
  }
  ASSERT_TRUE(testing::Run(QkvAttention{}, inputs, &out).ok());
  ASSERT_TRUE(testing::Run(QkvAttention{}, last, &out_of_last).ok());
  const int64_t size = out_of_last[0].size();
  for (int64_t i = 0; i < size; ++i) EXPECT_EQ(out[0].at((kBatch - 1) * size + i), out_of_last[0].at(i));
}

TEST(QkvAttention, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectError(QkvAttention{}, {f32({1, 3, 4}), f32({1, 5, 3}), f32({1, 5, 2})},
              {"'key'", "expected dimension 2 to be E = 4", "got 3"});
  ExpectError(QkvAttention{}, {f32({1, 3, 4}), f32({1, 5, 4}), f32({1, 6, 2})},
              {"'value'", "expected dimension 1 to be S = 5", "got 6"});
  ExpectError(QkvAttention{}, {f32({1, 3, 4}), f32({1, 5, 4})}, {"inputs, got 2"});
}

}  // namespace
}  // namespace polyop::testing
