// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/resize/cubic_resize_rule.h"

namespace polyop {

/// Bicubic resizing to sizes given at run time, with all coordinate transformations of ONNX's Resize.
struct CubicResize : CubicResizeRule {
  static constexpr const char* kName = "cubic_resize";
  static constexpr Signature kSignature = "input: T[N, C, H, W], sizes: i64[2] -> output: T[N, C, sizes[0], sizes[1]]";
  static constexpr NodeName kNodes[] = {"polyop::CubicResize"};
  static constexpr auto kAttributes = kCubicResizeAttributes;
  static constexpr Doc kDoc = {
      .summary = R"(Resizes images with bicubic interpolation to sizes given by an input, with the rules of ONNX's
          Resize.)",
      .semantics = R"(`sizes` holds the rows and columns of the result. The step between pixels is the ratio of the
          extents; with align_corners, the ratio of the extents minus one. NaN and infinity spread to every output pixel
          whose 4 x 4 window contains them. An input without pixels cannot be resized to an output with pixels: this is
          an error.)",
      .source = R"(ONNX's operators, Resize with mode cubic; R. Keys, Cubic Convolution Interpolation for Digital Image
          Processing, 1981)",
      .differences = R"(ONNX Runtime computes coordinates in fp32: at pixel 1,000 they are off by up to 6e-5 pixels.
          `dynamic_resize` takes scales, and uses them exactly even if extents times scales are not integers.)",
  };
};

}  // namespace polyop
