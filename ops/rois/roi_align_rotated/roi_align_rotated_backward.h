// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/roi_align_rotated/roi_align_rotated.h"

namespace polyop {

/// The gradient of RoiAlignRotated with respect to the feature map. Boxes have none, as in MMCV.
struct RoiAlignRotatedBackward : GradientOf<RoiAlignRotated> {
  static constexpr const char* kName = "roi_align_rotated_backward";
  static constexpr Signature kSignature =
      "grad_output: T[R, C, (output_height), (output_width)], input: T[N, C, H, W], rois: T[R, 6] -> "
      "grad_input: T[N, C, H, W]";
};

}  // namespace polyop
