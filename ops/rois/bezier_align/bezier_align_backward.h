// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/bezier_align/bezier_align.h"

namespace polyop {

/// The gradient of BezierAlign with respect to the feature map. Curves have none, as in MMCV.
struct BezierAlignBackward : GradientOf<BezierAlign> {
  static constexpr const char* kName = "bezier_align_backward";
  static constexpr Signature kSignature =
      "grad_output: T[R, C, (output_height), (output_width)], input: T[N, C, H, W], rois: T[R, 17] -> "
      "grad_input: T[N, C, H, W]";
};

}  // namespace polyop
