// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/correlation/correlation.h"

#include <cmath>

#include "testing/scratch.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class CorrelationTest : public ::testing::TestWithParam<DType> {};

TEST_P(CorrelationTest, MatchesReference) {
  std::mt19937 rng(1);
  const Correlation ops[] = {
      {},
      {.kernel_size = {3, 3}, .max_displacement = 2, .padding = {1, 1}},
      {.kernel_size = {1, 2}, .max_displacement = 4, .stride = {2, 1}, .dilation_patch = {1, 2}},
      {.kernel_size = {3, 2}, .max_displacement = 1, .stride = {1, 3}, .padding = {2, 0}, .dilation = {1, 2}},
      {.kernel_size = {1, 1}, .max_displacement = 20, .padding = {0, 3}, .dilation_patch = {2, 1}},
      {.kernel_size = {2, 1}, .max_displacement = 0, .stride = {3, 2}, .dilation = {2, 1}},
      {.kernel_size = {1, 1},
       .max_displacement = 2,
       .dilation_patch = {1 << 20, 1 << 20}},  // all displacements are outside
  };
  for (const Correlation& op : ops) {
    for (const Shape& shape : {Shape{2, 3, 7, 9}, Shape{1, 33, 4, 21}, Shape{1, 1, 3, 5}}) {
      SCOPED_TRACE(Concat(ToString(shape), ", kernel ", op.kernel_size[0], ", displacement ", op.max_displacement));
      ExpectMatchesReference(op,
                             {HostTensor::Uniform(GetParam(), shape, rng), HostTensor::Uniform(GetParam(), shape, rng)},
                             ToleranceFor(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CorrelationTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Correlation, RowsOfSeveralPieces) {
  std::mt19937 rng(2);
  const Shape shape = {1, 2, 3, 600};
  for (int64_t step : {1, 2}) {
    const Correlation op{.kernel_size = {1, 3}, .max_displacement = 3, .stride = {1, step}, .dilation_patch = {1, 90}};
    ExpectMatchesReference(
        op, {HostTensor::Uniform(DType::kF32, shape, rng), HostTensor::Uniform(DType::kF32, shape, rng)});
  }
}

// Displacements that reach far beyond a piece.
TEST(Correlation, LongReachesMatchReference) {
  std::mt19937 rng(4);
  for (const int64_t width : {255, 300, 513}) {
    for (const int64_t reach : {30, 64, 100}) {
      SCOPED_TRACE(Concat("width ", width, ", reach ", 5 * reach));
      const Shape shape = {2, 2, 2, width};
      const Correlation op{.kernel_size = {1, 2}, .max_displacement = 3, .dilation_patch = {1, 5 * reach / 3}};
      ExpectMatchesReference(
          op, {HostTensor::Uniform(DType::kF32, shape, rng), HostTensor::Uniform(DType::kF32, shape, rng)});
    }
  }
}

// The copies of both inputs do not grow with the reach, nor with the number of images.
TEST(Correlation, ScratchIsBounded) {
  const auto peak = [](const Shape& shape, int64_t step) {
    const HostTensor input = HostTensor::Full(DType::kF32, shape, 0);
    return PeakScratch(Correlation{.max_displacement = 2, .stride = {64, 64}, .dilation_patch = {1, step}},
                       {input, input});
  };
  constexpr size_t kBound = size_t{80} << 20;
  const Shape wide = {1, 64, 4, 4096};
  const auto input_bytes = static_cast<size_t>(wide.NumElements().value()) * 4;
  for (const int64_t step : {1, 60, 500, 2000}) EXPECT_LE(peak(wide, step), 5 * input_bytes) << "step " << step;
  EXPECT_LE(peak({64, 64, 32, 128}, 1), kBound);
  EXPECT_LE(peak({64, 64, 32, 128}, 60), kBound);
}

// An image and its copy shifted by (1, -2) match at that displacement.
TEST(Correlation, FindsADisplacement) {
  HostTensor first = HostTensor::Full(DType::kF32, {1, 1, 5, 6}, 0), second = first;
  first.set(2 * 6 + 3, 3);
  second.set(3 * 6 + 1, 2);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Correlation{.max_displacement = 2}, {first, second}, &out).ok());
  ASSERT_EQ(out[0].shape(), (Shape{1, 5, 5, 5, 6}));
  for (int64_t e = 0; e < out[0].size(); ++e) {
    const int64_t here = (((1 + 2) * 5 + (-2 + 2)) * 5 + 2) * 6 + 3;
    EXPECT_EQ(out[0].at(e), e == here ? 6 : 0) << e;
  }
}

// Points of a window outside of one image are not multiplied by the other image's NaN.
TEST(Correlation, NanAndInfinity) {
  std::mt19937 rng(3);
  for (float value : {NAN, INFINITY}) {
    HostTensor first = HostTensor::Uniform(DType::kF32, {1, 3, 4, 9}, rng);
    const HostTensor second = HostTensor::Uniform(DType::kF32, {1, 3, 4, 9}, rng);
    for (int64_t i = 0; i < first.size(); i += 9) first.set(i, static_cast<double>(value));
    const Correlation op{.kernel_size = {1, 3}, .max_displacement = 3, .padding = {0, 1}};
    ExpectMatchesReference(op, {first, second});
    ExpectMatchesReference(op, {second, first});
  }
}

TEST(Correlation, EmptyInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectMatchesReference(Correlation{}, {f32({0, 3, 4, 5}), f32({0, 3, 4, 5})});
  ExpectMatchesReference(Correlation{}, {f32({2, 0, 4, 5}), f32({2, 0, 4, 5})});  // empty sums
  ExpectMatchesReference(Correlation{.padding = {1, 1}}, {f32({2, 3, 0, 5}), f32({2, 3, 0, 5})});
}

TEST(Correlation, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(Correlation{}, {f32({2, 3, 4, 5}), f32({2, 3, 4, 6})},
              {"'input2'", "expected dimension 3 to be W = 5", "got 6"});
  ExpectError(Correlation{.kernel_size = {7, 1}}, {f32({2, 3, 4, 5}), f32({2, 3, 4, 5})}, {"'output'"});
  ExpectAttributeError(*FindOp("correlation"), {{"stride", AttrValue::Ints({1, 0})}}, {"'stride': expected", "got 0"});
  ExpectAttributeError(*FindOp("correlation"), {{"padding", AttrValue::Ints({1, 1, 1})}},
                       {"'padding': expected 2 values, got 3"});
}

}  // namespace
}  // namespace polyop::testing
