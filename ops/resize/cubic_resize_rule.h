// SPDX-License-Identifier: Apache-2.0
// Attributes, checks and axes shared by the operators that resize as ONNX's Resize with mode cubic.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>

#include "core/definition.h"
#include "ops/resize/cubic.h"

namespace polyop {

/// The base of an operator's parameters.
struct CubicResizeRule {
  enum class Transformation { kHalfPixel, kPytorchHalfPixel, kAlignCorners, kAsymmetric };
  Transformation coordinate_transformation_mode = Transformation::kHalfPixel;
  float cubic_coeff_a = -0.75f;
  bool exclude_outside = false;

  /// Returns an error if a size is negative, or positive where the input is empty.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const auto* const sizes = static_cast<const int64_t*>(inputs[1].data);
    for (int i = 0; sizes != nullptr && i < 2; ++i) {
      if (sizes[i] < 0) return InvalidArgument("'sizes'[", i, "]: expected 0 or more, got ", sizes[i]);
      if (sizes[i] > 0 && inputs[0].shape[2 + i] == 0) {
        return InvalidArgument("'sizes'[", i, "]: expected 0, because 'input' has no pixels (shape ",
                               ToString(inputs[0].shape), "), got ", sizes[i]);
      }
    }
    return Status::Ok();
  }

  /// Returns the sampling of an axis.
  ResizeAxis Axis(int64_t inputs, int64_t outputs) const {
    ResizeAxis axis = coordinate_transformation_mode == Transformation::kAlignCorners
                          ? ResizeAxis::AlignedCorners(inputs, outputs)
                          : ResizeAxis::ByExtents(inputs, outputs);
    if (coordinate_transformation_mode == Transformation::kAsymmetric) axis.from_first = true;
    if (coordinate_transformation_mode == Transformation::kPytorchHalfPixel && outputs == 1) axis.from_first = true;
    axis.a = cubic_coeff_a;
    axis.exclude_outside = exclude_outside;
    return axis;
  }
};

inline constexpr std::tuple kCubicResizeAttributes = {
    Attr("coordinate_transformation_mode", &CubicResizeRule::coordinate_transformation_mode,
         R"(position of pixel i in the input. half_pixel: (i + 0.5) * step - 0.5; pytorch_half_pixel: like half_pixel,
         but 0 if the output has one pixel; asymmetric: i * step; align_corners: like asymmetric, with a step that
         aligns the centres of the last pixels)")
        .OneOf("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"),
    Attr("cubic_coeff_a", &CubicResizeRule::cubic_coeff_a, "coefficient a of the cubic kernel").Between(-1, 0),
    Attr("exclude_outside", &CubicResizeRule::exclude_outside,
         "true: pixels outside have weight 0 and the other weights are normalised; false: borders are replicated"),
};

}  // namespace polyop
