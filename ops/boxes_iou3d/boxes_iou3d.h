#pragma once

#include "core/operator.h"
#include "families/boxes/boxes_of_space.h"

namespace polyop {

/// How much the boxes of two sets overlap, in space or seen from above.
struct BoxesIou3d {
  enum class Mode { kIou3d, kOverlapBev, kIouBev };
  Mode mode = Mode::kIou3d;

  static constexpr const char* kName = "boxes_iou3d";
  static constexpr Signature kSignature = "boxes_a: T[M, 7], boxes_b: T[N, 7] -> overlap: T[M, N]";
  static constexpr NodeName kNodes[] = {"polyop::BoxesIoU3D"};
  static constexpr std::tuple kAttributes = {
      Attr("mode", &BoxesIou3d::mode, "IoU of volumes, shared area seen from above, or IoU of areas seen from above")
          .Codes("iou_3d", "overlap_bev", "iou_bev"),
  };
  static constexpr Doc kDoc = {
      .summary = "How much each of M turned boxes overlaps each of N others, in space or seen from above.",
      .semantics =
          "A box is (x, y, z, dx, dy, dz, heading), (x, y, z) its middle; the heading is in radians and turns x "
          "towards "
          "y. The shared area is exact, of the two turned rectangles, and all is computed in fp64 and rounded once. "
          "Mode 0: shared volume / max(volume of both together, 1e-6). Mode 1: shared area, in squares of the "
          "coordinates' unit. Mode 2: shared area / max(area of both together, 1e-8). A box with NaN or infinity in "
          "it, or with an extent that is not positive, overlaps nothing; modes 1 and 2 do not look at z and dz.",
      .source = "`mmcv.ops.boxes_iou3d`, `boxes_overlap_bev`",
      .differences =
          "MMCV computes in fp32 and counts corners up to 0.01 outside of the other box as inside, so its areas are "
          "off "
          "by as much. It has kernels for GPUs alone.",
      .not_portable =
          "No standard operator intersects rotated boxes; cut by their eight edges, all pairs of them would "
          "take hundreds of nodes.",
  };

  POLYOP_HD double Measure(const BoxOfSpace& a, const BoxOfSpace& b) const {
    if (mode == Mode::kOverlapBev) return SharedFromAbove(a.above, b.above);
    return mode == Mode::kIouBev ? IouFromAbove(a.above, b.above) : IouOfSpace(a, b);
  }
};

}  // namespace polyop
