// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/quantized/quantized_rule.h"
#include "ops/resize/cubic_resize_rule.h"

namespace polyop {

/// Bicubic resizing of 8-bit quantized images.
struct QuantizedCubicResize : CubicResizeRule, QuantizedRule {
  static constexpr const char* kName = "quantized_cubic_resize";
  static constexpr Signature kSignature = "input: T[N, C, H, W], sizes: i64[2] -> output: T[N, C, sizes[0], sizes[1]]";
  static constexpr NodeName kNodes[] = {"polyop::QuantizedCubicResize"};
  static constexpr auto kAttributes = std::tuple_cat(kCubicResizeAttributes, kQuantizedAttributes);
  static constexpr Doc kDoc = {
      .summary = "Resizes 8-bit images bicubically: DequantizeLinear, cubic Resize and QuantizeLinear in one.",
      .semantics = R"(The input and the output are i8 or u8, with one scale and zero point per tensor. Sums are computed
          in float from the exact differences of the input and its zero point, and rounded once, to nearest with ties to
          even. Values that overshoot the output's range are clamped. Otherwise it works like cubic_resize.)",
      .source = "ONNX's operators, Resize with mode cubic, DequantizeLinear and QuantizeLinear",
      .differences = R"(The three separate nodes round in between, so that results that are within rounding of a tie may
          differ by one step. Some versions of ONNX Runtime resize 8-bit images linearly only.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckZeroPoints(inputs[0]));
    return CubicResizeRule::CheckInputs(inputs);
  }
};

}  // namespace polyop
