// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/quantized/quantized_rule.h"
#include "ops/rois/onnx_roi_rule.h"

namespace polyop {

/// ONNX's RoiAlign of 8-bit quantized feature maps.
struct QuantizedRoiAlign : OnnxRoiRule, QuantizedRule {
  static constexpr const char* kName = "quantized_roi_align";
  static constexpr Signature kSignature =
      "X: T[N, C, H, W], rois: f32[R, 4], batch_indices: i64[R] -> Y: T[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {"polyop::QuantizedRoiAlign"};
  static constexpr auto kAttributes = std::tuple_cat(kOnnxRoiAttributes, kQuantizedAttributes);
  static constexpr Doc kDoc = {
      .summary = "ONNX's RoiAlign of 8-bit feature maps: DequantizeLinear, RoiAlign and QuantizeLinear in one.",
      .semantics = R"(X and Y are i8 or u8, with one scale and zero point per tensor. Bins are pooled in float from
          the exact differences of X and its zero point, and rounded once, to nearest with ties to even. Otherwise it
          works like onnx_roi_align.)",
      .source = "ONNX's operators, RoiAlign, DequantizeLinear and QuantizeLinear",
      .differences = R"(The three separate nodes round in between, so that results that are within rounding of a tie may
          differ by one step. In mode max, ONNX Runtime takes the maximum of the weighted corners.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckZeroPoints(inputs[0]); }
};

}  // namespace polyop
