// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Computes the IoU of pairs of rotated boxes.
struct DiffIouRotated {
  int64_t dimensions = 2;

  static constexpr const char* kName = "diff_iou_rotated";
  static constexpr Signature kSignature =
      "boxes_a: T[B, N, 2*dimensions + 1], boxes_b: T[B, N, 2*dimensions + 1] -> iou: T[B, N]";
  static constexpr NodeName kNodes[] = {"polyop::DiffIoURotated"};
  static constexpr std::tuple kAttributes = {
      Attr("dimensions", &DiffIouRotated::dimensions,
           "2: boxes (x, y, w, h, alpha); 3: boxes (x, y, z, w, h, l, alpha)")
          .Between(2, 3),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the IoU of pairs of rotated boxes, with gradients (rotated IoU loss).",
      .semantics = R"(Box [b, n] of the first tensor is compared with box [b, n] of the second one. (x, y, z) is the
          centre of a box; w, h and l are its sizes along its x, y and z axes; alpha is in radians and rotates x towards
          y. The intersection of two boxes is exact. In three dimensions, the overlap along z is min(z + l / 2) -
          max(z - l / 2), at least 0, and multiplies the area. The IoU is the intersection over the sum of both areas
          (volumes) minus the intersection; a negative size makes an area negative, and two boxes without area have NaN.
          NaN and infinity make the IoU of their pair NaN. Everything is computed in fp64 and rounded once. In PyTorch,
          differentiable with respect to both boxes. Where sides of both boxes coincide, the gradient is the mean of the
          one-sided gradients; boxes that touch from outside have the gradient 0; a size of 0 has no gradient from the
          intersection.)",
      .source = R"(`mmcv.ops.diff_iou_rotated_2d`, `diff_iou_rotated_3d`; Zhou et al., IoU Loss for 2D/3D Object
          Detection, 2019)",
      .differences = R"(MMCV composes the IoU from 24 candidates of vertices in fp32, moves intersections by an epsilon,
          and counts corners up to 1e-6 of a side outside as inside. Where sides coincide, its gradient is the one-sided
          gradient that the order of the vertices selects.)",
  };
};

}  // namespace polyop
