#pragma once

#include "core/operator.h"
#include "families/quantized/quantized_rule.h"

namespace polyop {

/// Corner pooling of 8-bit quantized images.
struct QuantizedCornerPool : QuantizedRule {
  enum class Mode { kTop, kBottom, kLeft, kRight };

  Mode mode = Mode::kTop;

  static constexpr const char* kName = "quantized_corner_pool";
  static constexpr Signature kSignature = "input: T[N, C, H, W] -> output: T[N, C, H, W]";
  static constexpr NodeName kNodes[] = {"polyop::QuantizedCornerPool"};
  static constexpr auto kAttributes =
      std::tuple_cat(std::tuple(Attr("mode", &QuantizedCornerPool::mode, "edge towards which maxima are carried")
                                    .Codes("top", "bottom", "left", "right")),
                     kQuantizedAttributes);
  static constexpr Doc kDoc = {
      .summary = "Corner pooling of 8-bit images: DequantizeLinear, corner pooling and QuantizeLinear in one.",
      .semantics = R"(The input and the output are i8 or u8, with one scale and zero point per tensor. Maxima are those
          of the integers; each is converted to the output's scale and zero point and rounded to nearest, ties to even.
          Modes are those of corner_pool.)",
      .source = "H. Law, J. Deng, CornerNet: Detecting Objects as Paired Keypoints, 2018; ONNX's QuantizeLinear",
      .differences = R"(The three separate nodes round in between, so that results that are within rounding of a tie may
          differ by one step.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckZeroPoints(inputs[0]); }
};

}  // namespace polyop
