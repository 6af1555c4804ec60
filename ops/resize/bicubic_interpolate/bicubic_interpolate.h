// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "core/operator.h"
#include "ops/resize/cubic.h"

namespace polyop {

/// Bicubic resizing by scales given as attributes.
struct BicubicInterpolate {
  std::array<float, 2> scale_factor = {1.0f, 1.0f};
  bool align_corners = false;

  static constexpr const char* kName = "bicubic_interpolate";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W] -> output: T[N, C, floor(H*scale_factor[0]), floor(W*scale_factor[1])]";
  static constexpr NodeName kNodes[] = {"mmdeploy::TRTBicubicInterpolate"};
  static constexpr std::tuple kAttributes = {
      Attr("scale_factor", &BicubicInterpolate::scale_factor,
           "vertical and horizontal scale; a single value applies to both")
          .GreaterThan(0),
      Attr("align_corners", &BicubicInterpolate::align_corners,
           "true: the centres of the corner pixels of input and output coincide"),
  };
  static constexpr Doc kDoc = {
      .summary = "Resizes images by fixed scales with bicubic interpolation.",
      .semantics = R"(Like `dynamic_resize`, which takes the scales from an input. With `align_corners`, coordinates are
          derived from the extents and not from the scales. The cubic kernel has a = -0.75; borders are replicated. An
          extent that rounds down to 0 gives an empty output.)",
      .source = "`torch.nn.functional.interpolate(input, scale_factor=..., mode='bicubic', align_corners=...)`",
      .differences = "none known",
  };
};

/// Returns the sampling of dimension 2 or 3.
inline ResizeAxis AxisOf(const BicubicInterpolate& op, const Shape& input, const Shape& output, int dim) {
  return op.align_corners ? ResizeAxis::AlignedCorners(input[dim], output[dim])
                          : ResizeAxis::ByScale(input[dim], output[dim], op.scale_factor[static_cast<size_t>(dim - 2)]);
}

}  // namespace polyop
