// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Sorts the corners of the intersection of two rotated boxes by angle.
struct DiffIouRotatedSortVertices {
  static constexpr const char* kName = "diff_iou_rotated_sort_vertices";
  static constexpr Signature kSignature =
      "vertices: T[B, N, 24, 2], mask: bool[B, N, 24], num_valid: i32[B, N] -> idx: i32[B, N, 9]";
  static constexpr NodeName kNodes[] = {"polyop::DiffIoURotatedSortVertices"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Sorts the corners of the intersection of two rotated boxes by angle (differentiable rotated IoU).",
      .semantics = R"(The vertices of a pair are the corners of both boxes and the intersections of their sides,
          relative to their mean. `mask` marks the vertices of the intersection, and `num_valid` is their number. `idx`
          lists up to 8 of them by ascending angle from the x axis, followed by the first one again; the remaining
          entries of the 9 are a filler: the first vertex from index 8 on that is masked out (8 if none is), whose
          coordinates are 0. With fewer than 3 vertices, all entries are the filler. Angles are compared exactly; of
          equal angles, the lower index comes first; a vertex at the origin has angle 0. Vertices that are masked out or
          have a NaN or infinite coordinate come after the others, in the order of their indices.)",
      .source = R"(`mmcv.ops.diff_iou_rotated`; Zhou et al., IoU Loss for 2D/3D Object Detection, 2019;
          github.com/lilanxiao/Rotated_IoU)",
      .differences = R"(MMCV compares squared cosines in fp32, and drops coincident vertices if there are more than 8;
          here they stay adjacent, and no area is lost.)",
  };
};

}  // namespace polyop
