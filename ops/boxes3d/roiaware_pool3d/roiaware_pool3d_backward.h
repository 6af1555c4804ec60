// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/boxes3d/roiaware_pool3d/roiaware_pool3d.h"

namespace polyop {

/// The gradient with respect to the features. In mode max, that of a cell and channel belongs to the first of the
/// largest features, as in MMCV; a cell that contains only NaN has none.
struct RoiawarePool3dBackward : GradientOf<RoiawarePool3d> {
  static constexpr const char* kName = "roiaware_pool3d_backward";
  static constexpr Signature kSignature =
      "grad_pooled: T[R, (out_size[0]), (out_size[1]), (out_size[2]), C], rois: T[R, 7], points: T[N, 3], "
      "features: T[N, C] -> grad_features: T[N, C]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("points", inputs[2], 0); }
};

}  // namespace polyop
