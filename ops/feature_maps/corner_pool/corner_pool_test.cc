// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/corner_pool/corner_pool.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Mode = CornerPool::Mode;
constexpr Mode kModes[] = {Mode::kTop, Mode::kBottom, Mode::kLeft, Mode::kRight};

std::vector<double> Pool(Mode mode, const Shape& shape, const std::vector<double>& values) {
  std::vector<HostTensor> outputs;
  const Status status = Run(CornerPool{mode}, {HostTensor::Of(DType::kF32, shape, values)}, &outputs);
  EXPECT_TRUE(status.ok()) << status.message();
  return outputs[0].ToDoubles();
}

TEST(CornerPool, CarriesMaximaToTheEdge) {
  const Shape shape{1, 1, 3, 3};
  const std::vector<double> input = {1, 5, 2, 4, 3, 0, 2, 4, 9};
  EXPECT_EQ(Pool(Mode::kTop, shape, input), (std::vector<double>{4, 5, 9, 4, 4, 9, 2, 4, 9}));
  EXPECT_EQ(Pool(Mode::kBottom, shape, input), (std::vector<double>{1, 5, 2, 4, 5, 2, 4, 5, 9}));
  EXPECT_EQ(Pool(Mode::kLeft, shape, input), (std::vector<double>{5, 5, 2, 4, 3, 0, 9, 9, 9}));
  EXPECT_EQ(Pool(Mode::kRight, shape, input), (std::vector<double>{1, 5, 5, 4, 4, 4, 2, 4, 9}));
}

class CornerPoolTypes : public ::testing::TestWithParam<DType> {};

TEST_P(CornerPoolTypes, MatchesReference) {
  const Shape kShapes[] = {{1, 1, 1, 1},   {2, 3, 7, 5},   {1, 17, 33, 31}, {1, 2, 64, 64},
                           {2, 1, 1, 100}, {1, 2, 100, 1}, {1, 1, 9, 1100}, {0, 3, 4, 4},
                           {1, 0, 4, 4},   {1, 2, 0, 4},   {1, 2, 4, 0},    {3, 2, 16, 48}};
  std::mt19937 rng(1);
  for (const Shape& shape : kShapes) {
    for (Mode mode : kModes) {
      SCOPED_TRACE(Concat(ToString(shape), ", mode ", static_cast<int>(mode)));
      ExpectMatchesReference(CornerPool{mode}, {HostTensor::Uniform(GetParam(), shape, rng, -9, 9)}, {0, 0});
    }
  }
}

TEST_P(CornerPoolTypes, NanAndInfinityAtRandomPositions) {
  std::mt19937 rng(2);
  const double kOdd[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0, -0.0};
  for (int round = 0; round < Rounds(100); ++round) {
    const Shape shape{1, 2, 1 + static_cast<int64_t>(rng() % 20), 1 + static_cast<int64_t>(rng() % 90)};
    HostTensor input = HostTensor::Uniform(GetParam(), shape, rng, -3, 3);
    const uint32_t rarity = 1 + rng() % 100;
    for (int64_t i = 0; i < input.size(); ++i) {
      if (rng() % rarity == 0) input.set(i, kOdd[rng() % 6]);
    }
    SCOPED_TRACE(Concat("round ", round));
    ExpectMatchesReference(CornerPool{kModes[rng() % 4]}, {input}, {0, 0});
  }
}

// Large enough for streaming stores.
TEST(CornerPool, LargeOutputs) {
  std::mt19937 rng(3);
  for (int64_t width : {128, 127}) {
    const HostTensor input = HostTensor::Uniform(DType::kF32, {1, 70, 128, width}, rng, -1000, 1000);
    for (Mode mode : kModes) ExpectMatchesReference(CornerPool{mode}, {input}, {0, 0});
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CornerPoolTypes, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(CornerPool, RejectsInvalidInputs) {
  ExpectError(CornerPool{}, {HostTensor::Full(DType::kF32, {2, 3, 4}, 1)}, {"'input': expected rank 4, got 3"});
  ExpectError(CornerPool{}, {HostTensor::Full(DType::kI32, {1, 1, 2, 2}, 1)}, {"no kernel takes inputs"});
  const Op& op = *FindOp("corner_pool");
  ExpectAttributeError(op, {{"mode", AttrValue::Int(4)}}, {"mode", "4"});
  ExpectAttributeError(op, {{"mode", AttrValue::Int(-1)}}, {"mode", "-1"});
  Params params;
  ASSERT_TRUE(MakeParams(op, {{"mode", AttrValue::Int(3)}}, &params).ok());
  EXPECT_EQ(static_cast<CornerPool*>(params.get())->mode, Mode::kRight);
}

// Rows and columns that are not multiples of the vector length, and streamed outputs; a NaN ends the vector loop.
TEST(CornerPool, SameAtAnyAlignment) {
  std::mt19937 rng(5);
  HostTensor input = HostTensor::Uniform(DType::kF32, {1, 3, 340, 1100}, rng);
  input.set(1100 * 17 + 555, NAN);
  for (int mode = 0; mode < 4; ++mode) {
    ExpectSameAtAnyAlignment(CornerPool{.mode = static_cast<CornerPool::Mode>(mode)}, {input});
  }
}

}  // namespace
}  // namespace polyop::testing
