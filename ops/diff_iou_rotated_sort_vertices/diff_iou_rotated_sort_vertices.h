#pragma once

#include "core/operator.h"

namespace polyop {

/// The corners of the intersection of two rotated boxes, brought into order.
struct DiffIouRotatedSortVertices {
  static constexpr const char* kName = "diff_iou_rotated_sort_vertices";
  static constexpr Signature kSignature =
      "vertices: T[B, N, 24, 2], mask: bool[B, N, 24], num_valid: i32[B, N] -> idx: i32[B, N, 9]";
  static constexpr NodeName kNodes[] = {"polyop::DiffIoURotatedSortVertices"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Orders the corners of the intersection of two rotated boxes around it (differentiable rotated IoU).",
      .semantics =
          "The vertices of a pair are the corners of both boxes and the crossings of their sides, counted from their "
          "mean; `mask` says which of them the intersection has, `num_valid` how many that are. idx names up to 8 of "
          "these by rising angle from the x axis, and the first one again; the rest of the 9 is a vertex from 8 on "
          "that the mask leaves out (8 if it leaves out none), whose coordinates are 0 there. With fewer than 3 all "
          "are that vertex. Angles are compared exactly, of equal ones the lower index comes first, and the origin "
          "lies on the x axis. Vertices that the mask leaves out, or with NaN or infinity in them, come behind the "
          "others, the lower index first.",
      .source =
          "`mmcv.ops.diff_iou_rotated`; Zhou et al., IoU Loss for 2D/3D Object Detection, 2019; "
          "github.com/lilanxiao/Rotated_IoU",
      .differences =
          "MMCV compares by squared cosines in fp32, and drops vertices that lie on one another where there are more "
          "than 8; here they stay neighbours, and no area is lost.",
  };
};

}  // namespace polyop
