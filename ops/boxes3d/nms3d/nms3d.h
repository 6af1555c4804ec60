// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/boxes3d/box3d_overlap.h"

namespace polyop {

/// Greedy non-maximum suppression of rotated 3-D boxes in the bird's eye view.
struct Nms3d {
  float iou_threshold = 0.5f;
  bool normal = false;

  static constexpr const char* kName = "nms3d";
  static constexpr Signature kSignature = "boxes: T[N, 7], scores: T[N] -> keep: i64[K<=N]";
  static constexpr NodeName kNodes[] = {"polyop::NMS3D"};
  static constexpr std::tuple kAttributes = {
      Attr("iou_threshold", &Nms3d::iou_threshold,
           "a kept box suppresses boxes whose IoU with it exceeds this threshold")
          .Between(0, 1),
      Attr("normal", &Nms3d::normal, "1: ignore headings, as if all were 0"),
  };
  static constexpr Doc kDoc = {
      .summary = "Greedy non-maximum suppression of 3-D boxes by their overlap in the bird's eye view.",
      .semantics = R"(A box is (x, y, z, dx, dy, dz, heading) with its centre at (x, y, z); the heading is in
          radians and rotates x towards y. z and dz are ignored. keep holds the indices of the kept boxes by
          descending score; among equal scores the lower index comes first, and NaN comes last.

          The IoU is intersection / max(union, 1e-8); it is exact and compared in fp64. A box overlaps nothing if
          one of the used components is NaN or infinite, or if dx or dy is not positive.)",
      .source = "`mmcv.ops.nms3d`; with `normal`, `mmcv.ops.nms3d_normal`",
      .differences = R"(MMCV computes in fp32, counts corners up to 0.01 outside the other box as inside, leaves the
          order of equal scores unspecified, and has GPU kernels only.)",
      .not_portable = R"(No standard operator intersects rotated boxes. Clipping all pairs by their eight edges
          would take hundreds of nodes, and the suppression a Loop with one iteration per box.)",
  };

  RotatedOverlapRule Rule() const {
    return {iou_threshold, 0x1p-1022, kMinBevUnion};
  }  // for boxes of any positive area
};

}  // namespace polyop
