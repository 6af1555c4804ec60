// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/carafe/carafe.h"

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> Inputs(const Carafe& op, DType dtype, const Shape& shape, std::mt19937& rng) {
  const int64_t scale = static_cast<int64_t>(op.scale_factor),
                mask_channels = op.kernel_size * op.kernel_size * op.group_size;
  return {HostTensor::Uniform(dtype, shape, rng),
          HostTensor::Uniform(dtype, {shape[0], mask_channels, shape[2] * scale, shape[3] * scale}, rng, 0, 0.2)};
}

class CarafeTest : public ::testing::TestWithParam<DType> {};

TEST_P(CarafeTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Carafe& op : {Carafe{1, 1, 1}, Carafe{3, 1, 2}, Carafe{5, 1, 2}, Carafe{5, 3, 1}, Carafe{7, 3, 3}}) {
    for (const Shape& shape : {Shape{2, 3, 9, 13}, Shape{1, 51, 4, 40}, Shape{1, 48, 1, 1}, Shape{1, 6, 2, 1}}) {
      ExpectMatchesReference(op, Inputs(op, GetParam(), shape, rng), ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CarafeTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// With a mask that selects one position of the window, the output is the shifted and enlarged image, and 0 outside.
TEST(Carafe, MaskSelectsAWindowPosition) {
  std::mt19937 rng(2);
  const Carafe op{3, 1, 2};
  std::vector<HostTensor> inputs = Inputs(op, DType::kF32, {1, 1, 3, 4}, rng), out;
  for (int64_t position = 0; position < 9; ++position) {
    for (int64_t i = 0; i < inputs[1].size(); ++i) inputs[1].set(i, i / (6 * 8) == position);
    ASSERT_TRUE(testing::Run(op, inputs, &out).ok());
    for (int64_t i = 0; i < out[0].size(); ++i) {
      const int64_t y = i / 8 / 2 + position / 3 - 1, x = i % 8 / 2 + position % 3 - 1;
      EXPECT_EQ(out[0].at(i), y >= 0 && y < 3 && x >= 0 && x < 4 ? inputs[0].at(y * 4 + x) : 0) << position << " " << i;
    }
  }
}

TEST(Carafe, EmptyInputs) {
  std::mt19937 rng(3);
  const Carafe op{5, 2, 2};
  for (const Shape& shape : {Shape{0, 4, 3, 3}, Shape{1, 0, 3, 3}, Shape{1, 4, 0, 3}}) {
    ExpectMatchesReference(op, Inputs(op, DType::kF32, shape, rng));
  }
}

TEST(Carafe, SameAtAnyAlignment) {
  std::mt19937 rng(4);
  ExpectSameAtAnyAlignment(Carafe{5, 1, 2}, Inputs(Carafe{5, 1, 2}, DType::kF32, {1, 40, 12, 11}, rng));
}

TEST(Carafe, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectError(Carafe{3, 1, 2}, {f32({1, 4, 3, 3}), f32({1, 8, 6, 6})},
              {"'masks'", "expected dimension 1", "got 8", "= 9"});
  ExpectError(Carafe{3, 1, 2}, {f32({1, 4, 3, 3}), f32({1, 9, 6, 5})},
              {"'masks'", "expected dimension 3", "got 5", "= 6"});
  ExpectError(Carafe{3, 3, 1}, {f32({1, 4, 3, 3}), f32({1, 27, 3, 3})},
              {"'features': expected a number of channels divisible by group_size = 3, got 4"});
  const Op& op = *FindOp("carafe");
  ExpectAttributeError(op, {{"kernel_size", AttrValue::Int(4)}, {"scale_factor", AttrValue::Float(2)}},
                       {"'kernel_size': expected an odd number, got 4"});
  ExpectAttributeError(op, {{"kernel_size", AttrValue::Int(3)}, {"scale_factor", AttrValue::Float(1.5)}},
                       {"'scale_factor': expected an integer, got 1.5"});
}

}  // namespace
}  // namespace polyop::testing
