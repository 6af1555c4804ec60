// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/attn_levels.h"
#include "ops/quantized/quantized_rule.h"

namespace polyop {

/// Multi-scale deformable attention of 8-bit quantized values.
struct QuantizedMsDeformAttn : QuantizedRule {
  static constexpr const char* kName = "quantized_ms_deform_attn";
  static constexpr Signature kSignature =
      "value: T[N, S, M, D], spatial_shapes: i64[L, 2], level_start_index: i64[L], "
      "sampling_locations: f32[N, Q, M, L, P, 2], attention_weights: f32[N, Q, M, L, P] -> output: T[N, Q, M*D]";
  static constexpr NodeName kNodes[] = {"polyop::QuantizedMultiScaleDeformableAttention"};
  static constexpr auto kAttributes = kQuantizedAttributes;
  static constexpr Doc kDoc = {
      .summary = R"(Multi-scale deformable attention of 8-bit values: DequantizeLinear, attention and QuantizeLinear in
          one.)",
      .semantics = R"(`value` and the output are i8 or u8, with one scale and zero point per tensor; locations and
          weights are in f32. Sums are computed in float from the exact differences of the values and their zero point,
          and rounded once, to nearest with ties to even. Otherwise it works like ms_deform_attn.)",
      .source = "Zhu et al., Deformable DETR, 2021; ONNX's operators DequantizeLinear and QuantizeLinear",
      .differences = R"(The three separate nodes round in between, so that results that are within rounding of a tie may
          differ by one step.)",
      .not_portable = R"(The node of deformable attention in float, which it replaces, has a function of standard
          operators.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckZeroPoints(inputs[0]));
    return CheckAttnPixels(inputs[0]);
  }
};

}  // namespace polyop
