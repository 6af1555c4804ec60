// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "core/dtype.h"
#include "core/operator.h"
#include "ops/boxes/rotated_boxes.h"

namespace polyop {

/// Computes the overlap of each pair of rotated boxes.
struct BoxIouRotated {
  enum class Mode { kIou, kIof };
  Mode mode = Mode::kIou;

  static constexpr const char* kName = "box_iou_rotated";
  static constexpr Signature kSignatures[] = {
      "boxes_a: T[M, 5], boxes_b: T[N, 5] -> overlap: T[M, N]",
      "boxes_a: T[B, M, 5], boxes_b: T[B, N, 5] -> overlap: T[B, M, N]",
  };
  static constexpr NodeName kNodes[] = {"polyop::BoxIoURotated", "mmcv::MMCVBoxIoURotated"};
  static constexpr std::tuple kAttributes = {
      Attr("mode", &BoxIouRotated::mode,
           "divisor of the intersection area: `iou`, the area of the union; `iof`, the area of the first box")
          .OneOf("iou", "iof"),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the overlap (IoU or IoF) of each of M rotated boxes with each of N others.",
      .semantics = R"(A box is (cx, cy, width, height, angle). The angle is in radians and rotates x towards y,
          clockwise in an image. The intersection area is exact; everything is computed in fp64 and rounded once. A box
          with a NaN or infinite coordinate, or with an area below 1e-14, overlaps nothing. With a batch dimension, only
          boxes of the same batch element are compared; shapes [N, 1, 5] and [N, 1, 5] therefore compare N pairs element
          by element.)",
      .source = "`mmcv.ops.box_iou_rotated`",
      .differences = "MMCV computes in fp32, which loses precision for small and for distant boxes.",
      .not_portable = R"(No standard operator intersects rotated boxes. Clipping all pairs by their eight edges would
          take hundreds of nodes.)",
  };

  /// Returns the box of a row. Its area is 0 if it overlaps nothing.
  template <class T>
  POLYOP_HD static RotatedBox BoxOf(const T* row) {
    float numbers[5];
    bool finite = true;
    for (int k = 0; k < 5; ++k) {
      numbers[k] = ToFloat(row[k]);
      finite = finite && std::fabs(numbers[k]) < INFINITY;
    }
    RotatedBox box = RotatedBox::Of(numbers);
    if (!finite || !(box.area >= RotatedOverlapRule{}.min_area)) box.area = 0;
    return box;
  }
  POLYOP_HD double Measure(const RotatedBox& a, const RotatedBox& b) const {
    if (!(a.area > 0) || !(b.area > 0)) return 0;
    const double shared = SharedArea(a, b);
    return shared / (mode == Mode::kIof ? a.area : a.area + b.area - shared);
  }
};

}  // namespace polyop
