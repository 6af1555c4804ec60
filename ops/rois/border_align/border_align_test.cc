// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/border_align/border_align.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class BorderAlignTest : public ::testing::TestWithParam<DType> {};

TEST_P(BorderAlignTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t pool_size : {1, 3, 10}) {
    for (const Shape& shape : {Shape{2, 12, 9, 13}, Shape{1, 68, 11, 7}, Shape{1, 64, 1, 1}, Shape{3, 4, 20, 20}}) {
      for (int64_t boxes : {1, 5, 40}) {
        ExpectMatchesReference(BorderAlign{pool_size},
                               {HostTensor::Uniform(GetParam(), shape, rng),
                                HostTensor::Uniform(GetParam(), {shape[0], boxes, 4}, rng, -4, 20)},
                               ToleranceFor(GetParam()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BorderAlignTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// Each side reads its own channels and the pixels under its samples.
TEST(BorderAlign, OrderOfSides) {
  HostTensor input = HostTensor::Full(DType::kF32, {1, 4, 6, 8}, 0);
  const auto set = [&](int64_t side, int64_t y, int64_t x, double value) { input.set((side * 6 + y) * 8 + x, value); };
  set(0, 1, 4, 5);   // top: (1, 1) to (7, 1)
  set(1, 3, 1, 6);   // left: (1, 1) to (1, 5)
  set(2, 5, 4, 7);   // bottom: (7, 5) to (1, 5)
  set(3, 3, 7, 8);   // right: (7, 5) to (7, 1)
  set(0, 5, 4, 99);  // on the bottom side, but in the channels of the top
  const HostTensor box = HostTensor::Of(DType::kF32, {1, 1, 4}, {1, 1, 7, 5});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(BorderAlign{2}, {input, box}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{5, 6, 7, 8}));
  ASSERT_TRUE(testing::Run(BorderAlign{1}, {input, box}, &out).ok());  // only the ends
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 0, 0, 0}));
}

TEST(BorderAlign, SamplesOutsideAreZeroAndNanIsIgnored) {
  HostTensor input = HostTensor::Full(DType::kF32, {1, 4, 3, 3}, -1);
  input.set(0, NAN);
  const HostTensor boxes = HostTensor::Of(DType::kF32, {1, 3, 4}, {0, 0, 2, 2, 0, 0, 9, 9, NAN, 0, 2, INFINITY});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(BorderAlign{2}, {input, boxes}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{-1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0}));
  ExpectMatchesReference(BorderAlign{2}, {input, boxes});
}

TEST(BorderAlign, EmptyInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectMatchesReference(BorderAlign{2}, {f32({1, 4, 3, 3}), f32({1, 0, 4})});
  ExpectMatchesReference(BorderAlign{2}, {f32({1, 0, 3, 3}), f32({1, 2, 4})});
  ExpectMatchesReference(BorderAlign{2}, {f32({1, 4, 0, 3}), f32({1, 2, 4})});
}

TEST(BorderAlign, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectError(BorderAlign{2}, {f32({1, 6, 3, 3}), f32({1, 2, 4})},
              {"'input': expected a multiple of 4 channels (a quarter for each side), got 6"});
  ExpectError(BorderAlign{2}, {f32({1, 4, 3, 3}), f32({2, 2, 4})},
              {"'boxes'", "expected dimension 0 to be N = 1", "got 2"});
  ExpectAttributeError(*FindOp("border_align"), {{"pool_size", AttrValue::Int(0)}}, {"'pool_size': expected", "got 0"});
  ExpectAttributeError(*FindOp("border_align"), {}, {"'pool_size'"});
}

}  // namespace
}  // namespace polyop::testing
