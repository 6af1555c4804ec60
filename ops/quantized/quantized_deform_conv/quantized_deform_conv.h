// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/onnx_deform_conv_rule.h"
#include "ops/quantized/quantized_rule.h"

namespace polyop {

/// ONNX's DeformConv of 8-bit quantized images and weights.
struct QuantizedDeformConv : OnnxDeformConvRule, QuantizedRule {
  static constexpr const char* kName = "quantized_deform_conv";
  static constexpr Signature kSignature =
      "X: T[N, C, H, W], W: i8[O, C/group, KH, KW], W_scale: f32[O], offset: f32[N, 2*offset_group*KH*KW, "
      "OH = (H + pads[0] + pads[2] - dilations[0]*(KH - 1) - 1) / strides[0] + 1, "
      "OW = (W + pads[1] + pads[3] - dilations[1]*(KW - 1) - 1) / strides[1] + 1], "
      "B?: f32[O], mask?: f32[N, offset_group*KH*KW, OH, OW] -> Y: T[N, O, OH, OW]";
  static constexpr NodeName kNodes[] = {"polyop::QuantizedDeformConv"};
  static constexpr auto kAttributes = std::tuple_cat(kOnnxDeformConvAttributes, kQuantizedAttributes);
  static constexpr Doc kDoc = {
      .summary = R"(ONNX's DeformConv of 8-bit images and weights: DequantizeLinear, DeformConv and QuantizeLinear in
          one.)",
      .semantics = R"(X and Y are i8 or u8, with one scale and zero point per tensor. Filter o is W[o] * W_scale[o].
          Offsets, mask and bias are in f32. Samples are not rounded: they are the exact differences of X and its zero
          point, interpolated and multiplied with the weights in float. Sums are rounded once, to nearest with ties to
          even. Otherwise it works like onnx_deform_conv.)",
      .source = "ONNX's operators, DeformConv, DequantizeLinear and QuantizeLinear",
      .differences = R"(The three separate nodes round in between, so that results that are within rounding of a tie may
          differ by one step. Only images.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckZeroPoints(inputs[0]));
    return CheckConvolution(inputs[0], inputs[1]);
  }
};

}  // namespace polyop
