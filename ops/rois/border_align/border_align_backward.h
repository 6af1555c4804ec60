// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/border_align/border_align.h"

namespace polyop {

/// The gradient of BorderAlign with respect to the feature map: that of a side belongs to the first of its largest
/// samples, as in MMCV, and is lost if a sample outside of the map, which is 0, is larger. Boxes have none.
struct BorderAlignBackward : GradientOf<BorderAlign> {
  static constexpr const char* kName = "border_align_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, C4/4, K, 4], input: T[N, C4, H, W], boxes: T[N, K, 4] -> grad_input: T[N, C4, H, W]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return BorderAlign::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop
