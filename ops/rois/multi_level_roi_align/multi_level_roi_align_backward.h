// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/multi_level_roi_align/multi_level_roi_align.h"

namespace polyop {

/// The gradient with respect to the feature maps, as that of RoIAlign. Boxes have none.
struct MultiLevelRoiAlignBackward : GradientOf<MultiLevelRoiAlign> {
  static constexpr const char* kName = "multi_level_roi_align_backward";
  static constexpr Signature kSignature =
      "grad_output: T[R, C, (output_height), (output_width)], rois: T[R, 5], feats: T[N, C, *, *]... -> "
      "grad_feats: T[size(feats)]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return MultiLevelRoiAlign::CheckInputs(inputs.subspan(1));
  }
};

}  // namespace polyop
