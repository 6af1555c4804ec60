// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/multi_level_rotated_roi_align/multi_level_rotated_roi_align.h"

namespace polyop {

/// The gradient with respect to the feature maps, as that of RoIAlign of rotated boxes. Boxes have none.
struct MultiLevelRotatedRoiAlignBackward : GradientOf<MultiLevelRotatedRoiAlign> {
  static constexpr const char* kName = "multi_level_rotated_roi_align_backward";
  static constexpr Signature kSignature =
      "grad_output: T[R, C, (output_height), (output_width)], rois: T[R, 6], feats: T[N, C, *, *]... -> "
      "grad_feats: T[size(feats)]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return MultiLevelRotatedRoiAlign::CheckInputs(inputs.subspan(1));
  }
};

}  // namespace polyop
