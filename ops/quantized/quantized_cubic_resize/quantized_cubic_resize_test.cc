// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized/quantized_cubic_resize/quantized_cubic_resize.h"

#include "ops/quantized/quantized_test.h"

namespace polyop::testing {
namespace {

using Transformation = CubicResizeRule::Transformation;

HostTensor Sizes(double rows, double columns) { return HostTensor::Of(DType::kI64, {2}, {rows, columns}); }

TEST(QuantizedCubicResize, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kI8, DType::kU8}) {
    for (auto transformation : {Transformation::kHalfPixel, Transformation::kPytorchHalfPixel,
                                Transformation::kAlignCorners, Transformation::kAsymmetric}) {
      for (const bool exclude_outside : {false, true}) {
        for (const auto& [rows, columns] : {std::pair{19.0, 41.0}, {3.0, 1.0}, {12.0, 13.0}}) {
          SCOPED_TRACE(Concat(NameOf(dtype), " to ", rows, " x ", columns));
          QuantizedCubicResize op;
          op.coordinate_transformation_mode = transformation;
          op.exclude_outside = exclude_outside;
          op.input_scale = 0.11f;
          op.output_scale = 0.13f;
          op.input_zero_point = dtype == DType::kI8 ? -128 : 0;
          op.output_zero_point = dtype == DType::kI8 ? 127 : 255;
          ExpectWithinOneStep(op, {RandomCodes(dtype, {2, 3, 12, 13}, rng), Sizes(rows, columns)});
          op.output_zero_point = 1;
          ExpectWithinOneStep(op, {RandomCodes(dtype, {1, 2, 7, 30}, rng), Sizes(rows, columns)});
        }
      }
    }
  }
}

TEST(QuantizedCubicResize, ClampsOvershoot) {
  QuantizedCubicResize op;
  const HostTensor image = HostTensor::Of(DType::kU8, {1, 1, 1, 6}, {0, 0, 0, 255, 255, 255});
  std::vector<HostTensor> outputs;
  ASSERT_TRUE(testing::Run(op, {image, Sizes(1, 24)}, &outputs).ok());
  EXPECT_EQ(outputs[0].at(8), 0);     // below 0 before the edge
  EXPECT_EQ(outputs[0].at(15), 255);  // above 255 after it
}

TEST(QuantizedCubicResize, RejectsInvalidInputs) {
  std::mt19937 rng(2);
  QuantizedCubicResize op;
  const HostTensor x = RandomCodes(DType::kI8, {1, 2, 4, 4}, rng);
  ExpectError(op, {x, Sizes(-1, 4)}, {"'sizes'[0]: expected 0 or more, got -1"});
  op.input_zero_point = 200;
  ExpectError(op, {x, Sizes(4, 4)}, {"'input_zero_point'", "got 200"});
}

}  // namespace
}  // namespace polyop::testing
