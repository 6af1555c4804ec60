#include "ops/scaled_dot_product_attention/scaled_dot_product_attention.h"

#include <cmath>

#include "core/testing.h"

namespace polyop::testing {
namespace {

class AttentionTest : public ::testing::TestWithParam<DType> {};

TEST_P(AttentionTest, MatchesReference) {
  std::mt19937 rng(1);
  struct Sizes {
    int64_t batch, queries, keys, depth, width;
  };
  for (const Sizes& s : {Sizes{1, 1, 1, 1, 1}, {2, 3, 5, 7, 4}, {1, 9, 33, 16, 17}, {2, 4, 6, 64, 40}, {0, 3, 4, 5, 6}, {1, 0, 4, 5, 6}, {1, 3, 0, 5, 6}, {1, 3, 4, 5, 0}}) {
    const HostTensor q = HostTensor::Uniform(GetParam(), {s.batch, s.queries, s.depth}, rng, -2, 2);
    const HostTensor k = HostTensor::Uniform(GetParam(), {s.batch, s.keys, s.depth}, rng, -2, 2);
    const HostTensor v = HostTensor::Uniform(GetParam(), {s.batch, s.keys, s.width}, rng);
    for (const HostTensor& mask : {HostTensor::Absent(), HostTensor::Uniform(GetParam(), {s.batch, s.queries, s.keys}, rng),
                                   HostTensor::Uniform(GetParam(), {s.queries, s.keys}, rng)}) {
      ExpectMatchesReference(ScaledDotProductAttention{}, {q, k, v, mask}, ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Attention, MaskedKeysHaveNoWeight) {
  std::mt19937 rng(2);
  const auto random = [&](const Shape& shape) { return HostTensor::Uniform(DType::kF32, shape, rng); };
  const HostTensor mask = HostTensor::Of(DType::kF32, {2, 3}, {0, -INFINITY, 0, -INFINITY, -INFINITY, -INFINITY});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(ScaledDotProductAttention{}, {random({1, 2, 4}), random({1, 3, 4}), random({1, 3, 4}), mask}, &out).ok());
  EXPECT_EQ(out[1].at(1), 0);
  EXPECT_NEAR(out[1].at(0) + out[1].at(2), 1, 1e-6);
  EXPECT_TRUE(std::isnan(out[1].at(3)));  // wholly masked
}

TEST(Attention, RefusesBadInput) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  const ScaledDotProductAttention op;
  ExpectError(op, {f32({1, 2, 4}), f32({1, 3, 5}), f32({1, 3, 4})}, {"'k'", "dimension 2 is 5, wanted E = 4"});
  ExpectError(op, {f32({1, 2, 4}), f32({1, 3, 4}), f32({1, 2, 4})}, {"'v'", "dimension 1 is 2, wanted S = 3"});
  ExpectError(op, {f32({1, 2, 4}), f32({1, 3, 4}), f32({1, 3, 4}), f32({3, 2})}, {"'mask' has shape [3, 2], wanted [1, 2, 3] or [2, 3]"});
  ExpectError(op, {f32({2, 4}), f32({1, 3, 4}), f32({1, 3, 4})}, {"'q' has rank 2"});
}

}  // namespace
}  // namespace polyop::testing
