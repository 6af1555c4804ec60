#pragma once

#include "core/operator.h"
#include "families/boxes/boxes_of_space.h"

namespace polyop {

/// Greedy non-maximum suppression of turned boxes of space, seen from above.
struct Nms3d {
  float iou_threshold = 0.5f;
  bool normal = false;

  static constexpr const char* kName = "nms3d";
  static constexpr Signature kSignature = "boxes: T[N, 7], scores: T[N] -> keep: i64[K<=N]";
  static constexpr NodeName kNodes[] = {"polyop::NMS3D"};
  static constexpr std::tuple kAttributes = {
      Attr("iou_threshold", &Nms3d::iou_threshold, "a box goes when its IoU with a kept one is greater").Between(0, 1),
      Attr("normal", &Nms3d::normal, "headings are not looked at, as if all were 0"),
  };
  static constexpr Doc kDoc = {
      .summary = "Keeps the best of every group of boxes of space that overlap seen from above.",
      .semantics =
          "A box is (x, y, z, dx, dy, dz, heading), (x, y, z) its middle; the heading is in radians and turns x "
          "towards "
          "y. z and dz are not looked at. The result holds the indices of the kept boxes by falling score, of equal "
          "scores the lower index first, NaN last. The IoU is shared area / max(area of both together, 1e-8), exact "
          "and decided in fp64. A box with NaN or infinity in what is looked at, or of which dx or dy is not positive, "
          "overlaps nothing.",
      .source = "`mmcv.ops.nms3d`; with `normal`, `mmcv.ops.nms3d_normal`",
      .differences =
          "MMCV computes in fp32, counts corners up to 0.01 outside of the other box as inside, leaves the order of "
          "equal scores open, and has kernels for GPUs alone.",
      .not_portable =
          "No standard operator intersects rotated boxes; cut by their eight edges, all pairs of them would "
          "take hundreds of nodes, and the suppression a Loop of a turn for each box.",
  };

  RotatedOverlapRule Rule() const { return {iou_threshold, 0x1p-1022, kLeastUnitedArea}; }  // of any area
};

}  // namespace polyop
