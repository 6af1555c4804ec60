// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/roi_align/roi_align.h"

namespace polyop {

/// The gradient of RoIAlign with respect to the feature map. Boxes have none, as in torchvision and MMCV. In mode max
/// the gradient of a bin belongs to the first of its largest samples; if samples outside the map, which are 0, are
/// larger, it is lost.
struct RoiAlignBackward : GradientOf<RoiAlign> {
  static constexpr const char* kName = "roi_align_backward";
  static constexpr Signature kSignature =
      "grad_output: T[R, C, (output_height), (output_width)], input: T[N, C, H, W], rois: T[R, 5] -> "
      "grad_input: T[N, C, H, W]";
};

}  // namespace polyop
