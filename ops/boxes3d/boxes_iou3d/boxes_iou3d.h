// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/boxes3d/box3d_overlap.h"

namespace polyop {

/// Computes the overlap of each pair of 3-D boxes, in 3-D or in bird's-eye view.
struct BoxesIou3d {
  enum class Mode { kIou3d, kOverlapBev, kIouBev };
  Mode mode = Mode::kIou3d;

  static constexpr const char* kName = "boxes_iou3d";
  static constexpr Signature kSignature = "boxes_a: T[M, 7], boxes_b: T[N, 7] -> overlap: T[M, N]";
  static constexpr NodeName kNodes[] = {"polyop::BoxesIoU3D"};
  static constexpr std::tuple kAttributes = {
      Attr("mode", &BoxesIou3d::mode,
           "measure: IoU of volumes, intersection area in bird's-eye view, or IoU of areas in bird's-eye view")
          .Codes("iou_3d", "overlap_bev", "iou_bev"),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Computes the overlap of each of M rotated 3-D boxes with each of N others, in 3-D or in bird's-eye
          view.)",
      .semantics = R"(A box is (x, y, z, dx, dy, dz, heading). (x, y, z) is its centre; the heading is in radians and
          rotates x towards y. The intersection area is that of the two rotated rectangles and exact; everything is
          computed in fp64 and rounded once. Mode 0: intersection volume / max(volume of the union, 1e-6). Mode 1:
          intersection area, in squared units of the coordinates. Mode 2: intersection area / max(area of the union,
          1e-8). A box with a NaN or infinite coordinate, or with an extent that is not positive, overlaps nothing.
          Modes 1 and 2 ignore z and dz.)",
      .source = "`mmcv.ops.boxes_iou3d`, `boxes_overlap_bev`",
      .differences = R"(MMCV computes in fp32 and counts corners up to 0.01 outside of the other box as inside, so its
          areas are inexact by that margin. MMCV has GPU kernels only.)",
      .not_portable = R"(No standard operator intersects rotated boxes. Clipping all pairs by their eight edges would
          take hundreds of nodes.)",
  };

  POLYOP_HD double Measure(const Box3d& a, const Box3d& b) const {
    if (mode == Mode::kOverlapBev) return OverlapBev(a.bev, b.bev);
    return mode == Mode::kIouBev ? IouBev(a.bev, b.bev) : Iou3d(a, b);
  }
};

}  // namespace polyop
