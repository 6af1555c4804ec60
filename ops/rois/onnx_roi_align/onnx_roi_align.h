// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/rois/onnx_roi_rule.h"

namespace polyop {

/// ONNX's RoiAlign: roi_align with the batch indices as a separate input.
struct OnnxRoiAlign : OnnxRoiRule {
  static constexpr const char* kName = "onnx_roi_align";
  static constexpr Signature kSignature =
      "X: T[N, C, H, W], rois: T[R, 4], batch_indices: i64[R] -> Y: T[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {
      NodeName("polyop::RoiAlign")
          .Mirror(10, "coordinate_transformation_mode", "output_half_pixel")
          .Mirror(16)
          .Mirror(22),
  };
  static constexpr auto kAttributes = kOnnxRoiAttributes;
  static constexpr Doc kDoc = {
      .summary = "ONNX's RoiAlign: roi_align with the batch indices as a separate input.",
      .semantics = R"(A RoI is (x1, y1, x2, y2). It is an error if one of `batch_indices` is not in [0, N).
          Otherwise it works like roi_align, whose `aligned` corresponds to half_pixel.)",
      .source = "ONNX's operators, RoiAlign of opsets 10, 16 and 22; He et al., Mask R-CNN, 2017",
      .differences = R"(In mode max, ONNX Runtime takes the maximum of the weighted corners. Here it is the maximum
          of the bilinear samples, as in ONNX's documentation. Nodes of opsets before 16 have no
          coordinate_transformation_mode and mean output_half_pixel.)",
  };

  /// ONNX Runtime's maximum differs.
  bool LeaveToStandard(std::span<const AnyTensor>) const { return mode == Mode::kMax; }
};

}  // namespace polyop
