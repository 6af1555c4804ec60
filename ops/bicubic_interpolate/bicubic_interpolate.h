#pragma once

#include <array>

#include "core/operator.h"
#include "families/resize/cubic.h"

namespace polyop {

/// Bicubic resizing by scales that are attributes.
struct BicubicInterpolate {
  std::array<float, 2> scale_factor = {1.0f, 1.0f};
  bool align_corners = false;

  static constexpr const char* kName = "bicubic_interpolate";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W] -> output: T[N, C, floor(H*scale_factor[0]), floor(W*scale_factor[1])]";
  static constexpr NodeName kNodes[] = {"mmdeploy::TRTBicubicInterpolate"};
  static constexpr std::tuple kAttributes = {
      Attr("scale_factor", &BicubicInterpolate::scale_factor, "vertical and horizontal scale; one value serves both")
          .GreaterThan(0),
      Attr("align_corners", &BicubicInterpolate::align_corners,
           "whether the outer pixels' centres stay where they are"),
  };
  static constexpr Doc kDoc = {
      .summary = "Bicubic resizing of pictures by fixed scales.",
      .semantics =
          "As dynamic_resize, which takes the scales as an input. With align_corners the coordinates follow the "
          "extents instead of "
          "the scales. The kernel has a = -0.75, the border repeats. An extent that rounds down to 0 gives an empty "
          "output.",
      .source = "`torch.nn.functional.interpolate(input, scale_factor=..., mode='bicubic', align_corners=...)`",
      .differences = "none known",
  };
};

/// How dimension 2 or 3 is sampled.
inline ResizeAxis AxisOf(const BicubicInterpolate& op, const Shape& input, const Shape& output, int dim) {
  return op.align_corners ? ResizeAxis::AlignedCorners(input[dim], output[dim])
                          : ResizeAxis::ByScale(input[dim], output[dim], op.scale_factor[static_cast<size_t>(dim - 2)]);
}

}  // namespace polyop
