// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized/quantized_grid_sampler/quantized_grid_sampler.h"

#include "ops/quantized/quantized_test.h"

namespace polyop::testing {
namespace {

using Interpolation = GridRule::Interpolation;
using Padding = GridRule::Padding;

QuantizedGridSampler Sampler(Interpolation interpolation, Padding padding, DType dtype) {
  QuantizedGridSampler op;
  op.interpolation_mode = interpolation;
  op.padding_mode = padding;
  op.input_scale = 0.017f;
  op.output_scale = 0.019f;
  op.input_zero_point = dtype == DType::kI8 ? -100 : 13;
  op.output_zero_point = dtype == DType::kI8 ? -90 : 20;
  return op;
}

TEST(QuantizedGridSampler, Images) {
  std::mt19937 rng(1);
  // Few channels are gathered from planes, many from blocks; dense grids from copied boxes.
  struct Sizes {
    Shape image;
    int64_t rows, columns;
    double spread;
  };
  const Sizes kSizes[] = {{{2, 3, 9, 11}, 7, 5, 1.4},    {{1, 21, 13, 17}, 9, 31, 1.2}, {{1, 33, 40, 40}, 70, 70, 1.1},
                          {{1, 16, 64, 64}, 64, 64, -1}, {{1, 1, 5, 5}, 3, 100, 1.5},   {{2, 19, 300, 280}, 2, 3, 1}};
  for (DType dtype : {DType::kI8, DType::kU8}) {
    for (auto interpolation : {Interpolation::kBilinear, Interpolation::kNearest, Interpolation::kBicubic}) {
      for (auto padding : {Padding::kZeros, Padding::kBorder, Padding::kReflection}) {
        for (const Sizes& sizes : kSizes) {
          if (sizes.rows * sizes.columns > 1000 && padding != Padding::kZeros) continue;  // to save time
          SCOPED_TRACE(Concat(ToString(sizes.image), " mode ", static_cast<int>(interpolation), " ", NameOf(dtype)));
          const int64_t n = sizes.image[0];
          const double spread = std::fabs(sizes.spread);
          HostTensor grid = HostTensor::Uniform(DType::kF32, {n, sizes.rows, sizes.columns, 2}, rng, -spread, spread);
          for (int64_t i = 0; sizes.spread < 0 && i < grid.size(); ++i) {  // an identity, moved a little
            const int64_t at = i / 2, position = i % 2 == 0 ? at % sizes.columns : at / sizes.columns % sizes.rows;
            grid.set(i, (2.0 * static_cast<double>(position) + 1.3) / static_cast<double>(sizes.columns) - 1);
          }
          ExpectWithinOneStep(Sampler(interpolation, padding, dtype), {RandomCodes(dtype, sizes.image, rng), grid});
        }
      }
    }
  }
}

TEST(QuantizedGridSampler, Volumes) {
  std::mt19937 rng(2);
  for (DType dtype : {DType::kI8, DType::kU8}) {
    for (auto interpolation : {Interpolation::kBilinear, Interpolation::kNearest}) {
      for (int64_t channels : {2, 20}) {
        ExpectWithinOneStep(Sampler(interpolation, Padding::kZeros, dtype),
                            {RandomCodes(dtype, {2, channels, 4, 5, 6}, rng),
                             HostTensor::Uniform(DType::kF32, {2, 3, 4, 5, 3}, rng, -1.3, 1.3)});
      }
    }
  }
}

TEST(QuantizedGridSampler, SamplesOutsideAndNanAreTheZeroPoint) {
  QuantizedGridSampler op;
  op.output_zero_point = -5;
  const HostTensor grid = HostTensor::Of(DType::kF32, {1, 1, 3, 2}, {3, 3, NAN, 0, INFINITY, 0});
  std::vector<HostTensor> outputs;
  for (int64_t channels : {1, 17}) {
    ASSERT_TRUE(testing::Run(op, {HostTensor::Full(DType::kI8, {1, channels, 4, 4}, 90), grid}, &outputs).ok());
    for (int64_t i = 0; i < outputs[0].size(); ++i) EXPECT_EQ(outputs[0].at(i), -5);
  }
}

TEST(QuantizedGridSampler, TiesToEven) {
  QuantizedGridSampler op;
  op.align_corners = true;
  const HostTensor image = HostTensor::Of(DType::kU8, {1, 1, 1, 3}, {10, 11, 12});
  const HostTensor grid = HostTensor::Of(DType::kF32, {1, 1, 2, 2}, {-0.5, 0, 0.5, 0});
  std::vector<HostTensor> outputs;
  ASSERT_TRUE(testing::Run(op, {image, grid}, &outputs).ok());
  EXPECT_EQ(outputs[0].ToDoubles(), (std::vector<double>{10, 12}));  // 10.5 and 11.5
}

TEST(QuantizedGridSampler, RejectsInvalidInputs) {
  std::mt19937 rng(3);
  const HostTensor grid = HostTensor::Full(DType::kF32, {1, 2, 2, 2}, 0);
  QuantizedGridSampler op;
  op.output_zero_point = 255;
  ExpectError(op, {RandomCodes(DType::kI8, {1, 1, 2, 2}, rng), grid},
              {"attribute 'output_zero_point': expected a value of i8, -128 to 127, got 255"});
  ExpectError(op, {RandomCodes(DType::kU8, {1, 1, 0, 2}, rng), grid}, {"expected planes with at least one pixel"});
  ExpectAttributeError(*FindOp("quantized_grid_sampler"), {{"input_scale", AttrValue::Float(0)}},
                       {"'input_scale'", "(0, inf)"});
}

}  // namespace
}  // namespace polyop::testing
