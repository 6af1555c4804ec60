// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/riroi_align_rotated/riroi_align_rotated.h"

namespace polyop {

/// The gradient of RiRoiAlignRotated with respect to the feature map. Boxes have none, as in MMCV.
struct RiRoiAlignRotatedBackward : GradientOf<RiRoiAlignRotated> {
  static constexpr const char* kName = "riroi_align_rotated_backward";
  static constexpr Signature kSignature =
      "grad_output: T[R, C, (pooled_height), (pooled_width)], input: T[N, C, H, W], rois: T[R, 6] -> "
      "grad_input: T[N, C, H, W]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return RiRoiAlignRotated::CheckInputs(inputs.subspan(1));
  }
};

}  // namespace polyop
