// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/tensorrt_roi_align/tensorrt_roi_align.h"

namespace polyop {

/// The gradient with respect to the feature map; boxes have none. In mode max the gradient of a bin belongs to its
/// largest weighted pixel and is multiplied by the weight; of equal ones, to the first pixel, with its largest weight.
/// If a pixel of weight 0 or a sample outside the map, which are 0, is as large, it is lost.
struct TensorrtRoiAlignBackward : GradientOf<TensorrtRoiAlign> {
  static constexpr const char* kName = "tensorrt_roi_align_backward";
  static constexpr Signature kSignature =
      "grad_Y: T[R, C, (output_height), (output_width)], X: T[N, C, H, W], rois: T[R, 4], batch_indices: I[R] -> "
      "grad_X: T[N, C, H, W]";
};

}  // namespace polyop
