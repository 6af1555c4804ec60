// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/quantized/quantized_rule.h"
#include "ops/sampling/grid_rule.h"

namespace polyop {

/// Grid sampling of 8-bit quantized images or volumes.
struct QuantizedGridSampler : GridRule, QuantizedRule {
  static constexpr const char* kName = "quantized_grid_sampler";
  static constexpr Signature kSignatures[] = {
      "input: T[N, C, H, W], grid: f32[N, OH, OW, 2] -> output: T[N, C, OH, OW]",
      "input: T[N, C, D, H, W], grid: f32[N, OD, OH, OW, 3] -> output: T[N, C, OD, OH, OW]",
  };
  static constexpr NodeName kNodes[] = {NodeName("polyop::QuantizedGridSample")
                                            .Rename("interpolation_mode", "mode")
                                            .Spell("bilinear", "linear")
                                            .Spell("bicubic", "cubic")};
  static constexpr auto kAttributes = std::tuple_cat(kGridAttributes, kQuantizedAttributes);
  static constexpr Doc kDoc = {
      .summary = "Samples 8-bit images at a grid: DequantizeLinear, GridSample and QuantizeLinear in one.",
      .semantics = R"(The input and the output are i8 or u8, with one scale and zero point per tensor; the grid is in
          f32. Samples outside of the image are 0, thus the output's zero point. Sums are computed in float from the
          exact differences of the input and its zero point, and rounded once, to nearest with ties to even. Otherwise
          it works like grid_sampler.)",
      .source = "ONNX's operators, GridSample, DequantizeLinear and QuantizeLinear; `torch.nn.functional.grid_sample`",
      .differences = R"(The three separate nodes round in between, so that results that are within rounding of a tie may
          differ by one step.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckZeroPoints(inputs[0]));
    return GridRule::CheckInputs(inputs);
  }
};

}  // namespace polyop
