// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/deform_roi_pool/deform_roi_pool.h"

namespace polyop {

/// The gradient of DeformRoiPool with respect to the feature map and the offsets. Boxes have none, as in MMCV. A sample
/// that is moved to the border has no gradient across it.
struct DeformRoiPoolBackward : GradientOf<DeformRoiPool> {
  static constexpr const char* kName = "deform_roi_pool_backward";
  static constexpr Signature kSignature =
      "grad_output: T[R, C, (pooled_height), (pooled_width)], input: T[N, C, H, W], rois: T[R, 5], "
      "offset?: T[R, 2, (pooled_height), (pooled_width)] -> "
      "grad_input?: T[N, C, H, W], grad_offset?: T[R, 2, pooled_height, pooled_width]";
};

}  // namespace polyop
