// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/rotated_feature_align/rotated_feature_align.h"

namespace polyop {

/// The gradient of RotatedFeatureAlign with respect to the features. Boxes have none, as in MMCV.
struct RotatedFeatureAlignBackward : GradientOf<RotatedFeatureAlign> {
  static constexpr const char* kName = "rotated_feature_align_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, C, H, W], features: T[N, C, H, W], best_bboxes: T[N, H, W, 5] -> "
      "grad_features: T[N, C, H, W]";
};

}  // namespace polyop
